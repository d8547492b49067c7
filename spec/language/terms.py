"""Traced values: what a specification computes with while it is read.

A ``Term`` looks like a number or a truth value and builds a tree instead. Python's ``and``,
``or``, ``not``, ``if`` and ``in`` ask for a truth value *now*, which there is not, so they raise.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, overload

from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.trees import (
    FALSE,
    TRUE,
    Apply,
    Atom,
    Boolean,
    Enumerated,
    Integer,
    Literal,
    Maybe,
    Node,
    Quantified,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fivestate.spec.language.sorts import Sort


class Nothing(Enum):
    """The absence of an atom, in a variable declared ``maybe(sort)``."""

    NOTHING = 0


NOTHING: Final = Nothing.NOTHING

S = TypeVar("S", bound="Sort")

_scope: ContextVar[tuple[str, ...]] = ContextVar("names bound around the term being built")


class Term:
    """A value that is known only by the tree that computes it."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __eq__(self, other: object) -> Term:  # type: ignore[override]  # builds a tree
        return _compare("==", self, other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]  # builds a tree
        return _compare("!=", self, other)

    __hash__ = None  # type: ignore[assignment]  # equality builds a tree, so no dict may ask it

    def __lt__(self, other: Term | int) -> Term:
        return _compare("<", self, other)

    def __le__(self, other: Term | int) -> Term:
        return _compare("<=", self, other)

    def __gt__(self, other: Term | int) -> Term:
        return _compare(">", self, other)

    def __ge__(self, other: Term | int) -> Term:
        return _compare(">=", self, other)

    def __add__(self, other: Term | int) -> Term:
        return _arithmetic("+", self, other)

    def __radd__(self, other: int) -> Term:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Term | int) -> Term:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: int) -> Term:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Term | int) -> Term:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: int) -> Term:
        return _arithmetic("*", other, self)

    def __floordiv__(self, other: Term | int) -> Term:
        return _arithmetic("//", self, other)

    def __and__(self, other: Term | bool) -> Term:
        return _connect("and", self, other)

    __rand__ = __and__

    def __or__(self, other: Term | bool) -> Term:
        return _connect("or", self, other)

    __ror__ = __or__

    def __invert__(self) -> Term:
        return Term(Apply("not", (lift(self, Boolean()),), Boolean()))

    def is_in(self, *values: Term | Enum | int) -> Term:
        """Say that this is one of ``values``."""
        if not values:
            raise SpecError("is_in() needs at least one value")
        return Term(_flat("or", tuple((self == value).node for value in values)))

    def __bool__(self) -> NoReturn:
        raise SpecError(
            "a traced value has no truth value yet: write & | ~ for and/or/not, "
            "(a <= b) & (b <= c) for a <= b <= c, ite() or implies() for if, is_in() for in, "
            "max_() and min_() for max and min",
        )

    def __iter__(self) -> NoReturn:
        raise SpecError("a traced value cannot be iterated: write 'for g in each(Group):'")

    def __contains__(self, item: object) -> NoReturn:
        raise SpecError("'in' needs a truth value: write value.is_in(a, b)")

    def __repr__(self) -> str:
        return f"Term({self.node!r})"


Value = Term | Enum | int
"""What may be assigned or compared: a traced value, an enum member, a number, a truth value."""


def lift(value: object, kind: Type) -> Node:
    """Return the tree of ``value`` where a value of type ``kind`` is wanted.

    Raises:
        SpecError: the value is of another type.
    """
    if isinstance(value, Term):
        node = value.node
        if node.type == kind:
            return node
        if isinstance(kind, Maybe) and node.type == Atom(kind.sort):
            return Apply("just", (node,), kind)
    elif value is NOTHING and isinstance(kind, Maybe):
        return Literal(0, kind)
    elif isinstance(value, Enum):
        if isinstance(kind, Enumerated) and type(value) is kind.enum:
            return Literal(list(kind.enum).index(value), kind)
    elif isinstance(value, bool):
        if isinstance(kind, Boolean):
            return TRUE if value else FALSE
    elif isinstance(value, int) and isinstance(kind, Integer):
        return Literal(value, kind)
    given = describe_type(value.node.type) if isinstance(value, Term) else repr(value)
    message = f"{describe_type(kind)} is wanted here, and {given} is given"
    raise SpecError(message)


def describe_type(kind: Type) -> str:
    """Name a type as a reader of the specification would."""
    match kind:
        case Boolean():
            return "a truth value"
        case Integer():
            return "a whole number"
        case Enumerated(enum):
            return f"a member of {enum.__name__}"
        case Atom(sort):
            return f"an element of {sort.__name__}"
        case Maybe(sort):
            return f"an element of {sort.__name__} or NOTHING"


