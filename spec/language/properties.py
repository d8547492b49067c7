"""Properties: what must hold, of a state, of a step, of the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fivestate.spec.language.declare import State
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.terms import Term, lift
from fivestate.spec.language.tracing import ActionSource, docstring, parameters
from fivestate.spec.language.trees import Boolean, Bound, Node, Took


class Kind(StrEnum):
    """How a property is judged."""

    INVARIANT = "invariant"  # true of every reachable state
    STEP = "step"  # true of every reachable step: before, action, after
    WITNESS = "witness"  # true of some reachable state: what it speaks of does happen
    ESCAPE = "escape"  # whoever is in such a state can still get out of it: nobody is stuck
    RANGE = "range"  # no variable leaves its declared range
    REFINEMENT = "refinement"  # every step is a step of a simpler machine, or none


@dataclass(frozen=True)
class Property:
    """A traced property; ``parameters`` are read as *for all*, in a witness as *for some*."""

    clause: str
    name: str
    kind: Kind
    sentence: str
    reasons: str
    parameters: tuple[Bound, ...]
    given: Node
    condition: Node


@dataclass(frozen=True)
class PropertySource:
    """A property as it is written: traced when a ``Machine`` takes it."""

    clause: str
    kind: Kind
    function: Callable[..., Term]
    given: Term | bool

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    def trace(self, variables: type[State]) -> Property:
        """Run the body once on symbols and return what it says.

        Raises:
        ------
            SpecError: the body misuses the language.
        """
        sentence, reasons = docstring(self.function)
        states = [variables()]
        if self.kind is Kind.STEP:
            states.append(variables(after=True))
        with parameters(self.function, skip=len(states)) as elements:
            condition = lift(self.function(*states, *elements), Boolean())
        bounds = tuple(element.node for element in elements)
        return Property(
            self.clause,
            self.name,
            self.kind,
            sentence,
            reasons,
            tuple(bound for bound in bounds if isinstance(bound, Bound)),
            lift(self.given, Boolean()),
            condition,
        )


def _decorator(
    clause: str,
    kind: Kind,
    given: Term | bool,  # noqa: FBT001 -- a condition on constants
) -> Callable[[Callable[..., Term]], PropertySource]:
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
) -> Callable[[Callable[..., Term]], PropertySource]:
    """Make the function below a witness: some reachable state must satisfy it."""
    return _decorator(clause, Kind.WITNESS, given)


def escape(
    clause: str,
    *,
    given: Term | bool = True,
) -> Callable[[Callable[..., Term]], PropertySource]:
    """Make the function below an escape: from each state that satisfies it a way leads out."""
    return _decorator(clause, Kind.ESCAPE, given)


def took(*actions: ActionSource) -> Term:
    """Say, in a step property, that the step is one of ``actions``."""
    if not actions:
        raise SpecError("took() needs at least one action")
    return Term(Took(frozenset(action.name for action in actions)))


__all__ = ["Kind", "Property", "escape", "invariant", "step", "took", "witness"]
