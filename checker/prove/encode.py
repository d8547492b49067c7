"""Traced trees as z3 terms: the one translation, for machines and for arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.signature import (
    Expression,
    Option,
    Value,
    choose,
    equal,
    literal,
    unknown,
    z3_sort,
)
from fivestate.checker.prove.universe import Universe
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.trees import (
    Apply,
    Bound,
    Constant,
    Literal,
    Node,
    Quantified,
    Read,
    Took,
)

View = Callable[[str, tuple[Expression, ...]], Value]
"""A state: gives the value of a variable's cell."""

SMALL_FACTOR = 8
"""A constant with at most so many values multiplies by a table, which keeps terms linear."""


class Translator:
    """Turns trees into z3 terms.

    Args:
        universe: what quantifiers range over.
        here: the state that is read.
        behind: the state behind a step, for step properties.
        took: the action of that step.
        origin: what translates the same in the state before; a count is told how it came about.
        divide: how a quotient by something that is no literal is written; see ``floor``.
    """

    def __init__(  # noqa: PLR0913 -- each is a part of what a tree can read
        self,
        universe: Universe,
        here: View | None = None,
        *,
        behind: View | None = None,
        took: str = "",
        origin: Translator | None = None,
        divide: Callable[[Expression, Expression], Expression] | None = None,
    ) -> None:
        self.universe, self._here, self._behind, self._took = universe, here, behind, took
        self._origin = origin
        self._divide = divide or floor

    def value(self, node: Node, names: Mapping[str, Value]) -> Value:
        """Return the z3 term of a tree; ``names`` gives the values of what is bound around it.

        Raises:
            ValueError: the tree reads what this translator does not have.
        """
        match node:
            case Literal(value, kind):
                return literal(value, kind)
            case Bound(name):
                return names[name]
            case Constant(name, indices, kind):
                over = tuple(index.type for index in indices)
                return unknown(name, over, kind, self._values(indices, names))
            case Read(variable, indices, _, after):
                view = self._behind if after else self._here
                if view is None:
                    raise ValueError(f"{variable} is read, and there is no state")
                return view(variable, self._values(indices, names))
            case Took(actions):
                return z3.BoolVal(self._took in actions)
            case Quantified():
                return self._quantified(node, names)
            case Apply("*", (factor, other)) if small(factor) or small(other):
                return self._by_table(factor, other, names)
            case Apply(operator, arguments):
                return self._apply(operator, self._values(arguments, names))
            case _:
                raise ValueError(f"{type(node).__name__} has no z3 term")

    def there(self, sort: type[Sort], element: Expression) -> Expression:
        """Say that an element is one of the sort's: a chosen member, a number in its range."""
        if sort.of is not None:
            return present(sort, element)
        if sort.low is not None and sort.high is not None:
            return z3.And(self.value(sort.low, {}) <= element, element <= self.value(sort.high, {}))
        return z3.BoolVal(val=True)

    def _values(self, nodes: tuple[Node, ...], names: Mapping[str, Value]) -> tuple[Value, ...]:
        return tuple(self.value(node, names) for node in nodes)

    def _quantified(self, whole: Quantified, names: Mapping[str, Value]) -> Expression:
        bound, body = whole.bound, whole.body
        sort = bound.sort

        def within(element: Expression) -> Expression:
            return self.value(body, {**names, bound.name: element})

        def holds(element: Expression) -> Expression:
            return z3.And(self.there(sort, element), within(element))

        def fails(element: Expression) -> Expression:
            return z3.Not(holds(element))

        def follows(element: Expression) -> Expression:
            return z3.Implies(self.there(sort, element), within(element))

        known = self.universe.elements(sort)
        match whole.quantifier:
            case "forall":
                if known is not None:
                    return z3.And([follows(each) for each in known])
                return self.universe.forall(sort, bound.name, follows)
            case "exists":
                if known is not None:
                    return z3.Or([holds(each) for each in known])
                return z3.Not(self.universe.forall(sort, bound.name, fails))
            case "count":
                if known is not None:
                    return z3.Sum([z3.If(holds(each), 1, 0) for each in known])
                number = self.universe.count(sort, holds)
                if self._origin is not None:
                    self.universe.follow(self._origin.value(whole, names), number)
                return number
            case _:
                if known is None:
                    raise ValueError(f"a sum over all of {sort.__name__} is not encoded")
                return z3.Sum([z3.If(self.there(sort, x), within(x), 0) for x in known])

    def _by_table(self, factor: Node, other: Node, names: Mapping[str, Value]) -> Expression:
        if not small(factor):
            factor, other = other, factor
        if not isinstance(factor, Constant):
            raise TypeError(factor)
        times, what = self.value(factor, names), self.value(other, names)
        product = z3.IntVal(factor.high) * what
        for number in range(factor.high - 1, factor.low - 1, -1):
            product = z3.If(times == number, z3.IntVal(number) * what, product)
        return product

    def _apply(self, operator: str, values: tuple[Value, ...]) -> Value:
        match operator, values:
            case "==", (one, other):
                return equal(one, other)
            case "!=", (one, other):
                return z3.Not(equal(one, other))
            case "ite", (condition, then, otherwise):
                return choose(condition, then, otherwise)
            case "just", (atom,):
                return Option(z3.BoolVal(val=True), atom)
            case "//", (one, other):
                if z3.is_int_value(other) and other.as_long() > 0:
                    return one / other
                return self._divide(one, other)
            case _:
                return OPERATORS[operator](*values)


OPERATORS: dict[str, Callable[..., Any]] = {
    "not": z3.Not,
    "and": z3.And,
    "or": z3.Or,
    "implies": z3.Implies,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda *values: z3.Sum(values),
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "min": lambda a, b: z3.If(a <= b, a, b),
    "max": lambda a, b: z3.If(a >= b, a, b),
}
"""What the operators are in z3; equality, choice and division are told apart in ``_apply``."""


def floor(one: Expression, other: Expression) -> Expression:
    """Return a quotient rounded down, as Python does it.

    z3 leaves a remainder that is never negative, so by a negative divisor it rounds *up*.
    """
    return z3.If(other > 0, one / other, -one / -other)


def small(node: Node) -> bool:
    """Say whether a factor is a constant of few values."""
    return isinstance(node, Constant) and node.high - node.low < SMALL_FACTOR


def present(sort: type[Sort], member: Expression) -> Expression:
    """Say that a geometry has a member of the sort: which it has is not fixed."""
    kind = sort.element_type()
    return z3.Function(f"has {sort.__name__}", z3_sort(kind), z3.BoolSort())(member)
