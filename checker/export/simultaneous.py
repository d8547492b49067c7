"""Simultaneous effects, written as a sequence: every value is computed before the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fivestate.spec.language.trees import Cell, Node, walk

Update = tuple[int, Node]


@dataclass(frozen=True)
class Sequenced:
    """Assignments that, taken one after the other, do what the updates do at once.

    Attributes:
        saved: the cells whose value before the step is needed behind their own assignment.
        updates: the assignments in their order; a read of a cell that has been assigned before
            means its saved value.
    """

    saved: tuple[int, ...]
    updates: tuple[Update, ...]


def sequenced(updates: Sequence[Update]) -> Sequenced:
    """Order updates so that a cell is assigned when nobody reads it any more.

    Where updates read each other in a circle, the first of them has its old value saved.
    """
    waiting = list(updates)
    readers = {at: _reads(node) for at, node in updates}
    saved: list[int] = []
    ordered: list[Update] = []
    while waiting:
        free = [
            update
            for update in waiting
            if not any(update[0] in readers[at] for at, _ in waiting if at != update[0])
        ]
        if not free:
            saved.append(waiting[0][0])
            free = waiting[:1]
        ordered.append(free[0])
        waiting.remove(free[0])
    return Sequenced(tuple(saved), tuple(ordered))


def _reads(node: Node) -> frozenset[int]:
    return frozenset(inner.position for inner in walk(node) if isinstance(inner, Cell))
