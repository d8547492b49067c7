"""Machines: variables, the written-out ``NEXT``, and the properties that must hold of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from fivestate.spec.language.declare import State
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.properties import Kind, Property, PropertySource
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.tracing import (
    EVERY,
    Action,
    ActionSource,
    Effect,
    docstring,
    tracing,
)
from fivestate.spec.language.trees import (
    Bound,
    Constant,
    Literal,
    May,
    Node,
    Quantified,
    Read,
    Took,
    walk,
)


@dataclass(frozen=True)
class Fairness:
    """What liveness may rely on: each promise is about an action with each of its arguments.

    Attributes:
        weak: taken if it stays possible.
        strong: taken if it becomes possible again and again.
        finite: taken only finitely often: faults, aborts, changes.
    """

    weak: tuple[ActionSource, ...]
    strong: tuple[ActionSource, ...] = ()
    finite: tuple[ActionSource, ...] = ()


@dataclass(frozen=True)
class Machine:
    """A state machine, traced once.

    Attributes:
        name: what traces and tables call it.
        state: its variables.
        next: its actions; the order decides which of two equally short stories is told.
        properties: what is checked, the most telling first.
        routes: the sort of the cache states, if cells are routed by it: an action then only
            writes cells of the state it declares (I-2).
        fairness: what its liveness may rely on; without it, nothing is promised.
        laws: what a model's settings must satisfy; they speak of constants only.
    """

    name: str
    state: type[State]
    next: tuple[ActionSource | Action, ...]
    properties: tuple[PropertySource, ...]
    routes: type[Sort] | None = None
    fairness: Fairness = Fairness(())
    laws: tuple[PropertySource, ...] = ()

    def __post_init__(self) -> None:
        """Trace everything, so that a mistake is found where the machine is written."""
        _refuse_twice("action", [source.name for source in self.next])
        _refuse_twice("property", [claim.name for claim in self.claims])
        self._refuse_unused()
        self._refuse_took()
        self._refuse_may()
        for traced in self.actions:
            self._refuse_ghost_reads(traced)
        if self.routes is not None:
            for traced in self.actions:
                for effect in traced.effects:
                    self._refuse_misrouted(self.routes, traced, effect)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The traced actions, in the order of ``next``."""
        return tuple(
            source if isinstance(source, Action) else source.trace(self.state)
            for source in self.next
        )

    @cached_property
    def claims(self) -> tuple[Property, ...]:
        """The traced properties, in the order of ``properties``."""
        return tuple(claim for source in self.properties for claim in source.traces(self.state))

    @cached_property
    def rules(self) -> tuple[Property, ...]:
        """The traced laws of the settings."""
        return tuple(source.trace(self.state) for source in self.laws)

    @cached_property
    def sorts(self) -> tuple[type[Sort], ...]:
        """Every sort that a variable, an action or a property ranges over."""
        found = dict.fromkeys(s for v in self.state.variables.values() for s in v.over)
        found.update((b.sort, None) for traced in self.actions for b in traced.parameters)
        found.update((b.sort, None) for claim in self.claims for b in claim.parameters)
        for node in self._nodes():
            if isinstance(node, Quantified):
                found[node.bound.sort] = None
        return tuple(found)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Every switch, size and cell of a table that a model has to fix."""
        trees = list(self._nodes())
        for sort in self.sorts:
            trees += [bound for bound in (sort.low, sort.high) if bound is not None]
        for variable in self.state.variables.values():
            indices = [sort.named(sort.letter) for sort in variable.over]
            trees += [variable.initial_at(*indices), variable.given]
            if variable.range is not None:
                trees += [variable.range.low, variable.range.high]
        nodes = (node for tree in trees for node in walk(tree))
        found = dict.fromkeys(node for node in nodes if isinstance(node, Constant))
        return tuple(sorted(found, key=lambda node: node.name))

    def _nodes(self) -> Iterator[Node]:
        for traced in self.actions:
            trees = [traced.given, *(guard.condition for guard in traced.guards)]
            for effect in traced.effects:
                trees += [*effect.indices, effect.value]
            for tree in trees:
                yield from walk(tree)
        for claim in self.claims:
            yield from walk(claim.given)
            yield from walk(claim.condition)

    def _refuse_unused(self) -> None:
        read = {node.variable for node in self._nodes() if isinstance(node, Read)}
        written = {effect.variable for traced in self.actions for effect in traced.effects}
        for name in self.state.variables:
            if name not in read:
                message = f"{self.name}: variable {name!r} is never read: drop it or use it"
                raise SpecError(message)
            if name not in written:
                message = f"{self.name}: variable {name!r} never changes: make it a constant"
                raise SpecError(message)

    def _refuse_took(self) -> None:
        names = {source.name for source in self.next}
        for claim in self.claims:
            for node in walk(claim.condition):
                if isinstance(node, Took) and claim.kind is not Kind.STEP:
                    message = f"{claim.name} is no step property: only that may ask took()"
                    raise SpecError(message)
                if isinstance(node, Took) and not node.actions <= names:
                    unknown = ", ".join(sorted(node.actions - names))
                    message = f"{claim.name} asks took({unknown}), which is not in NEXT: add it"
                    raise SpecError(message)

    def _refuse_may(self) -> None:
        names = {action.called for action in self.actions}
        for claim in self.claims:
            for node in walk(claim.condition):
                if isinstance(node, May) and claim.kind is not Kind.WITNESS:
                    message = f"{claim.name} is no witness: only that may ask may()"
                    raise SpecError(message)
                if isinstance(node, May) and node.action not in names:
                    message = f"{claim.name} asks may({node.action}), which is not in NEXT: add it"
                    raise SpecError(message)

    def _refuse_ghost_reads(self, traced: Action) -> None:
        """Refuse an action in which a ghost decides anything but another ghost."""
        variables = self.state.variables
        trees = [(f"guard {guard.name!r}", guard.condition) for guard in traced.guards]
        trees += [
            (effect.variable, effect.value)
            for effect in traced.effects
            if not variables[effect.variable].ghost
        ]
        for where, tree in trees:
            for node in walk(tree):
                if isinstance(node, Read) and variables[node.variable].ghost:
                    message = (
                        f"{traced.name}: {where} reads the ghost {node.variable!r}: nobody in the "
                        "machine knows it"
                    )
                    raise SpecError(message)

    def _refuse_misrouted(self, routes: type[Sort], traced: Action, effect: Effect) -> None:
        over = self.state.variables[effect.variable].over
        for sort, index in zip(over, effect.indices, strict=True):
            if sort is not routes or traced.state == EVERY:
                continue
            match index:
                case Literal(value):
                    member = list(routes.of or ())[value]
                    routed = member == traced.state or member in traced.marks
                case Bound(name):  # what each() covers is known in a model, and checked there
                    routed = name == traced.state or index in effect.over
                case _:
                    routed = False
            if not routed:
                shown = traced.state.name if isinstance(traced.state, Enum) else traced.state
                message = (
                    f"{traced.name} is declared for {shown} and writes {effect.variable} of "
                    "another state: declare that state, or EVERY"
                )
                raise SpecError(message)


@dataclass(frozen=True)
class Refinement:
    """A mapping under which every step of one machine is a step of a simpler one, or none.

    ``mapping(s, a)`` reads the machine's state ``s`` and assigns every variable of ``a``.
    """

    clause: str
    machine: Machine
    abstract: Machine
    mapping: Callable[..., None]

    @property
    def name(self) -> str:
        """The mapping's name."""
        return self.mapping.__name__

    @property
    def sentence(self) -> str:
        """The mapping's normative sentence."""
        return docstring(self.mapping)[0]

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """The traced mapping: what each abstract cell is, computed from the machine's state."""
        with tracing(self.name) as trace:
            self.mapping(self.machine.state(), self.abstract.state(trace))
        mapped = {effect.variable for effect in trace.effects}
        missing = [name for name in self.abstract.state.variables if name not in mapped]
        if missing:
            message = f"{self.name} does not say what {missing[0]!r} is"
            raise SpecError(message)
        return tuple(trace.effects)


def _refuse_twice(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            message = f"two entries are the {what} {name!r}: each has its own name"
            raise SpecError(message)
