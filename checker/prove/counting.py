"""Laws of counting: what is known of the number of atoms that satisfy something.

There may be any number of atoms, so a count is an unknown number, and a step says of the count
behind it only what these laws say. That the laws hold of finite sets is a theorem of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.instances import Grounding
from fivestate.checker.prove.signature import Expression, one_if
from fivestate.checker.prove.signature import numbers as unknown_numbers
from fivestate.checker.prove.universe import Count


def laws(grounding: Grounding, changed: tuple[Expression, ...]) -> Iterator[Expression]:
    """Yield what is known of every count that a problem speaks of.

    Args:
        grounding: the problem; elements that could be exceptions become terms of it.
        changed: the elements that the step names.
    """
    universe = grounding.universe
    for count in list(universe.counts.values()):
        sort = count.element.sort()
        yield none(count, grounding.exception(f"{count.number} counts", sort))
        yield at_least(count, grounding.terms(sort))
    for before, after in list(universe.steps.values()):
        touched = [x for x in changed if x.sort() == before.element.sort()]
        other = grounding.exception(f"{before.number} differs", before.element.sort())
        yield delta(before, after, touched, other)


def holds(count: Count, element: Expression) -> Expression:
    """Say that an element is counted."""
    return z3.substitute(count.holds, (count.element, element))


def at_least(count: Count, elements: list[Expression]) -> Expression:
    """A count is never negative, and not zero if something is counted."""
    known = z3.Or([holds(count, element) for element in elements])
    return z3.And(count.number >= 0, z3.Implies(known, count.number >= 1))


def none(count: Count, exception: Expression) -> Expression:
    """A count is zero, or something is counted."""
    return z3.Or(count.number == 0, holds(count, exception))


def delta(
    before: Count,
    after: Count,
    touched: list[Expression],
    exception: Expression,
) -> Expression:
    """A count changes by what becomes of the elements that are touched, or another changes."""
    changes: list[Expression] = []
    for at, element in enumerate(touched):
        new = z3.And([element != earlier for earlier in touched[:at]])
        more = one_if(holds(after, element)) - one_if(holds(before, element))
        changes.append(z3.If(new, more, 0))
    elsewhere = z3.And(
        *(exception != element for element in touched),
        holds(before, exception) != holds(after, exception),
    )
    return z3.Or(after.number == z3.Sum([before.number, *changes]), elsewhere)


def law_of_delta() -> tuple[Expression, Expression]:
    """Return the start and the step of the proof, by induction on how many elements there are.

    ``f`` and ``g`` agree on all elements but ``a`` and ``b``; ``count_f(n)`` is how many of the
    first ``n`` elements satisfy ``f``. Both are theorems if the delta law is one.
    """
    numbers = z3.IntSort()
    f, g = (z3.Function(name, numbers, z3.BoolSort()) for name in ("f", "g"))
    count_f, count_g = (z3.Function(f"count {x}", numbers, numbers) for x in ("f", "g"))
    a, b, n = unknown_numbers("a b n")

    def seen(x: Expression, size: Expression) -> Expression:
        return z3.If(z3.And(x >= 0, x < size), one_if(g(x)) - one_if(f(x)), 0)

    def law(size: Expression) -> Expression:
        change = seen(a, size) + z3.If(a != b, seen(b, size), 0)
        return count_g(size) == count_f(size) + change

    agree = z3.Implies(z3.And(n != a, n != b), f(n) == g(n))
    empty = z3.And(count_f(0) == 0, count_g(0) == 0)
    next_f = count_f(n + 1) == count_f(n) + one_if(f(n))
    next_g = count_g(n + 1) == count_g(n) + one_if(g(n))
    start = z3.Implies(empty, law(z3.IntVal(0)))
    step = z3.Implies(z3.And(n >= 0, agree, next_f, next_g, law(n)), law(n + 1))
    return start, step


def _counter(name: str) -> Callable[[Expression], Expression]:
    counter: Callable[[Expression], Expression] = z3.Function(name, z3.IntSort(), z3.IntSort())
    return counter


def law_of_none() -> tuple[Expression, Expression]:
    """Return start and step of: a count is not negative, and zero iff nothing is counted.

    ``some(n)`` says that one of the first ``n`` elements satisfies ``f``.
    """
    numbers, truth = z3.IntSort(), z3.BoolSort()
    f, some = z3.Function("f", numbers, truth), z3.Function("some", numbers, truth)
    count = _counter("count f")
    (n,) = unknown_numbers("n")

    def law(size: Expression) -> Expression:
        return z3.And(count(size) >= 0, (count(size) == 0) == z3.Not(some(size)))

    empty = z3.And(count(z3.IntVal(0)) == 0, z3.Not(some(z3.IntVal(0))))
    following = z3.And(
        count(n + 1) == count(n) + one_if(f(n)),
        some(n + 1) == z3.Or(some(n), f(n)),
    )
    return z3.Implies(empty, law(z3.IntVal(0))), z3.Implies(z3.And(following, law(n)), law(n + 1))
