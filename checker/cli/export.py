"""``fivestate export``: a model in another notation."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Notation(StrEnum):
    """What a model can be written in."""

    PROMELA = "promela"
    TLA = "tla"
    MERMAID = "mermaid"


def export(
    model: Annotated[str, typer.Argument(help="A model by name: see fivestate check --list.")],
    notation: Annotated[
        Notation,
        typer.Option("--to", help="Promela for Spin, TLA+ for TLC, or a Mermaid diagram."),
    ] = Notation.PROMELA,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting: request=3, cap.WINDOW=2."),
    ] = None,
    variable: Annotated[
        str,
        typer.Option(help="For Mermaid: the variable whose life is drawn."),
    ] = "device",
    properties: Annotated[
        bool,
        typer.Option("--properties", help="For Promela: assert the properties as well."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write to this file; TLA+ has a .cfg beside it."),
    ] = None,
) -> None:
    """Write a model in Promela, TLA+ or as the Mermaid diagram of one variable's life."""
    from fivestate.checker.cli import files
    from fivestate.checker.cli.check import named
    from fivestate.checker.export import promela, tla

    chosen = named(model, changes or [])
    if output is not None:
        files.refuse_unwritable(output)
    beside: dict[str, str] = {}
    match notation:
        case Notation.PROMELA:
            text = promela.export(chosen, properties=properties)
        case Notation.TLA:
            text, beside[".cfg"] = tla.export(chosen)
        case Notation.MERMAID:
            text = _life(chosen.name, changes or [], variable)
    if output is None:
        typer.echo(text, nl=False)
        for suffix, more in beside.items():
            typer.echo(f"\n\\* {tla.module_name(chosen)}{suffix}\n{more}", nl=False)
        return
    files.write_whole(output, text)
    for suffix, more in beside.items():
        files.write_whole(output.with_suffix(suffix), more)


def _life(name: str, changes: list[str], variable: str) -> str:
    from fivestate.checker.cli.check import named
    from fivestate.checker.cli.interrupt import interruptible
    from fivestate.checker.engines import AUTO, select
    from fivestate.checker.exploration import Limits
    from fivestate.checker.export import mermaid
    from fivestate.spec.language.errors import ModelError

    model = named(name, changes)
    with interruptible() as interrupted:
        explored = select(AUTO, model)(model, Limits(), interrupted, edges=True)
    try:
        return mermaid.life(explored, variable)
    except ValueError as error:
        raise ModelError(str(error)) from None
