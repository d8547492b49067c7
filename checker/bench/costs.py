"""What a search costs beside its time: compiling before it, and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from fivestate.checker.bench import child, pan
from fivestate.checker.bench.beside_spin import Subject
from fivestate.checker.bench.rows import Row
from fivestate.checker.bench.timing import Tell, Timed, best_of
from fivestate.spec.language.model import Model

BYTES_ALLOWED = 32
"""What a distinct state of one word may take, without edges."""
_MEGABYTE = 1 << 20


def starting(
    model: Model, workers: int, rounds: int, tell: Tell, exported: Subject | None = None
) -> Iterator[Row]:
    """Yield how long it takes until a search can start, the first time and later."""
    with tempfile.TemporaryDirectory(prefix="fivestate-bench-") as folder:
        places = (Path(folder, str(number)) for number in range(3 * rounds))
        latest = Path(folder)

        def first() -> Timed:
            nonlocal latest
            latest = next(places)
            return _asked(child.ask("compile", model.name, workers, latest))

        runs: dict[str, Callable[[], Timed]] = {
            "the first compilation": first,
            "the code at hand": lambda: _asked(child.ask("compile", model.name, workers, latest)),
        }
        if exported is not None:
            text, order = exported.promela, next(iter(pan.ORDERS))
            runs["Spin and gcc"] = lambda: pan.build(text, next(places), order, 1).compiled
        best = best_of(rounds, runs, lambda now: tell(f"compiling {model.name}, {now}"))
    cold, warm = best["the first compilation"].wall, best["the code at hand"].wall
    title = f"{model.name}: ready to search"
    if exported is not None:
        gcc = best["Spin and gcc"].wall
        yield Row.less(f"{title}, first time", cold, "s", "Spin and gcc", gcc)
        yield Row.less(f"{title}, later", warm, "s", "Spin and gcc", gcc)
    else:
        yield Row.less(f"{title}, later", warm, "s", "native, first time", cold)


def memory(name: str, workers: int, tell: Tell, megabytes: float | None) -> Iterator[Row]:
    """Yield what a distinct state takes: by arithmetic, and as the process has grown."""
    tell(f"memory of {name}")
    found = child.ask("search", name, workers)
    distinct, unit = found["distinct"], "bytes/state"
    yield Row.less(
        f"{name}: states and hash tables, by arithmetic",
        found["bytes_per_state"],
        unit,
        "what we allow ourselves",
        BYTES_ALLOWED,
    )
    if megabytes is not None and found["grown_bytes"]:
        yield Row.less(
            f"{name}: what the process grew by",
            found["grown_bytes"] / distinct,
            unit,
            "Spin, by its own account",
            megabytes * _MEGABYTE / distinct,
        )


def _asked(figures: dict[str, float]) -> Timed:
    return Timed(figures["wall"], figures["cpu"])
