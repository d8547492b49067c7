"""Actions: Python functions, read once into guards and simultaneous effects."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum

from fivestate.spec.language.declare import State, Variable
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.terms import S, Term, binding, lift
from fivestate.spec.language.trees import Boolean, Bound, Literal, Node, Range, walk

EVERY = "every state"
"""The declared state of an action that concerns all five at once, such as admission."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A named condition without which the action is refused."""

    name: str
    condition: Node


@dataclass(frozen=True, slots=True)
class Effect:
    """One cell, or one for each element of ``over``, gets ``value``, computed before the step."""

    variable: str
    indices: tuple[Node, ...]
    value: Node
    over: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Action:
    """A traced action.

    Attributes:
        clause: its id, ``A-n``.
        name: the function's name, a verb.
        sentence: the normative text, the first sentence of the docstring.
        reasons: the rest of the docstring: why, and the source.
        parameters: what it ranges over, by name.
        state: the member of the state enum it is for, the name of the parameter that says so,
            or ``EVERY``.
        marks: other states whose cells it may mark, as loading entries makes an index stale.
        given: the model has this action only where this is true of its constants.
    """

    clause: str
    name: str
    sentence: str
    reasons: str
    parameters: tuple[Bound, ...]
    state: Enum | str
    marks: tuple[Enum, ...]
    given: Node
    guards: tuple[Guard, ...]
    effects: tuple[Effect, ...]

    @property
    def called(self) -> str:
        """What properties call it: a variant may have a name that goes on behind a comma."""
        return self.name.partition(",")[0]


@dataclass
class Trace:
    """What an action's body says while it runs once."""

    action: str
    guards: list[Guard] = field(default_factory=list[Guard])
    effects: list[Effect] = field(default_factory=list[Effect])
    over: list[Bound] = field(default_factory=list[Bound])

    def require(self, conditions: Mapping[str, Term | bool]) -> None:
        """Record named guards.

        Raises:
            SpecError: behind an assignment, inside ``each``, or with a name used before.
        """
        for name, condition in conditions.items():
            if self.effects or self.over:
                message = (
                    f"{self.action}: guard {name!r} comes after an effect: put require() first"
                )
                raise SpecError(message)
            if any(guard.name == name for guard in self.guards):
                message = f"{self.action}: two guards are called {name!r}: give each its own name"
                raise SpecError(message)
            if not isinstance(condition, Term):
                message = (
                    f"{self.action}: guard {name!r} is {condition!r} whatever the state is: drop "
                    "it, or compare with == (not 'is') and an index"
                )
                raise SpecError(message)
            try:
                self.guards.append(Guard(name, lift(condition, Boolean())))
            except SpecError as error:
                message = f"{self.action}: guard {name!r}: {error}"
                raise SpecError(message) from None

    def assigned(self, variable: Variable, indices: tuple[Node, ...], value: Node) -> None:
        """Record an effect.

        Raises:
            SpecError: the cell has been assigned already, or can never hold the value.
        """
        shown = f"{self.action}: {variable.name}"
        for effect in self.effects:
            if effect.variable == variable.name and effect.indices == indices:
                message = f"{shown} is assigned twice: effects are simultaneous, combine them"
                raise SpecError(message)
        match variable.range, value:
            case Range(Literal(low), Literal(high)), Literal(number) if not low <= number <= high:
                message = f"{shown} = {number} is out of its range {low}..{high}"
                raise SpecError(message)
            case _:
                pass
        used = [bound for bound in self.over if bound in indices]
        if len(used) != len(self.over):
            message = f"{shown}: inside each() the loop's element must be one of the indices"
            raise SpecError(message)
        self.effects.append(Effect(variable.name, indices, value, tuple(self.over)))


_tracing: ContextVar[Trace | None] = ContextVar("the action being traced", default=None)


def _current(what: str) -> Trace:
    trace = _tracing.get()
    if trace is None:
        message = f"{what} belongs in the body of an action"
        raise SpecError(message)
    return trace


def require(**conditions: Term | bool) -> None:
    """Refuse the action unless each of the named conditions is true."""
    _current("require()").require(conditions)


