"""``fivestate bench``: how fast it is, beside a peer that is measured in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

if TYPE_CHECKING:
    from types import TracebackType

    from fivestate.checker.bench.check import Sizes
    from fivestate.checker.bench.rows import Row
    from fivestate.checker.bench.timing import Tell

GEOMETRY = "dsv4-flash"


class Subject(StrEnum):
    """What can be measured."""

    CHECK = "check"
    CLASSIFY = "classify"


def bench(
    subject: Annotated[
        Subject, typer.Argument(help="The search of a model, or the verdict on a prefix.")
    ],
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

    Takes minutes. Exits with 1 if two that searched the same model count differently.
    """
    from fivestate.checker.bench import rows as table
    from fivestate.checker.bench.ours import BenchError
    from fivestate.checker.cli.app import CUT_SHORT, complain
    from fivestate.checker.export.spin import SpinError
    from fivestate.spec.language.errors import ModelError

    if plot is not None:
        if subject is not Subject.CHECK:
            raise ModelError(f"bench {subject} draws nothing: --plot is for bench check")
        _refuse_undrawable(plot)
    measured: list[Row] = []
    try:
        with _Progress() as progress:
            notes, rows = _bench(subject, plot, progress.tell, quick=quick)
            if not json:
                typer.echo(table.heading())
            for row in rows:
                measured.append(row)
                progress.rest()
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


def _bench(
    subject: Subject, plot: Path | None, tell: Tell, *, quick: bool
) -> tuple[list[str], Iterator[Row]]:
    """Return the notes, and the rows that are measured as they are asked for."""
    from fivestate.checker.bench import check, classify
    from fivestate.checker.engines.native import workers
    from fivestate.spec.reuse.files import load_geometry

    if subject is Subject.CLASSIFY:
        shape = load_geometry(GEOMETRY)
        seconds = classify.SECONDS / (10 if quick else 1)
        return classify.notes(shape), classify.rows(shape, tell, seconds)
    sizes = check.QUICK if quick else check.FULL
    notes = check.notes(sizes, workers())
    return notes, _check(sizes, plot, tell, quick=quick)


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
    """Shows on the error stream what is being measured, if it is a terminal."""

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
        """Say what is being measured now."""
        if self._status is not None:
            self._status.update(f"bench: {now}")
            self._status.start()

    def rest(self) -> None:
        """Clear the line, so that others may print."""
        if self._status is not None:
            self._status.stop()
