"""Counts: the numbers by which two readings of one specification are compared.

Whoever rewrites a machine, in whatever language, compares distinct states, transitions, depth
and firings: equal numbers are hard to come by in any other way than by meaning the same.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fivestate.checker.engines import AUTO, select
from fivestate.checker.exploration import Exploration, Limits
from fivestate.spec.language.model import Model


@dataclass(frozen=True)
class Counts:
    """The size of one model's state graph.

    Attributes:
        distinct: how many distinct states can be reached.
        transitions: how many steps can be taken, counted once from each state they start in.
        depth: how many steps away the furthest state is.
        firings: how many of the transitions each action makes, in the order of ``NEXT``.
    """

    distinct: int
    transitions: int
    depth: int
    firings: dict[str, int]


def count(exploration: Exploration) -> Counts:
    """Return the counts of a complete exploration.

    Raises:
        ValueError: it was stopped early, so there is nothing to compare.
    """
    if exploration.stopped:
        raise ValueError(f"model {exploration.model.name} was not counted: {exploration.stopped}")
    return Counts(
        exploration.distinct,
        exploration.transitions,
        exploration.depth,
        exploration.firings_by_action(),
    )


def measure(models: Iterable[Model], engine: str = AUTO) -> dict[str, Counts]:
    """Explore models to their ends, by the engine named, and return their counts by name."""
    never = threading.Event()
    return {
        model.name: count(select(engine, model)(model, Limits(), never, edges=False))
        for model in models
    }


def dump(counts: Mapping[str, Counts]) -> str:
    """Return counts as they are committed: JSON, one figure a line."""
    plain = {name: asdict(counted) for name, counted in counts.items()}
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def load(path: Path) -> dict[str, Counts]:
    """Read committed counts."""
    return {name: Counts(**plain) for name, plain in json.loads(path.read_text("utf-8")).items()}


def rewrite(path: Path, models: Iterable[Model], engine: str = AUTO) -> list[str]:
    """Count models anew, write the file, and say what has changed; never called by a test."""
    old = load(path) if path.exists() else {}
    new = measure(models, engine)
    path.write_text(dump(new), "utf-8")
    return differences(old, new)


def differences(expected: Mapping[str, Counts], found: Mapping[str, Counts]) -> list[str]:
    """Say in one line each what differs between two sets of counts; nothing if they agree."""
    lines: list[str] = []
    for name in sorted({*expected, *found}):
        old, new = expected.get(name), found.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'not expected' if old is None else 'not counted'}")
            continue
        before, after = _figures(old), _figures(new)
        for what in dict.fromkeys([*before, *after]):
            was, now = before.get(what, 0), after.get(what, 0)
            if was != now:
                lines.append(f"{name}: {what} {was:,} -> {now:,}")
    return lines


def _figures(counts: Counts) -> dict[str, int]:
    sizes = {
        "distinct": counts.distinct,
        "transitions": counts.transitions,
        "depth": counts.depth,
    }
    return sizes | {f"{action} fires": times for action, times in counts.firings.items()}
