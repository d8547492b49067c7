"""Refusals: an operation that may not happen now says which clause and which guard forbid it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from fivestate.spec.language import errors


class Refused(errors.Refused):
    """An operation is refused because a guard is false; the state is unchanged.

    It is the specification's own refusal, over real data. The text is made only when somebody
    reads it: an engine asks thousands of times a second and mostly wants to know no more than
    that the answer is no.

    Attributes:
        clause: the clause's id, such as ``A-14``.
        action: the operation, such as ``lease``.
        guard: the name of the first guard that is false.
        given: what that guard looked at, by name.
    """

    def __init__(self, clause: str, action: str, guard: str, given: Mapping[str, object]) -> None:
        Exception.__init__(self, clause, action, guard)
        self.clause, self.action, self.guard, self.given = clause, action, guard, given

    @property
    def values(self) -> dict[str, str]:  # type: ignore[override]  # computed here, stored there
        """What the guard looked at, as printed."""
        return {name: _shown(value) for name, value in self.given.items()}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.values.items())
        because = f" ({shown})" if shown else ""
        return f"{self.clause} {self.action} is refused: guard {self.guard!r} is false{because}"


def _shown(value: object) -> str:
    return value.name if isinstance(value, Enum) else str(value)
