"""The expression trees that every reader of the specification walks.

A tree is plain immutable data. Values are *codes*, small integers: a boolean is 0 or 1, an
enum member its position in the enum, an atom of a sort its number, ``NOTHING`` 0 and an atom
that is there 1 + its number, an integer itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fivestate.spec.language.sorts import Sort


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number; variables narrow it to a ``Range``."""


@dataclass(frozen=True, slots=True)
class Enumerated:
    """A member of a Python ``Enum``."""

    enum: type[Enum]


@dataclass(frozen=True, slots=True)
class Atom:
    """An element of a sort that has no structure: only equality is defined."""

    sort: type[Sort]


@dataclass(frozen=True, slots=True)
class Maybe:
    """An atom of a sort, or ``NOTHING``."""

    sort: type[Sort]


@dataclass(frozen=True, slots=True)
class Range:
    """A whole number from ``low`` to ``high``, both included; leaving it is a finding."""

    low: Node
    high: Node


Type = Boolean | Integer | Enumerated | Atom | Maybe


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is the same in every model."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class Constant:
    """A value from ``low`` to ``high`` that a model fixes: a switch, a size, a table's cell."""

    name: str
    indices: tuple[Node, ...]
    type: Type
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A name that a parameter, a quantifier or ``each`` introduces."""

    name: str
    sort: type[Sort]
    type: Type


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a variable's cell, before the step or (``after``) behind it."""

    variable: str
    indices: tuple[Node, ...]
    type: Type
    after: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator and its arguments: see ``OPERATORS``."""

    operator: str
    arguments: tuple[Node, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Quantified:
    """``forall``, ``exists`` (truth values), ``count`` or ``total`` (numbers) over one sort."""

    quantifier: str
    bound: Bound
    body: Node
    type: Type


@dataclass(frozen=True, slots=True)
class Took:
    """In a step property: the step is one of these actions."""

    actions: frozenset[str]
    type: Type = Boolean()

    def __repr__(self) -> str:
        """Return the same text in every process: a set's own order differs."""
        return f"Took({sorted(self.actions)})"


@dataclass(frozen=True, slots=True)
class May:
    """In a witness: the action may be taken now, with these arguments."""

    action: str
    arguments: tuple[Node, ...]
    type: Type = Boolean()


@dataclass(frozen=True, slots=True)
class Cell:
    """A variable's cell in one model, by its position in the state; only in ground trees."""

    position: int
    type: Type
    after: bool = False


Node = Literal | Constant | Bound | Read | Apply | Quantified | Took | May | Cell

OPERATORS = (
    *("not", "and", "or", "implies"),
    *("==", "!=", "<", "<=", ">", ">="),
    *("+", "-", "*", "//", "min", "max"),
    *("ite", "just"),
)
"""``just`` turns an atom into a ``Maybe``; ``ite(c, a, b)`` is ``a`` where ``c``, else ``b``."""

TRUE = Literal(1, Boolean())
FALSE = Literal(0, Boolean())


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it."""
    yield node
    match node:
        case (
            Constant(indices=below)
            | Read(indices=below)
            | Apply(arguments=below)
            | May(arguments=below)
        ):
            for child in below:
                yield from walk(child)
        case Quantified(body=body):
            yield from walk(body)
        case _:
            pass
