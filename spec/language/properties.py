"""Properties: what must hold, of a state, of a step, of the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fivestate.spec.language.declare import Cells, State, Variable
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.terms import Term, exists, lift
from fivestate.spec.language.tracing import ActionSource, docstring, parameters
from fivestate.spec.language.trees import Boolean, Bound, Node, Took


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
            SpecError: the body misuses the language.
        """
        sentence, reasons = docstring(self.function)
        states = [variables()]
        if self.kind is Kind.STEP:
            states.append(variables(after=True))
        with parameters(self.function, skip=len(states)) as elements:
            condition: object = self.function(*states, *elements)
        if not isinstance(condition, Term):
            message = (
                f"{self.name} is {condition!r} whatever the state is: return a condition on it, "
                "and compare with == (not 'is')"
            )
            raise SpecError(message)
        bounds = tuple(element.node for element in elements)
        return Property(
            self.clause,
            self.name,
            self.kind,
            sentence,
            reasons,
            tuple(bound for bound in bounds if isinstance(bound, Bound)),
            lift(self.given, Boolean()),
            lift(condition, Boolean()),
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


__all__ = ["Kind", "Property", "changes", "escape", "invariant", "step", "took", "witness"]
