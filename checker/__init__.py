"""That it holds: engines, properties, verdicts and the command line."""