def implies(condition: Term | bool, consequence: Term | bool) -> Term:  # noqa: FBT001 -- operands
    """Say that where ``condition`` is true, ``consequence`` must be."""
    sides = (lift(condition, Boolean()), lift(consequence, Boolean()))
    return Term(Apply("implies", sides, Boolean()))


def ite(condition: Term, then: Term | Enum | int, otherwise: Term | Enum | int) -> Term:
    """Choose ``then`` where ``condition`` is true, else ``otherwise``."""
    kind = _common_type(then, otherwise)
    sides = (lift(condition, Boolean()), lift(then, kind), lift(otherwise, kind))
    return Term(Apply("ite", sides, kind))


@overload
def max_(one: int, other: int) -> int: ...
@overload
def max_(one: Term, other: Term | int) -> Term: ...
@overload
def max_(one: int, other: Term) -> Term: ...
def max_(one: Term | int, other: Term | int) -> Term | int:
    """Return the larger of two numbers, plain or traced."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    return _arithmetic("max", one, other)


@overload
def min_(one: int, other: int) -> int: ...
@overload
def min_(one: Term, other: Term | int) -> Term: ...
@overload
def min_(one: int, other: Term) -> Term: ...
def min_(one: Term | int, other: Term | int) -> Term | int:
    """Return the smaller of two numbers, plain or traced."""
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other)
    return _arithmetic("min", one, other)


def forall(sort: type[S], body: Callable[[S], Term]) -> Term:
    """Say that ``body`` is true of every element of ``sort``."""
    return _quantified("forall", sort, body)


def exists(sort: type[S], body: Callable[[S], Term]) -> Term:
    """Say that ``body`` is true of some element of ``sort``."""
    return _quantified("exists", sort, body)


def count(sort: type[S], body: Callable[[S], Term]) -> Term:
    """Return the number of elements of ``sort`` of which ``body`` is true."""
    return _quantified("count", sort, body)


def total(sort: type[S], body: Callable[[S], Term]) -> Term:
    """Return the sum of ``body`` over all elements of ``sort``."""
    return _quantified("total", sort, body)


@contextmanager
def binding(sort: type[S], name: str) -> Iterator[S]:
    """Bind a fresh element of ``sort`` while a body is built; the name stays unique."""
    around = _scope.get(())
    unique, number = name, 2
    while unique in around:
        unique, number = f"{name}{number}", number + 1
    token = _scope.set((*around, unique))
    try:
        yield sort(sort.named(unique))
    finally:
        _scope.reset(token)


def _quantified(quantifier: str, sort: type[S], body: Callable[[S], Term]) -> Term:
    name = next(iter(inspect.signature(body).parameters), sort.letter)
    with binding(sort, name) as element:
        summed = quantifier == "total"
        inner = lift(body(element), Integer() if summed else Boolean())
    bound = element.node
    kind: Type = Integer() if quantifier in ("count", "total") else Boolean()
    return Term(Quantified(quantifier, bound, inner, kind))  # type: ignore[arg-type]  # a Bound


def _common_type(one: object, other: object) -> Type:
    kinds = [value.node.type for value in (one, other) if isinstance(value, Term)]
    for kind in kinds:
        if isinstance(kind, Maybe):
            return kind
    for kind in kinds:
        if isinstance(kind, Atom) and (one is NOTHING or other is NOTHING):
            return Maybe(kind.sort)
        return kind
    for value in (one, other):
        if isinstance(value, bool):
            return Boolean()
        if isinstance(value, int):
            return Integer()
        if isinstance(value, Enum):
            return Enumerated(type(value))
    message = f"no type is known for {one!r} and {other!r}"
    raise SpecError(message)


def _compare(operator: str, one: Term, other: object) -> Term:
    kind = one.node.type
    if isinstance(other, Term) and isinstance(other.node.type, Maybe):
        kind = other.node.type
    if operator not in ("==", "!="):
        kind = Integer()
    return Term(Apply(operator, (lift(one, kind), lift(other, kind)), Boolean()))


def _arithmetic(operator: str, one: object, other: object) -> Term:
    return Term(Apply(operator, (lift(one, Integer()), lift(other, Integer())), Integer()))


def _connect(operator: str, one: object, other: object) -> Term:
    try:
        sides = lift(one, Boolean()), lift(other, Boolean())
    except SpecError as error:
        raise SpecError(f"{error}: put comparisons in parentheses, (a == b) & (c == d)") from None
    return Term(_flat(operator, sides))


def _flat(operator: str, nodes: tuple[Node, ...]) -> Node:
    flat: list[Node] = []
    for node in nodes:
        if isinstance(node, Apply) and node.operator == operator:
            flat.extend(node.arguments)
        else:
            flat.append(node)
    return flat[0] if len(flat) == 1 else Apply(operator, tuple(flat), Boolean())
