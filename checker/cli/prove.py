"""``fivestate prove``: theorems for all positions and any size, by z3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text

    from fivestate.checker.prove.theorem import Result
    from fivestate.spec.reuse.geometry import Geometry


def prove(
    theorem: Annotated[
        list[str] | None,
        typer.Option("--theorem", "-t", help="A theorem by name; again for more. Default: all."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also theorems that z3 may not settle.")
    ] = False,
    geometry: Annotated[
        list[str] | None,
        typer.Option(
            "--geometry", "-g", help="A preset, or a .toml or .json file. Default: every preset."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds for one question (then UNDETERMINED).")
    ] = 20.0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes that ask at once. Default: one a core.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Rewrite spec/PROOFS.md; only in a checkout.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the theorems and leave.")] = False,
) -> None:
    """Prove theorems: arithmetic for all positions, safety for any number of prefixes and requests.

    Ctrl-C stops: what is not settled then is UNDETERMINED.
    """
    import os
    import time

    from rich.console import Console

    from fivestate.checker.cli.files import write_whole
    from fivestate.checker.cli.interrupt import interruptible
    from fivestate.checker.prove import report, table
    from fivestate.checker.prove.catalog import named
    from fivestate.checker.prove.run import Prover
    from fivestate.checker.prove.solve import Asking
    from fivestate.checker.verdicts import worst
    from fivestate.spec.language.errors import ModelError

    out = Console(soft_wrap=True, highlight=False)
    theorems = named(theorem or [], everything=everything)
    if listed:
        for each in theorems:
            out.print(report.listed(each))
        return
    if write and (theorem or geometry):
        raise ModelError("prove --write proves everything: give no --theorem and no --geometry")
    page = table.path() if write else None
    geometries = _geometries(geometry)
    started = time.perf_counter()
    with interruptible() as interrupted, _progress(len(theorems)) as progress:
        asking = Asking(timeout, interrupted)
        prover = Prover(geometries, asking, jobs or os.cpu_count() or 1)
        results = prover.prove(theorems, progress)
    if page is not None and not interrupted.is_set():
        write_whole(page, table.render(page.read_text("utf-8"), results))
    if json:
        typer.echo(report.to_json(results), nl=False)
    else:
        lines: Iterator[Text] = report.lines(results, time.perf_counter() - started)
        for line in lines:
            out.print(line)
    raise typer.Exit(worst(result.verdict for result in results).exit_code)


def _geometries(names: list[str] | None) -> tuple[Geometry, ...]:
    """Return the geometries that are asked for.

    Raises:
        ModelError: one is unknown, or a file does not describe one.
    """
    from fivestate.spec.reuse.files import load_geometry, presets

    return tuple(load_geometry(name) for name in dict.fromkeys(names or presets()))


@contextmanager
def _progress(count: int) -> Iterator[Callable[[Result], None]]:
    """Show on the error stream, if it is a terminal, how many theorems are settled."""
    from rich.console import Console

    console = Console(stderr=True)
    settled = 0
    with console.status(f"{count} theorems") as status:

        def progress(result: Result) -> None:
            nonlocal settled
            settled += 1
            status.update(f"{settled} of {count} theorems, {result.theorem}")

        yield progress
