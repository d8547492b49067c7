"""Timing on a machine that others use too: turn about, and the best of several rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Tell = Callable[[str], None]
"""Called with what is being measured now."""


@dataclass
class Timed:
    """How long something took.

    Attributes:
        wall: seconds on the clock.
        cpu: seconds of processor time, over all threads.
    """

    wall: float
    cpu: float


Run = Callable[[], Timed]


@contextmanager
def timed() -> Iterator[Timed]:
    """Give what holds the time that the block took, once it is left."""
    spent = Timed(0.0, 0.0)
    wall, cpu = time.perf_counter(), time.process_time()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - wall, time.process_time() - cpu


def best_of(rounds: int, runs: dict[str, Run], tell: Tell) -> dict[str, Timed]:
    """Run each in turn, ``rounds`` times over, and return the best that each has shown.

    Whoever else uses the machine only ever adds time, so the least is the nearest to the truth;
    and because turns alternate, a bad minute hits everybody. Wall and processor time are the
    least of their kind, so they need not be of the same round.
    """
    best: dict[str, Timed] = {}
    for number in range(1, rounds + 1):
        for name, run in runs.items():
            tell(f"round {number} of {rounds}: {name}")
            now = run()
            least = best.setdefault(name, now)
            best[name] = Timed(min(least.wall, now.wall), min(least.cpu, now.cpu))
    return best
