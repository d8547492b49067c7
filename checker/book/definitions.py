"""Definitions: the helpers of a source, each run once on symbols, to be found again in trees."""

from __future__ import annotations

import inspect
import typing
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, TypeVar

from fivestate.checker.book import docstrings
from fivestate.spec.language.declare import State
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.terms import Term, binding
from fivestate.spec.language.tracing import docstring
from fivestate.spec.language.trees import (
    Apply,
    Bound,
    Constant,
    Literal,
    May,
    Node,
    Quantified,
    Read,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


class Number(Sort, letter="x", low=0, high=0):
    """A number that a definition is given."""


@dataclass(frozen=True)
class Definition:
    """A helper of the source: its name, what it is given, its normative sentence, its body.

    ``module`` and ``line`` say where it is written.
    """

    name: str
    parameters: tuple[Bound, ...]
    sentence: str
    body: Node
    module: str
    line: int

    @cached_property
    def size(self) -> int:
        """How many nodes the body has."""
        return sum(1 for _ in walk(self.body))

    def applied(self, node: Node) -> Apply | None:
        """Return ``name(arguments)`` if ``node`` is this definition's body for some arguments."""
        match = _Match(frozenset(self.parameters))
        if not match.equal(self.body, node) or len(match.found) < len(self.parameters):
            return None
        arguments = tuple(match.found[bound.name] for bound in self.parameters)
        return Apply(f"{self.name}′" if match.after else self.name, arguments, node.type)


def definitions(module: ModuleType, state: type[State]) -> Iterator[Definition]:
    """Yield the helpers that a module has for a machine of these variables."""
    said = docstrings.constants(module)
    for name, value in vars(module).items():
        if isinstance(value, FunctionType):
            definition = _of_function(value, state)
        elif type(value) is Term:  # a condition on constants; a constant itself is of a subclass
            says = said.get(name, "")
            definition = Definition(name, (), says, value.node, module.__name__, 0)
        else:
            definition = None
        if definition is not None and _worth_a_name(definition.body):
            yield definition


def _of_function(function: FunctionType, state: type[State]) -> Definition | None:
    """Run a helper over a state, over numbers or over both, on symbols; any other is none."""
    names = list(inspect.signature(function).parameters)
    if not names or not function.__module__.startswith("fivestate.spec."):
        return None
    try:
        hints = typing.get_type_hints(function)
    except NameError:  # a name that is there for the type checker alone: no helper of a machine
        return None
    first = hints.get(names[0])
    reads = isinstance(first, type) and issubclass(first, State) and issubclass(state, first)
    given = names[1:] if reads else names
    sorts = [_sort(hints.get(name)) for name in given]
    if None in sorts or not _is_number(hints.get("return")):
        return None
    with ExitStack() as stack:
        elements = [
            stack.enter_context(binding(sort, name))
            for sort, name in zip(sorts, given, strict=True)
            if sort is not None
        ]
        # A plain Term keeps the order of `low <= x`; Python asks a subclass on the right first.
        terms = [Term(e.node) if isinstance(e, Number) else e for e in elements]
        try:
            body: Term = function(*([state()] if reads else []), *terms)
        except SpecError:  # a helper over truth values, or one that assigns
            return None
    bounds = tuple(e.node for e in elements if isinstance(e.node, Bound))
    return Definition(
        function.__name__,
        bounds,
        docstring(function)[0],
        body.node,
        function.__module__,
        function.__code__.co_firstlineno,
    )


def _sort(hint: object) -> type[Sort] | None:
    """Return the sort a parameter ranges over."""
    for choice in (hint, *typing.get_args(hint)):
        if isinstance(choice, type) and issubclass(choice, Sort):
            return choice
    return Number if _is_number(hint) else None


def _is_number(hint: object) -> bool:
    """Say whether a hint is a plain ``Term``, taken as a number, alone or among others."""
    choices = hint.__constraints__ if isinstance(hint, TypeVar) else typing.get_args(hint)
    return Term in {hint, *choices}


def _worth_a_name(body: Node) -> bool:
    """A cell, or a cell compared with a value, reads better as it is."""
    match body:
        case Apply(_, arguments):
            return any(
                not isinstance(part, Read | Constant | Bound | Literal) for part in arguments
            )
        case Quantified():
            return True
        case _:
            return False


class _Match:
    """Whether a tree is a definition's body, and for which arguments."""

    def __init__(self, parameters: frozenset[Bound]) -> None:
        self.found: dict[str, Node] = {}
        self.after: bool | None = None
        self._parameters = parameters
        self._inner: dict[str, str] = {}

    def equal(self, body: Node, node: Node) -> bool:
        """Say whether ``node`` is ``body`` with nodes for its parameters, throughout."""
        match body, node:
            case Bound(), _ if body in self._parameters:
                return self._argument(body, node)
            case Bound(name), Bound(other):
                return self._inner.get(name) == other
            case Read(variable, indices), Read() if variable == node.variable:
                return self._moment(body.after, node.after) and self._all(indices, node.indices)
            case Constant(name, indices), Constant() if name == node.name:
                return self._all(indices, node.indices)
            case May(action, arguments), May() if action == node.action:
                return self._all(arguments, node.arguments)
            case Apply(operator, arguments), Apply() if operator == node.operator:
                return self._all(arguments, node.arguments)
            case Quantified(quantifier, bound), Quantified() if (
                quantifier == node.quantifier and bound.sort is node.bound.sort
            ):
                self._inner[bound.name] = node.bound.name
                return self.equal(body.body, node.body)
            case _:
                return body == node

    def _moment(self, written: bool, read: bool) -> bool:  # noqa: FBT001 -- of two reads
        """Say whether all reads are moved alike: none, or all from before the step to behind it."""
        moved = read and not written
        if (written and not read) or self.after not in {None, moved}:
            return False
        self.after = moved
        return True

    def _all(self, bodies: tuple[Node, ...], nodes: tuple[Node, ...]) -> bool:
        return len(bodies) == len(nodes) and all(map(self.equal, bodies, nodes))

    def _argument(self, parameter: Bound, node: Node) -> bool:
        if parameter.name in self.found:
            return self.found[parameter.name] == node
        inside = set(self._inner.values())
        if any(isinstance(each, Bound) and each.name in inside for each in walk(node)):
            return False
        self.found[parameter.name] = node
        return parameter.type == node.type
