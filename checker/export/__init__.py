"""Exporters: the specification in other people's languages, and their tools run on it."""
