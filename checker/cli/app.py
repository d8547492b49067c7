"""The application: commands, exit codes, and how a mistake is told."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from fivestate.checker.cli.check import check
from fivestate.spec.language.errors import ModelError, SpecError

USAGE_ERROR = 64
"""The exit code for a mistake in what was asked; 0, 1 and 2 are verdicts."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="When may a prefix-cache hit be used? The specification, checked.",
    epilog="Exit codes: 0 PROVED, 1 REFUTED, 2 UNDETERMINED (cut short), 64 wrong usage.",
)
app.command()(check)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fivestate {metadata.version('fivestate')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del version


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code; a mistake is one line, never a traceback."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        code = get_command(app).main(arguments, "fivestate", standalone_mode=False)
    except typer.Abort:
        return complain("interrupted", 2)
    except TyperException as error:
        return complain(error.format_message() or "see fivestate --help", USAGE_ERROR)
    except (ModelError, SpecError) as error:
        return complain(str(error), USAGE_ERROR)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        return 0
    return code if isinstance(code, int) else 0


def complain(message: str, code: int) -> int:
    """Print one line on the error stream and return ``code``."""
    print(f"fivestate: {message}", file=sys.stderr)
    return code
