"""What the language says when a specification or a model is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpecError(Exception):
    """A specification misuses the language; the message says what to write instead."""


class ModelError(ValueError):
    """A model is asked for that cannot be built: a name, a size or a setting is wrong."""


class Refused(Exception):  # noqa: N818 -- a refusal is an answer of the machine, not an error
    """An action is refused because a guard is false; the state is unchanged.

    Attributes:
        clause: the action's clause id, such as ``A-12``.
        action: the action with its arguments, such as ``lease(r1)``.
        guard: the name of the first guard that is false.
        values: the cells that guard reads, with their values.
    """

    def __init__(self, clause: str, action: str, guard: str, values: dict[str, str]) -> None:
        self.clause, self.action, self.guard, self.values = clause, action, guard, values
        shown = ", ".join(f"{name}={value}" for name, value in values.items())
        super().__init__(f"{clause} {action} is refused: guard {guard!r} is false ({shown})")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return advice that lists ``known`` and puts the nearest spelling first."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(names) or 'none'}"
