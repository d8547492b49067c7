"""What z3 calls the things that trees speak of: sorts, members, constants, cells."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any, NamedTuple

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.spec.language.settings import sort_setting
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.trees import Atom, Boolean, Enumerated, Integer, Maybe, Type

Expression = Any
"""A z3 expression."""


class Option(NamedTuple):
    """An element of a sort, or ``NOTHING``: whether it is there, and which it then is."""

    there: Expression
    atom: Expression


Value = Any
"""A z3 expression, or an ``Option`` where the tree's type is ``Maybe``."""


_ATOMS: dict[type[Sort], Any] = {}


@cache
def enumeration(enum: type[Enum]) -> tuple[Any, tuple[Any, ...]]:
    """Return the z3 sort of an enum, and its members in their order."""
    sort, members = z3.EnumSort(enum.__name__, [member.name for member in enum])
    return sort, tuple(members)


def atoms(sort: type[Sort]) -> Any:
    """Return the z3 sort of a sort whose elements have no structure."""
    if sort not in _ATOMS:
        _ATOMS[sort] = z3.DeclareSort(sort.__name__)
    return _ATOMS[sort]


def z3_sort(kind: Type) -> Any:
    """Return the z3 sort of a type."""
    match kind:
        case Boolean():
            return z3.BoolSort()
        case Integer():
            return z3.IntSort()
        case Enumerated(enum):
            return enumeration(enum)[0]
        case Atom(sort) | Maybe(sort):
            return atoms(sort)


def literal(value: int, kind: Type) -> Value:
    """Return a code as a value of its type.

    Raises:
        ValueError: the code is an atom's: atoms have no names where there may be any number.
    """
    match kind:
        case Boolean():
            return z3.BoolVal(bool(value))
        case Integer():
            return z3.IntVal(value)
        case Enumerated(enum):
            return enumeration(enum)[1][value]
        case Maybe(sort) if value == 0:
            return Option(z3.BoolVal(val=False), anything(sort))
        case _:
            raise ValueError(f"code {value} of {kind} has no z3 value")


def anything(sort: type[Sort]) -> Expression:
    """Return some atom of a sort: what stands in an ``Option`` that is not there."""
    return z3.Const(f"any {sort_setting(sort)}", atoms(sort))


def symbol(name: str, kind: Type) -> Value:
    """Return an unknown value of a type."""
    if isinstance(kind, Maybe):
        return Option(z3.Bool(f"{name} is there"), z3.Const(name, atoms(kind.sort)))
    return z3.Const(name, z3_sort(kind))


def unknown(name: str, over: tuple[Type, ...], kind: Type, indices: tuple[Any, ...]) -> Value:
    """Return the unknown value called ``name`` at some indices, whose types are ``over``."""
    if not over:
        return symbol(name, kind)
    if isinstance(kind, Maybe):
        there = unknown(f"{name} is there", over, Boolean(), indices)
        return Option(there, unknown(name, over, Atom(kind.sort), indices))
    function = z3.Function(name, *(z3_sort(index) for index in over), z3_sort(kind))
    return function(*indices)


def numbers(names: str) -> tuple[Expression, ...]:
    """Return the unknown numbers of these names."""
    return tuple(z3.Ints(names))


def one_if(condition: Expression) -> Expression:
    """Return 1 where a condition is true, else 0."""
    return z3.If(condition, 1, 0)


def equal(one: Value, other: Value) -> Expression:
    """Return whether two values of one type are the same."""
    if isinstance(one, Option) and isinstance(other, Option):
        same = z3.Implies(one.there, one.atom == other.atom)
        return z3.And(one.there == other.there, same)
    return one == other


def choose(condition: Expression, then: Value, otherwise: Value) -> Value:
    """Return one of two values of one type."""
    if isinstance(then, Option) and isinstance(otherwise, Option):
        return Option(
            z3.If(condition, then.there, otherwise.there),
            z3.If(condition, then.atom, otherwise.atom),
        )
    return z3.If(condition, then, otherwise)
