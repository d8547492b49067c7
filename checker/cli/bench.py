"""``fivestate bench``: how fast it is, beside a peer that is measured in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

if TYPE_CHECKING:
    from types import TracebackType

    from fivestate.checker.bench.check import Sizes
    from fivestate.checker.bench.rows import Row
    from fivestate.checker.bench.timing import Tell

GEOMETRY = "dsv4-flash"


BENCHES = {
    "check": "the search of a model, beside python and Spin",
    "classify": "the verdict on a prefix",
}
"""The checker's own benches; others are found by entry point."""


def bench(
    subject: Annotated[
        str | None, typer.Argument(help="What to measure: check, classify, or one of --list.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List what can be measured.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="For check: also measure growth, and draw it into this folder."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes and few rounds: does it run at all?")
    ] = False,
) -> None:
    """Measure speed and memory, each figure beside a peer's; a ratio above 1: ours is better.

    Takes minutes. Exits with 1 if what is measured computes something wrong, such as two that
    search the same model and count differently.
    """
    from fivestate.checker.bench import rows as table
    from fivestate.checker.bench.ours import BenchError
    from fivestate.checker.cli.app import CUT_SHORT, complain
    from fivestate.checker.cli.interrupt import leaving_at_once
    from fivestate.checker.export.spin import SpinError
    from fivestate.spec.language.errors import ModelError

    if list_:
        _list(as_json=json)
        return
    name = _known(subject)
    if plot is not None:
        if name != "check":
            raise ModelError(f"bench {name} draws nothing: --plot is for bench check")
        _refuse_undrawable(plot)
    measured: list[Row] = []
    try:
        with leaving_at_once() as look, _Progress(look) as progress:
            notes, rows = _bench(name, plot, progress.tell, quick=quick)
            if not json and name in BENCHES:
                typer.echo(table.heading())
            for row in rows:
                progress.rest()
                if not json and not measured and name not in BENCHES:
                    typer.echo(table.heading())  # another's may have no rows: it lacks a GPU
                measured.append(row)
                if not json:
                    typer.echo(table.line(row))
    except BenchError as error:
        raise typer.Exit(complain(str(error), 1)) from None
    except SpinError as error:
        said = " ".join(str(error).split())
        raise typer.Exit(complain(said[:400], CUT_SHORT)) from None
    if json:
        typer.echo(table.to_json(measured, notes), nl=False)
        return
    for note in notes:
        typer.echo(f"note: {note}")


def _list(*, as_json: bool) -> None:
    import json

    from fivestate.checker.bench import elsewhere

    known = BENCHES | {name: point.value for name, point in elsewhere.found().items()}
    if as_json:
        typer.echo(json.dumps(known, indent=2))
        return
    for name, says in known.items():
        typer.echo(f"{name:<12} {says}")


def _known(subject: str | None) -> str:
    """Return the name of a bench.

    Raises:
        ModelError: there is none of this name.
    """
    from fivestate.checker.bench import elsewhere
    from fivestate.spec.language.errors import ModelError

    known = [*BENCHES, *elsewhere.found()]
    if subject is None:
        raise ModelError(f"bench: what is to be measured? One of {', '.join(known)}")
    if subject not in known:
        raise ModelError(f"bench: {subject!r} is not one of {', '.join(known)}")
    return subject


def _bench(
    name: str, plot: Path | None, tell: Tell, *, quick: bool
) -> tuple[list[str], Iterator[Row]]:
    """Return the notes, and the rows that are measured as they are asked for."""
    from fivestate.checker.bench import check, classify, elsewhere
    from fivestate.checker.engines.native import workers
    from fivestate.spec.reuse.files import load_geometry

    if name == "classify":
        shape = load_geometry(GEOMETRY)
        seconds = classify.SECONDS / (10 if quick else 1)
        return classify.notes(shape), classify.rows(shape, tell, seconds)
    if name == "check":
        sizes = check.QUICK if quick else check.FULL
        return check.notes(sizes, workers()), _check(sizes, plot, tell, quick=quick)
    notes: list[str] = []
    return notes, elsewhere.rows(name, tell, notes, quick=quick)


def _check(sizes: Sizes, plot: Path | None, tell: Tell, *, quick: bool) -> Iterator[Row]:
    from fivestate.checker.bench import check, growth
    from fivestate.checker.engines.native import workers

    yield from check.rows(sizes, workers(), tell)
    if plot is not None:
        from fivestate.checker.bench import plot as drawing

        series = growth.QUICK if quick else growth.FULL
        points = list(growth.measure(series, workers(), tell))
        yield from growth.rows(points, workers())
        drawing.draw(points, plot)


def _refuse_undrawable(folder: Path) -> None:
    """Check, before minutes of work are done, that a plot can be drawn into a folder.

    Raises:
        ModelError: it cannot.
    """
    from importlib.util import find_spec

    from fivestate.checker.cli import files
    from fivestate.spec.language.errors import ModelError

    if find_spec("matplotlib") is None:
        raise ModelError("--plot needs matplotlib: pip install 'fivestate[bench]'")
    if not folder.is_dir():
        raise ModelError(f"cannot draw into {folder}: there is no such folder")
    files.refuse_unwritable(folder / "growth.png")


class _Progress:
    """Shows on the error stream what is being measured, if it is a terminal.

    Args:
        look: raises ``KeyboardInterrupt`` if somebody has had enough.
    """

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look

    def __enter__(self) -> Self:
        from rich.console import Console

        console = Console(stderr=True)
        self._status = console.status("", refresh_per_second=1) if console.is_terminal else None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rest()

    def tell(self, now: str) -> None:
        """Say what is being measured now, unless somebody has had enough."""
        self._look()
        if self._status is not None:
            self._status.update(f"bench: {now}")
            self._status.start()

    def rest(self) -> None:
        """Clear the line, so that others may print."""
        if self._status is not None:
            self._status.stop()
