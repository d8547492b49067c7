"""Verdicts: what a check may say, and what it must not."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """PROVED of everything reachable, REFUTED by a place, or UNDETERMINED: cut short."""

    PROVED = "PROVED"
    REFUTED = "REFUTED"
    UNDETERMINED = "UNDETERMINED"

    @property
    def exit_code(self) -> int:
        """The exit code of a command whose verdict this is."""
        return {"PROVED": 0, "REFUTED": 1, "UNDETERMINED": 2}[self]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return REFUTED if anything is, else UNDETERMINED if anything is, else PROVED."""
    found = set(verdicts)
    for verdict in (Verdict.REFUTED, Verdict.UNDETERMINED):
        if verdict in found:
            return verdict
    return Verdict.PROVED