def each(sort: type[S]) -> Iterator[S]:
    """Assign for every element of a sort at once.

    ``for g in each(Group): s.free[g] = ...`` runs its body once, on a symbol.
    """
    trace = _current("each()")
    with binding(sort, sort.letter) as element:
        bound = typing.cast("Bound", element.node)
        trace.over.append(bound)
        yield element
        trace.over.remove(bound)


@contextmanager
def tracing(name: str) -> Iterator[Trace]:
    """Collect what the body that runs inside requires and assigns."""
    trace = Trace(name)
    token = _tracing.set(trace)
    try:
        yield trace
    finally:
        _tracing.reset(token)


@dataclass(frozen=True)
class ActionSource:
    """An action as it is written: traced when a ``Machine`` takes it."""

    clause: str
    function: Callable[..., None]
    state: Enum | str
    marks: tuple[Enum, ...]
    given: Term | bool

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    def trace(self, variables: type[State]) -> Action:
        """Run the body once on symbols and return what it says.

        Raises:
            SpecError: the body misuses the language.
        """
        name = self.name
        sentence, reasons = docstring(self.function)
        with parameters(self.function, skip=1) as elements, tracing(name) as trace:
            self.function(variables(trace), *elements)
        bounds = tuple(typing.cast("Bound", element.node) for element in elements)
        if not trace.effects:
            message = f"{name} has no effect: an action changes something"
            raise SpecError(message)
        _refuse_unused(name, bounds, trace)
        if isinstance(self.state, str) and self.state not in {EVERY, *(b.name for b in bounds)}:
            message = f"{name} declares state={self.state!r}, which is not one of its parameters"
            raise SpecError(message)
        return Action(
            self.clause,
            name,
            sentence,
            reasons,
            bounds,
            self.state,
            self.marks,
            lift(self.given, Boolean()),
            tuple(trace.guards),
            tuple(trace.effects),
        )


def action(
    clause: str,
    *,
    state: Enum | str,
    marks: tuple[Enum, ...] = (),
    given: Term | bool = True,
) -> Callable[[Callable[..., None]], ActionSource]:
    """Make the function below an action.

    Args:
        clause: its id, ``A-n``.
        state: which cache state it is for: a member, the parameter that says so, or ``EVERY``.
        marks: other states whose cells it may mark.
        given: a condition on constants without which a model does not have the action.
    """
    return lambda function: ActionSource(clause, function, state, marks, given)


def docstring(function: Callable[..., object]) -> tuple[str, str]:
    """Return the first sentence of a docstring, which is normative, and the rest.

    Raises:
        SpecError: there is none.
    """
    text = inspect.cleandoc(function.__doc__ or "")
    sentence, _, reasons = text.partition("\n\n")
    if not sentence.endswith("."):
        message = f"{function.__name__} needs a docstring whose first paragraph is one sentence"
        raise SpecError(message)
    return " ".join(sentence.split()), reasons


@contextmanager
def parameters(function: Callable[..., object], *, skip: int) -> Iterator[tuple[Sort, ...]]:
    """Bind the parameters of ``function`` behind the first ``skip``, by their annotations.

    Raises:
        SpecError: a parameter has no sort.
    """
    hints = typing.get_type_hints(function)
    with ExitStack() as stack:
        elements: list[Sort] = []
        for name in list(inspect.signature(function).parameters)[skip:]:
            sort = hints.get(name)
            if not (isinstance(sort, type) and issubclass(sort, Sort)):
                message = f"{function.__name__}: annotate parameter {name!r} with its sort"
                raise SpecError(message)
            elements.append(stack.enter_context(binding(sort, name)))
        yield tuple(elements)


def _refuse_unused(name: str, bounds: tuple[Bound, ...], trace: Trace) -> None:
    trees = [guard.condition for guard in trace.guards]
    for effect in trace.effects:
        trees += [*effect.indices, effect.value]
    used = {node for tree in trees for node in walk(tree)}
    for bound in bounds:
        if bound not in used:
            message = f"{name}: parameter {bound.name!r} is not used: drop it"
            raise SpecError(message)


__all__ = ["EVERY", "Action", "Effect", "Guard", "action", "each", "require"]
