"""Traced arithmetic as z3 formulas: the specification's own functions, for every number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3 as _z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.spec.language import Size, Term
from fivestate.spec.language.trees import Apply, Constant, Literal, Node

z3: Any = _z3
"""The solver's package, of which no type checker can make sense."""

Formula = Any
"""A z3 expression."""

_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a / b,  # of integers: z3 rounds down for a positive divisor
    "min": lambda a, b: z3.If(a <= b, a, b),
    "max": lambda a, b: z3.If(a >= b, a, b),
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

_HIGHEST = 2**62


def number(name: str) -> Size:
    """Return a traced number that stands for the z3 integer of the same name."""
    return Size(name, "any number", 0, _HIGHEST)


def known(value: int) -> Term:
    """Return a traced number of a known value."""
    return number("zero") * 0 + value


def formula(term: Term) -> Formula:
    """Return a traced value as a z3 expression.

    Raises:
        ValueError: it reads more than numbers.
    """
    return _translate(term.node)


def _translate(node: Node) -> Formula:
    match node:
        case Literal(value):
            return z3.IntVal(value)
        case Constant(name, ()):
            return z3.Int(name)
        case Apply(operator, arguments) if operator in _OPERATORS:
            return _OPERATORS[operator](*(_translate(argument) for argument in arguments))
        case _:
            message = f"{type(node).__name__} is not arithmetic of numbers"
            raise ValueError(message)
