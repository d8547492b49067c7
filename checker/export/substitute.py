"""Substitution: what a condition on a step means before the step is taken."""

from __future__ import annotations

from collections.abc import Mapping

from fivestate.spec.language.ground import fold
from fivestate.spec.language.trees import FALSE, TRUE, Apply, Boolean, Cell, Node


def behind(condition: Node, updates: Mapping[int, Node]) -> Node:
    """Return the condition with each value behind the step replaced by what computes it."""
    match condition:
        case Cell(position, kind, True):
            return updates.get(position, Cell(position, kind))
        case Apply("and" | "or" as operator, arguments):
            return _connect(operator, [behind(argument, updates) for argument in arguments])
        case Apply(operator, arguments, kind):
            return fold(operator, tuple(behind(a, updates) for a in arguments), kind)
        case _:
            return condition


def _connect(operator: str, parts: list[Node]) -> Node:
    neutral, settled = (TRUE, FALSE) if operator == "and" else (FALSE, TRUE)
    if settled in parts:
        return settled
    kept = tuple(dict.fromkeys(part for part in parts if part != neutral))
    if len(kept) < 2:
        return kept[0] if kept else neutral
    return Apply(operator, kept, Boolean())
