"""The application: commands, exit codes, and how a mistake is told."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import metadata
from typing import Annotated

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from fivestate.checker.cli.bench import bench
from fivestate.checker.cli.book import book
from fivestate.checker.cli.check import check
from fivestate.checker.cli.counts import counts
from fivestate.checker.cli.explain import explain
from fivestate.checker.cli.export import export
from fivestate.checker.cli.mutants import mutants
from fivestate.checker.cli.plan import plan
from fivestate.checker.cli.prove import prove
from fivestate.spec.language.errors import ModelError, SpecError

USAGE_ERROR = 64
"""The exit code for a mistake in what was asked; 0, 1 and 2 are verdicts."""
CUT_SHORT = 2
"""The exit code of a command that could not say its verdict to the end."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="When may a prefix-cache hit be used? The specification, checked.",
    epilog="Exit codes: 0 PROVED, 1 REFUTED, 2 UNDETERMINED (cut short), 64 wrong usage.",
)
app.command()(check)
app.command()(prove)
app.command()(mutants)
app.command()(plan)
app.command()(explain)
app.command()(export)
app.command()(counts)
app.command()(bench)
app.command()(book)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fivestate {metadata.version('fivestate')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE_ERROR)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code; a mistake is one line, never a traceback."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack Chinese
    try:
        code = _invoke(arguments)
        print(end="", flush=True)  # what cannot be written is noticed here, not behind our back
    except (typer.Abort, KeyboardInterrupt):
        return complain("interrupted", CUT_SHORT)
    except TyperException as error:
        return complain(error.format_message() or "see fivestate --help", USAGE_ERROR)
    except (ModelError, SpecError) as error:
        return complain(str(error), USAGE_ERROR)
    except OSError as error:
        _drop_output()
        if isinstance(error, BrokenPipeError):  # whoever read our output has seen enough
            return CUT_SHORT
        return complain(f"cannot write the output: {error.strerror or error}", USAGE_ERROR)
    return code


def complain(message: str, code: int) -> int:
    """Print one line on the error stream and return ``code``."""
    with contextlib.suppress(OSError):
        print(f"fivestate: {message}", file=sys.stderr)
    return code


def _invoke(arguments: list[str]) -> int:
    """Run a command; not by typer's ``main``, which takes a closed pipe for 1, a verdict."""
    command = get_command(app)
    try:
        with command.make_context("fivestate", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as leaving:
        return leaving.exit_code
    except SystemExit:  # rich's answer to a closed pipe
        raise BrokenPipeError from None
    return 0


def _drop_output() -> None:
    """Let what is still buffered go nowhere, or Python complains about it when it leaves."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
