"""The bench of ``check``: the native engine beside ``python`` and beside Spin."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fivestate.checker.bench import beside_spin, costs, ours, pan, searches
from fivestate.checker.bench.rows import Row
from fivestate.checker.bench.timing import Tell, best_of
from fivestate.checker.engines.native import prepare


@dataclass(frozen=True)
class Sizes:
    """What is searched, and how often.

    Attributes:
        beside_python: the model that both engines search.
        beside_spin: the model that is exported with its properties.
        parties: of two-phase commit, written by hand in both notations.
        rounds: how often what takes seconds is run.
        short_rounds: how often what takes less is run.
    """

    beside_python: str
    beside_spin: str
    parties: int
    rounds: int
    short_rounds: int


FULL = Sizes("all-groups", "sharing", 8, rounds=5, short_rounds=20)
QUICK = Sizes("index", "index", 6, rounds=2, short_rounds=3)


def notes(sizes: Sizes, workers: int) -> list[str]:
    """Return what has to be known to read the rows."""
    said = [
        (
            f"best of {sizes.rounds} rounds, beside the exported model of {sizes.short_rounds}; "
            "in each, everybody has a turn"
        ),
        f"native with {searches.threads(workers)} or 1; python and Spin: one process of one thread",
        "a search is timed without what has to be compiled for it",
    ]
    missing = pan.missing()
    if missing:
        return [*said, f"{missing}: Spin is left out, the rest is compared"]
    return [
        *said,
        (
            f"Spin with {' '.join(pan.OPTIONS)}, two to four slots of its hash table a state, the "
            "faster of depth first and breadth first; counts are equal, or this bench fails"
        ),
    ]


def rows(sizes: Sizes, workers: int, tell: Tell) -> Iterator[Row]:
    """Measure, and yield each row as soon as it is known.

    Raises:
        BenchError: two that searched the same model count differently.
        SpinError: Spin is there and gave no answer that can be used.
    """
    yield from beside_python(sizes, workers, tell)
    model, hand = ours.model_named(sizes.beside_spin), beside_spin.by_hand(sizes.parties)
    if pan.missing():
        yield from costs.starting(model, workers, sizes.rounds, tell)
        yield from costs.memory(hand.model.name, workers, tell, None)
        return
    exported, megabytes = beside_spin.exported(model), 0.0
    for subject, rounds in ((exported, sizes.short_rounds), (hand, sizes.rounds)):
        with tempfile.TemporaryDirectory(prefix="fivestate-bench-") as folder:
            spin = beside_spin.Spin(subject, Path(folder), tell)
            yield from beside_spin.rows(subject, spin, workers, rounds, tell)
            megabytes = spin.megabytes
    yield from costs.starting(model, workers, sizes.rounds, tell, exported)
    yield from costs.memory(hand.model.name, workers, tell, megabytes)


def beside_python(sizes: Sizes, workers: int, tell: Tell) -> Iterator[Row]:
    """Yield how much faster the native engine is than the generated Python.

    Raises:
        BenchError: they count differently.
    """
    model = ours.model_named(sizes.beside_python)
    tell(f"compiling {model.name}")
    many, one = prepare(model, workers), prepare(model, 1)
    counted = ours.native(many)
    best = best_of(
        sizes.rounds,
        {
            "native": searches.native(many, counted),
            "native, 1 thread": searches.native(one, counted),
            "python": searches.python(model, counted),
        },
        tell,
    )
    yield from searches.speeds(model.name, counted.distinct, best, "python", workers)
