"""``fivestate counts``: the numbers by which two readings of the specification are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def counts(
    against: Annotated[
        Path | None,
        typer.Option(help="Compare with the counts in this file; exit 1 if any differs."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write them to this file instead of printing them."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model by name; repeatable. Default: every one."),
    ] = None,
    engine: Annotated[str, typer.Option(help="The engine: auto, or one by name.")] = "auto",
) -> None:
    """Count distinct states, transitions, depth and firings per action, as JSON.

    Whoever writes a machine anew in another language compares these.
    """
    from fivestate.checker.cli import files
    from fivestate.checker.cli.check import named
    from fivestate.checker.counts import differences, dump, load, measure
    from fivestate.spec.language.errors import ModelError
    from fivestate.spec.models import MODELS

    chosen = [named(name, []) for name in model] if model else list(MODELS.values())
    if output is not None:
        files.refuse_unwritable(output)
    try:
        expected = None if against is None else load(against)
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"cannot read counts from {against}: {error}") from None
    found = measure(chosen, engine)
    if expected is not None:
        wanted = {each.name for each in chosen}
        differing = differences({n: c for n, c in expected.items() if n in wanted}, found)
        for line in differing:
            typer.echo(line)
        typer.echo(f"{len(found) - len({line.split(':')[0] for line in differing})} models agree")
        raise typer.Exit(1 if differing else 0)
    if output is None:
        typer.echo(dump(found), nl=False)
    else:
        files.write_whole(output, dump(found))
