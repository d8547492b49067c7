"""Numbers that run through the specification's own functions and come out as z3 terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations
from types import FunctionType
from typing import Any, TypeVar

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.encode import Translator
from fivestate.checker.prove.instances import AnySize
from fivestate.checker.prove.signature import Expression
from fivestate.spec.language import Size, Term, max_, min_
from fivestate.spec.reuse.groups import CacheGroup, Shape
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW

F = TypeVar("F", bound=Callable[..., Any])
_HIGHEST = 2**62


@dataclass
class Numbers:
    """The unknown numbers of one question, and what is given of them.

    A quotient by a number that is unknown too is a *witness*: a new number that, times the
    divisor, leaves less than the divisor. z3 settles that; with symbolic ``%`` it does not.
    """

    given: list[Expression] = field(default_factory=list[Expression])
    _quotients: dict[tuple[int, int], tuple[Expression, ...]] = field(
        default_factory=dict[tuple[int, int], tuple[Expression, ...]],
    )

    def new(self, name: str, least: int = 0) -> Any:
        """Return an unknown number of at least ``least``, to be passed where a number is wanted."""
        self.given.append(z3.Int(name) >= least)
        return Size(name, "any number", least, _HIGHEST)

    def z3(self, number: Any) -> Expression:
        """Return a number, or a truth value of numbers, as a z3 term."""
        if not isinstance(number, Term):
            return z3.IntVal(int(number)) if not isinstance(number, bool) else z3.BoolVal(number)
        return Translator(AnySize(), divide=self._quotient).value(number.node, {})

    def span(self, span: tuple[Any, Any]) -> tuple[Expression, Expression]:
        """Return a span of traced numbers as z3 terms."""
        start, end = span
        return self.z3(start), self.z3(end)

    def ordered(self, factor: Expression, *numbers: Expression) -> None:
        """Recall that products by a factor are ordered as what is multiplied.

        z3 seldom finds that itself; ``products_are_ordered`` is a theorem of its own.
        """
        quotients = [q for q, _, divisor in self._quotients.values() if divisor.eq(factor)]
        for one, other in permutations((*numbers, *quotients), 2):
            self.given.append(z3.Implies(factor >= 1, product_order(factor, one, other)))

    def _quotient(self, one: Expression, other: Expression) -> Expression:
        key = one.get_id(), other.get_id()
        if key not in self._quotients:
            quotient = z3.Int(f"quotient {len(self._quotients)}")
            product = other * quotient
            rounded = z3.And(product <= one, one < product + other)
            self.given.append(z3.Implies(other > 0, rounded))
            self._quotients[key] = quotient, one, other
        return self._quotients[key][0]


def product_order(factor: Expression, one: Expression, other: Expression) -> Expression:
    """Say that products by a positive factor are a factor apart, or in the other order."""
    return z3.If(
        one < other, one * factor + factor <= other * factor, one * factor >= other * factor
    )


def symbolic(numbers: Numbers, shape: Shape) -> CacheGroup:
    """Return a group of a shape whose sizes are unknown numbers.

    It goes around the check that sizes are whole numbers: they are, only not known ones.
    """
    group = object.__new__(CacheGroup)
    state = {Shape.RUN: WINDOW, Shape.CHUNK: WINDOW, Shape.OPEN_GROUP: TAIL}
    fields = {field: value.default for field, value in CacheGroup.__dataclass_fields__.items()}
    fields |= {"name": f"any {shape.value}", "state": state.get(shape, COMPRESSED)}
    fields |= {"recurrent": shape is Shape.POINT, "chunked": shape is Shape.CHUNK}
    fields["block_size"] = numbers.new("block", 1)
    if shape in {Shape.PREFIX, Shape.OPEN_GROUP}:
        fields["ratio"] = numbers.new("ratio", 1)
    if shape is Shape.OPEN_GROUP:
        fields["lookback"] = numbers.new("lookback")
    if shape in {Shape.RUN, Shape.CHUNK}:
        fields["window"] = numbers.new("window", 1)
    for name, value in fields.items():
        object.__setattr__(group, name, value)
    return group


def on_terms(function: F) -> F:
    """Return the same code, with ``min`` and ``max`` that take traced numbers too."""
    if not isinstance(function, FunctionType):
        raise TypeError(function)
    names = {**function.__globals__, "min": min_, "max": max_}
    copied: Any = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    same: F = copied
    return same
