"""Properties: what must hold, of a state, of a step, of the graph."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum

from fivestate.spec.language.declare import Cells, State, Variable, lift_indices
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.terms import Term, exists, lift
from fivestate.spec.language.tracing import ActionSource, docstring, parameters
from fivestate.spec.language.trees import Boolean, Bound, May, Node, Took


class Kind(StrEnum):
    """How a property is judged."""

    INVARIANT = "invariant"  # true of every reachable state
    STEP = "step"  # true of every reachable step: before, action, after
    WITNESS = "witness"  # true of some reachable state: what it speaks of does happen
    ESCAPE = "escape"  # whoever is in such a state can still get out of it: nobody is stuck
    LIVENESS = "liveness"  # an escape that is taken, if what is promised to happen does
    RANGE = "range"  # no variable leaves its declared range
    REFINEMENT = "refinement"  # every step is a step of a simpler machine, or none


@dataclass(frozen=True)
class Property:
    """A traced property; ``parameters`` are read as *for all*, in a witness as *for some*.

    Where one sentence asks for several things, each is a property, and ``way`` says which.
    """

    clause: str
    name: str
    kind: Kind
    sentence: str
    reasons: str
    parameters: tuple[Bound, ...]
    given: Node
    condition: Node
    way: str = ""


class Ways:
    """What one witness asks for, under names: each has to be shown, in a state of its own."""

    def __init__(self, terms: dict[str, Term]) -> None:
        self.terms = terms


def ways(**terms: Term) -> Ways:
    """Return what a witness asks for, where that is more than one thing."""
    return Ways(terms)


@dataclass(frozen=True)
class PropertySource:
    """A property as it is written: traced when a ``Machine`` takes it."""

    clause: str
    kind: Kind
    function: Callable[..., Term | Ways]
    given: Term | bool

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    def trace(self, variables: type[State]) -> Property:
        """Run the body once on symbols and return the one thing that it says.

        Raises:
            SpecError: the body misuses the language, or says several things.
        """
        said = self.traces(variables)
        if len(said) != 1:
            raise SpecError(f"{self.name} says {len(said)} things: one is wanted here")
        return said[0]

    def traces(self, variables: type[State]) -> tuple[Property, ...]:
        """Run the body once on symbols and return what it says: most say one thing.

        Raises:
            SpecError: the body misuses the language.
        """
        sentence, reasons = docstring(self.function)
        states = [variables()]
        if self.kind is Kind.STEP:
            states.append(variables(after=True))
        with parameters(self.function, skip=len(states)) as elements:
            said: object = self.function(*states, *elements)
        several = isinstance(said, Ways)
        if several and self.kind is not Kind.WITNESS:
            raise SpecError(f"{self.name} is no witness: only that may ask for several ways()")
        conditions: dict[str, object] = dict(said.terms) if isinstance(said, Ways) else {"": said}
        bounds = tuple(element.node for element in elements)
        return tuple(
            Property(
                self.clause,
                f"{self.name}_{way}" if way else self.name,
                self.kind,
                sentence,
                reasons,
                tuple(bound for bound in bounds if isinstance(bound, Bound)),
                lift(self.given, Boolean()),
                self._condition(condition),
                way,
            )
            for way, condition in conditions.items()
        )

    def _condition(self, condition: object) -> Node:
        if not isinstance(condition, Term):
            message = (
                f"{self.name} is {condition!r} whatever the state is: return a condition on it, "
                "and compare with == (not 'is')"
            )
            raise SpecError(message)
        return lift(condition, Boolean())


def _decorator(
    clause: str,
    kind: Kind,
    given: Term | bool,  # noqa: FBT001 -- a condition on constants
) -> Callable[[Callable[..., Term | Ways]], PropertySource]:
    return lambda function: PropertySource(clause, kind, function, given)


def invariant(
    clause: str,
    *,
    given: Term | bool = True,
) -> Callable[[Callable[..., Term]], PropertySource]:
    """Make the function below a state invariant: ``def f(s, r: Request) -> Term``."""
    return _decorator(clause, Kind.INVARIANT, given)


def step(
    clause: str,
    *,
    given: Term | bool = True,
) -> Callable[[Callable[..., Term]], PropertySource]:
    """Make the function below a step property: ``def f(before, after, r: Request) -> Term``."""
    return _decorator(clause, Kind.STEP, given)


def witness(
    clause: str,
    *,
    given: Term | bool = True,
) -> Callable[[Callable[..., Term | Ways]], PropertySource]:
    """Make the function below a witness: some reachable state must satisfy it.

    If it returns ``ways(one=..., other=...)``, each of them must be satisfied by some state.
    """
    return _decorator(clause, Kind.WITNESS, given)


def escape(
    clause: str,
    *,
    given: Term | bool = True,
) -> Callable[[Callable[..., Term]], PropertySource]:
    """Make the function below an escape: from each state that satisfies it a way leads out."""
    return _decorator(clause, Kind.ESCAPE, given)


def changes(before: State, after: State) -> Term:
    """Say, in a step property, that the step changes the value of some cell."""
    differences = [_differs(before, after, variable) for variable in before.variables.values()]
    different = differences[0]
    for other in differences[1:]:
        different = different | other
    return different


def _differs(before: State, after: State, variable: Variable) -> Term:
    def differ(*indices: Sort) -> Term:
        if len(indices) < len(variable.over):
            return exists(variable.over[len(indices)], lambda i: differ(*indices, i))
        nodes = tuple(index.node for index in indices)
        return Cells(before, variable).read(nodes) != Cells(after, variable).read(nodes)

    return differ()


def took(*actions: ActionSource) -> Term:
    """Say, in a step property, that the step is one of ``actions``."""
    if not actions:
        raise SpecError("took() needs at least one action")
    return Term(Took(frozenset(action.name for action in actions)))


def may(action: ActionSource, *arguments: Sort | Enum) -> Term:
    """Say, in a witness, that an action may be taken now with these arguments."""
    hints = typing.get_type_hints(action.function)
    sorts = [hints[name] for name in list(inspect.signature(action.function).parameters)[1:]]
    if len(sorts) != len(arguments):
        shown = ", ".join(sort.__name__ for sort in sorts) or "nothing"
        raise SpecError(f"{action.name} takes {shown}, and {len(arguments)} arguments are given")
    return Term(May(action.name, lift_indices(action.name, tuple(sorts), arguments)))


__all__ = [
    "Kind",
    "Property",
    "changes",
    "escape",
    "invariant",
    "may",
    "step",
    "took",
    "ways",
    "witness",
]
