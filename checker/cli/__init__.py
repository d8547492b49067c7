"""The command line: ``fivestate check`` and its siblings."""

from fivestate.checker.cli.app import main

__all__ = ["main"]
