"""Searches that can be repeated, and the rows that their times make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fivestate.checker.bench import ours
from fivestate.checker.bench.rows import Row
from fivestate.checker.bench.timing import Run, Timed
from fivestate.checker.engines.native import Program
from fivestate.spec.language.model import Model


def native(program: Program, expected: ours.Counted) -> Run:
    """Return what searches natively, once each time it is called, and counts as before."""
    return _checked(lambda: ours.native(program), "itself", expected)


def python(model: Model, expected: ours.Counted) -> Run:
    """Return what searches with the ``python`` engine, and counts as the native one does."""
    return _checked(lambda: ours.oracle(model), "python", expected)


def speeds(
    title: str, distinct: int, best: dict[str, Timed], peer: str, workers: int
) -> Iterator[Row]:
    """Yield what a user waits for, and what the work costs thread for thread.

    Args:
        title: what was searched.
        distinct: how many distinct states it has.
        best: the times of ``native``, of ``native, 1 thread``, and of the peer.
        peer: its name there.
        workers: with how many threads ``native`` was run.
    """
    kinds = {f"{threads(workers)}, wall": ("native", "wall")}
    kinds["1 thread, wall"] = ("native, 1 thread", "wall")
    kinds["1 thread, CPU"] = ("native, 1 thread", "cpu")
    for way, (name, clock) in kinds.items():
        here, there = (distinct / getattr(timed, clock) for timed in (best[name], best[peer]))
        clock_of_peer = f"{peer}, {way.split(', ')[1]}"
        yield Row.more(f"{title}: {way}", here, "states/s", clock_of_peer, there)


def threads(workers: int) -> str:
    """Return how many threads that is, in words."""
    return f"{workers} thread" + "s" * (workers > 1)


def _checked(search: Callable[[], ours.Counted], name: str, expected: ours.Counted) -> Run:
    def run() -> Timed:
        found = search()
        ours.must_agree(expected, name, found.distinct, found.transitions)
        return found.spent

    return run
