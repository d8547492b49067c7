"""Growth: time and memory of the native engine over four orders of magnitude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from fivestate.checker.bench import child, searches
from fivestate.checker.bench.ours import model_named
from fivestate.checker.bench.rows import Row
from fivestate.checker.bench.timing import Tell
from fivestate.checker.engines.native import prepare

Series = Mapping[str, tuple[str, ...]]

FULL: Series = {
    "two-phase commit": tuple(f"two-phase-{parties}" for parties in range(4, 10)),
    "allocator": ("hybrid", "index", "all-groups", "across", "deep"),
}
QUICK: Series = {
    "two-phase commit": ("two-phase-3", "two-phase-4", "two-phase-5"),
    "allocator": ("homogeneous", "hybrid"),
}

_MANY = 10_000_000
_ROUNDS = 3
"""A search of fewer transitions than ``_MANY`` is run so often."""


@dataclass(frozen=True)
class Point:
    """One size of one series.

    Attributes:
        series: which.
        model: its name.
        distinct: how many distinct states it has.
        transitions: how many steps are taken.
        seconds: how long the search took, by the clock, the code being at hand.
        grown_bytes: what the resident set grew by; 0 where that cannot be known.
        bytes_per_state: what states and hash tables take by arithmetic.
    """

    series: str
    model: str
    distinct: int
    transitions: int
    seconds: float
    grown_bytes: int
    bytes_per_state: float


def measure(series: Series, workers: int, tell: Tell) -> Iterator[Point]:
    """Yield every point, each searched in a process of its own."""
    for title, names in series.items():
        for name in names:
            tell(f"growth: {name}")
            prepare(model_named(name), workers)  # so that the process finds the code
            yield _point(title, name, workers)


def rows(points: list[Point], workers: int) -> Iterator[Row]:
    """Yield how much faster than the model before it each model of a series is searched."""
    for smaller, larger in pairwise(points):
        if smaller.series == larger.series:
            speeds = [point.transitions / point.seconds for point in (larger, smaller)]
            yield Row.more(
                f"{larger.model}, {larger.transitions:,} transitions, {searches.threads(workers)}",
                speeds[0],
                "transitions/s",
                f"{smaller.model}, {smaller.transitions:,}",
                speeds[1],
            )


def _point(title: str, name: str, workers: int) -> Point:
    found = [child.ask("search", name, workers)]
    while found[0]["transitions"] < _MANY and len(found) < _ROUNDS:
        found.append(child.ask("search", name, workers))
    return Point(
        title,
        name,
        int(found[0]["distinct"]),
        int(found[0]["transitions"]),
        min(each["wall"] for each in found),
        int(min(each["grown_bytes"] for each in found)),
        found[0]["bytes_per_state"],
    )
