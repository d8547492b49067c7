"""The score: what is committed of a run, and whether another run is worse."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fivestate.checker.mutants.mutant import Kind
from fivestate.checker.mutants.outcome import Fate, Outcome


@dataclass(frozen=True)
class Line:
    """One mutant of a committed score."""

    name: str
    kind: Kind
    caught_by: str | None
    length: int | None
    soundness_alone: bool | None
    slice: str | None
    equivalent: bool


def line(outcome: Outcome) -> Line:
    """Return what is committed of an outcome."""
    caught = outcome.caught_by
    return Line(
        outcome.mutant.name,
        outcome.mutant.kind,
        caught.name if caught else None,
        caught.length if caught else None,
        outcome.sound,
        outcome.slice or None,
        outcome.fate is Fate.EQUIVALENT,
    )


def to_json(outcomes: Sequence[Outcome]) -> str:
    """Return a score as JSON, one line a mutant; the keys are part of the command's promise."""
    lines = [json.dumps(vars(line(outcome)), ensure_ascii=False) for outcome in outcomes]
    counts = [f'  "{fate}": {count(outcomes, fate)}' for fate in _COUNTED]
    mutants = ",\n".join(f"    {each}" for each in lines)
    return '{\n  "mutants": [\n' + mutants + "\n  ],\n" + ",\n".join(counts) + "\n}\n"


_COUNTED = (Fate.CAUGHT, Fate.EQUIVALENT, Fate.SURVIVED, Fate.UNKNOWN)


def count(outcomes: Iterable[Outcome], fate: Fate) -> int:
    """Return how many mutants have come to this."""
    return sum(outcome.fate is fate for outcome in outcomes)


def load(path: Path) -> dict[str, Line]:
    """Read a score, by the names of the mutants.

    Raises:
        ValueError: the file is no score.
    """
    try:
        plain: Any = json.loads(path.read_text("utf-8"))
        lines = [Line(**{**each, "kind": Kind(each["kind"])}) for each in plain["mutants"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no score of mutants: {error}") from None
    return {each.name: each for each in lines}


def worse(before: dict[str, Line], outcomes: Iterable[Outcome]) -> list[str]:
    """Say of each mutant that was caught and no longer is who had caught it.

    A mutant that was not looked at to the end is not held against anybody, nor is one that is
    new, or gone with the guard that it dropped.
    """
    fallen: list[str] = []
    for outcome in outcomes:
        known = before.get(outcome.mutant.name)
        if known is None or known.caught_by is None:
            continue
        if outcome.fate in (Fate.SURVIVED, Fate.EQUIVALENT):
            fallen.append(f"{outcome.mutant.name} was caught by {known.caught_by}")
    return fallen
