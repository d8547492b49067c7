"""What became of a mutant: who noticed, where, and how soon."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fivestate.checker.mutants.mutant import Mutant

ROUTED = "routed"
"""The name under which a mutant is caught that the language itself refuses to build (I-2)."""


class Fate(StrEnum):
    """What is known of a mutant."""

    CAUGHT = "caught"
    EQUIVALENT = "equivalent"  # every model's graph is what it was: the fault makes no difference
    SURVIVED = "survived"
    UNKNOWN = "unknown"  # cut short before every model was asked


@dataclass(frozen=True)
class Refutation:
    """A property that notices, and after how many steps, where a run shows it."""

    name: str
    length: int | None


@dataclass
class Outcome:
    """What the models asked so far say of a mutant.

    Attributes:
        mutant: the mutant.
        caught_by: the property that notices first, in the first model that notices.
        slice: that model.
        sound: whether soundness alone notices, in some model; open until every model is asked.
        same: whether every model asked has the graph it had.
        left: the models not asked yet.
        open: models whose search was stopped before it was through.
    """

    mutant: Mutant
    left: list[str]
    caught_by: Refutation | None = None
    slice: str = ""
    sound: bool | None = None
    same: bool = True
    open: list[str] = field(default_factory=list[str])

    @property
    def fate(self) -> Fate:
        """What is known of the mutant now."""
        if self.caught_by is not None:
            return Fate.CAUGHT
        if self.left or self.open:
            return Fate.UNKNOWN
        return Fate.EQUIVALENT if self.same else Fate.SURVIVED
