"""Universes: what quantifiers range over when a tree becomes a z3 term."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.signature import Expression, atoms, enumeration
from fivestate.spec.language.sorts import Sort

Body = Callable[[Expression], Expression]


class Universe(Protocol):
    """How many elements sorts have, and how one speaks of all of them."""

    def elements(self, sort: type[Sort]) -> tuple[Expression, ...] | None:
        """Return every element, or nothing where their number is not known."""
        ...

    def forall(self, sort: type[Sort], name: str, body: Body) -> Expression:
        """Say something of every element of a sort whose elements are not known."""
        ...

    def count(self, sort: type[Sort], holds: Body) -> Expression:
        """Return of how many elements something holds."""
        ...

    def follow(self, before: Expression, after: Expression) -> None:
        """Take note that a step makes one count of another."""
        ...


@dataclass(frozen=True)
class Count:
    """A number of atoms: of all those of which ``holds`` is true of ``element``."""

    sort: type[Sort]
    element: Expression
    holds: Expression
    number: Expression


@dataclass(frozen=True)
class Sized:
    """Sorts of atoms have so many elements, numbers so many values; quantifiers unfold."""

    sizes: Mapping[type[Sort], int]
    ranges: Mapping[type[Sort], range] = field(default_factory=dict[type[Sort], range])

    def elements(self, sort: type[Sort]) -> tuple[Expression, ...] | None:
        """Return every element."""
        if sort.of is not None:
            return enumeration(sort.of)[1]
        if sort.low is not None:
            return tuple(z3.IntVal(value) for value in self.ranges[sort])
        return tuple(self.atoms(sort))

    def forall(self, sort: type[Sort], name: str, body: Body) -> Expression:
        """Say something of each element."""
        del name
        return z3.And([body(element) for element in self.elements(sort) or ()])

    def count(self, sort: type[Sort], holds: Body) -> Expression:
        """Add up."""
        ones = [z3.If(holds(each), 1, 0) for each in self.elements(sort) or ()]
        return z3.Sum(ones) if ones else z3.IntVal(0)

    def follow(self, before: Expression, after: Expression) -> None:
        """Take no note: both are sums."""

    def atoms(self, sort: type[Sort]) -> Iterable[Expression]:
        """Yield the atoms of a sort, named as a story names them."""
        for number in range(self.sizes[sort]):
            yield z3.Const(f"{sort.letter}{number}", atoms(sort))

    def closed(self, sort: type[Sort], element: Expression) -> Expression:
        """Say that an atom is one of the sort's."""
        return z3.Or([element == each for each in self.atoms(sort)])
