"""The truth of a condition in every state at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fivestate.spec.language.trees import Apply, Cell, Literal, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fivestate.spec.language.model import Codes

Column = Any
"""A numpy array with one code a state, or one code for all of them."""

_COLUMNS: dict[str, Callable[..., Column]] = {
    "not": lambda a: 1 - a,
    "and": lambda *values: np.logical_and.reduce(np.broadcast_arrays(*values)).astype(np.int64),
    "or": lambda *values: np.logical_or.reduce(np.broadcast_arrays(*values)).astype(np.int64),
    "implies": lambda a, b: ((a == 0) | (b != 0)).astype(np.int64),
    "ite": lambda a, b, c: np.where(a != 0, b, c),
    "==": lambda a, b: (a == b).astype(np.int64),
    "!=": lambda a, b: (a != b).astype(np.int64),
    "<": lambda a, b: (a < b).astype(np.int64),
    "<=": lambda a, b: (a <= b).astype(np.int64),
    ">": lambda a, b: (a > b).astype(np.int64),
    ">=": lambda a, b: (a >= b).astype(np.int64),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "min": np.minimum,
    "max": np.maximum,
    "just": lambda a: a + 1,
}


class Columns:
    """The states of an exploration by cell: ``columns[position]`` has one code a state."""

    def __init__(self, states: Sequence[Codes]) -> None:
        self.states = len(states)
        self._states = states
        self._table: NDArray[np.int64] | None = None

    def __getitem__(self, position: int) -> NDArray[np.int64]:
        unpack = getattr(self._states, "column", None)  # packed states give a column at once
        if unpack is not None:
            column: NDArray[np.int64] = unpack(position)
            return column
        if self._table is None:
            self._table = np.array(self._states, dtype=np.int64).reshape(self.states, -1)
        return self._table[:, position]


def truth(condition: Node, columns: Columns) -> NDArray[np.bool_]:
    """Return in which states a ground condition is true, shape (states,)."""
    held: NDArray[np.bool_] = column(condition, columns) != 0
    return held


def column(node: Node, columns: Columns) -> NDArray[np.int64]:
    """Return the value of a ground tree in each state, shape (states,)."""
    return np.broadcast_to(_column(node, columns), (columns.states,))


def _column(node: Node, columns: Columns) -> Column:
    match node:
        case Literal(value):
            return np.int64(value)
        case Cell(position, _, False):
            return columns[position]
        case Apply(operator, arguments):
            return _COLUMNS[operator](*(_column(argument, columns) for argument in arguments))
        case _:
            raise ValueError(f"{type(node).__name__} has no column")
