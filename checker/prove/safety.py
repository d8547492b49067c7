"""What is proved of a machine at any size, and in which scope."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.encode import Translator, present
from fivestate.checker.prove.instances import AnySize
from fivestate.checker.prove.signature import Expression, enumeration, literal, unknown
from fivestate.checker.prove.states import States
from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.allocator.lemmas import LAWS, LEMMAS
from fivestate.spec.language.declare import Variable
from fivestate.spec.language.machine import Machine
from fivestate.spec.language.properties import Kind, Property, PropertySource
from fivestate.spec.language.tracing import EVERY, Action
from fivestate.spec.language.trees import (
    TRUE,
    Apply,
    Boolean,
    Constant,
    Enumerated,
    Integer,
    Literal,
    Read,
    walk,
)
from fivestate.spec.vocabulary import COMPRESSED, WINDOW

RANGE_CLAUSE = "I-2"

SEARCHED = frozenset({"within_host", "one_place_is_clean", "host_room_costs_nothing"})
"""What is searched and not proved: it counts the copies of a group that a step only names."""


@dataclass(frozen=True)
class Safety:
    """A machine, and the conditions under which it is proved safe.

    Attributes:
        name: what the command line calls it.
        machine: the machine.
        laws: properties of the constants that are taken for granted.
        lemmas: invariants that are proved beside the machine's own.
        fixed: constants that have one value; the others have any.
        members: the members of the routed sort that are there; any that make a model, if empty.
        scope: all this in words.
        never: actions that are there and that no state in this scope allows.
        judges_steps: whether step properties are proved too, beside those of every state.
    """

    name: str
    machine: Machine
    laws: tuple[PropertySource, ...] = ()
    lemmas: tuple[PropertySource, ...] = ()
    fixed: Mapping[str, int] = field(default_factory=dict[str, int])
    members: tuple[Enum, ...] = ()
    scope: str = ""
    never: frozenset[str] = frozenset()
    judges_steps: bool = True

    @cached_property
    def invariants(self) -> tuple[Property, ...]:
        """What is proved of every state, together: each may rely on all in the state before."""
        own = (claim for claim in self._claims if claim.kind is Kind.INVARIANT)
        lemmas = (lemma.trace(self.machine.state) for lemma in self.lemmas)
        return (*own, *lemmas, *self.ranges)

    @cached_property
    def steps(self) -> tuple[Property, ...]:
        """What is proved of every step."""
        judged = (claim for claim in self._claims if claim.kind is Kind.STEP)
        return tuple(judged) if self.judges_steps else ()

    @cached_property
    def _claims(self) -> tuple[Property, ...]:
        return tuple(claim for claim in self.machine.claims if claim.name not in SEARCHED)

    @cached_property
    def ranges(self) -> tuple[Property, ...]:
        """That no number leaves its declared range: proved like the rest, never assumed."""
        variables = self.machine.state.variables.values()
        return tuple(_within_range(v) for v in variables if v.range is not None)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The actions that some model in this scope has."""
        there = self.members or tuple(self._enum)
        return tuple(
            action
            for action in self.machine.actions
            if (isinstance(action.state, str) or action.state in there) and self._may_have(action)
        )

    def granted(self, states: States) -> list[Expression]:
        """Return what is assumed of the constants: bounds, laws, and what is fixed."""
        granted = [
            z3.And(node.low <= each, each <= node.high)
            for node in self.machine.constants
            if isinstance(node.type, Integer)
            for each in _instances(node)
        ]
        for name, value in self.fixed.items():
            (node,) = (c for c in self.machine.constants if c.name == name and not c.indices)
            granted.append(unknown(name, (), node.type, ()) == literal(value, node.type))
        for law in self.laws:
            traced = law.trace(self.machine.state)
            granted += [
                states.static.value(traced.condition, names) for names in choices(states, traced)
            ]
        return [*granted, *self._present()]

    def has(self, action: Action) -> list[Expression]:
        """Return what a model has that has an action."""
        routes = self.machine.routes
        if routes is None or isinstance(action.state, str):
            return []
        return [present(routes, _member(action.state))]

    @property
    def _enum(self) -> tuple[Enum, ...]:
        routes = self.machine.routes
        return () if routes is None or routes.of is None else tuple(routes.of)

    @cached_property
    def _constants(self) -> z3.Solver:
        """A solver that knows what is assumed of the constants."""
        solver = z3.Solver()
        solver.add(self.granted(States(self.machine, AnySize())))
        return solver

    def _may_have(self, action: Action) -> bool:
        """Say whether what is assumed of the constants leaves room for an action."""
        solver = self._constants
        solver.push()
        solver.add(Translator(AnySize()).value(action.given, {}))
        answer = solver.check()
        solver.pop()
        return bool(answer != z3.unsat)

    def _present(self) -> list[Expression]:
        """Say which members are there: without what is read everywhere there is no model."""
        routes = self.machine.routes
        if routes is None or routes.of is None:
            return []
        if self.members:
            there = {member: member in self.members for member in routes.of}
        else:
            there = dict.fromkeys(_read_everywhere(self.machine, routes.of), True)
        return [present(routes, _member(m)) == z3.BoolVal(yes) for m, yes in there.items()]


def choices(states: States, claim: Property, prefix: str = "") -> list[dict[str, Expression]]:
    """Return a claim's parameters: members one by one, atoms as elements of any name."""
    known = [states.universe.elements(bound.sort) for bound in claim.parameters]
    fresh = states.fresh(claim.parameters, prefix)
    options = [
        (fresh[bound.name],) if elements is None or bound.sort.of is None else elements
        for bound, elements in zip(claim.parameters, known, strict=True)
    ]
    names = [bound.name for bound in claim.parameters]
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*options)]


def _within_range(variable: Variable) -> Property:
    bounds = tuple(sort.named(sort.letter) for sort in variable.over)
    declared = variable.range
    if declared is None:
        raise ValueError(f"{variable.name} has no range")
    cell = Read(variable.name, bounds, variable.type)
    sides = ((declared.low, cell), (cell, declared.high))
    inside = Apply("and", tuple(Apply("<=", side, Boolean()) for side in sides), Boolean())
    sentence = f"{variable.says.capitalize()}: no number but one in its declared range."
    return Property(
        RANGE_CLAUSE,
        f"{variable.name}_in_range",
        Kind.INVARIANT,
        sentence,
        "",
        bounds,
        variable.given,
        inside,
    )


def _member(member: Enum) -> Expression:
    return enumeration(type(member))[1][list(type(member)).index(member)]


def _instances(node: Constant) -> list[Expression]:
    kinds = tuple(index.type for index in node.indices)
    members = [enumeration(kind.enum)[1] for kind in kinds if isinstance(kind, Enumerated)]
    return [unknown(node.name, kinds, node.type, chosen) for chosen in itertools.product(*members)]


def _read_everywhere(machine: Machine, enum: type[Enum]) -> set[Enum]:
    """Return the members of which every model reads a cell: it cannot be built without them."""
    found: set[Enum] = set()
    for action in machine.actions:
        if action.state != EVERY or action.given != TRUE:
            continue
        trees = [guard.condition for guard in action.guards]
        trees += [effect.value for effect in action.effects]
        for node in (node for tree in trees for node in walk(tree)):
            if isinstance(node, Read):
                found |= {
                    list(enum)[index.value]
                    for index in node.indices
                    if isinstance(index, Literal) and index.type == Enumerated(enum)
                }
    return found


ANY_SIZE = "any finite number of prefixes and requests"

CACHE = Safety(
    "allocator",
    ALLOCATOR,
    LAWS,
    LEMMAS,
    {"hash_only": 0},
    scope=f"{ANY_SIZE}; any groups with COMPRESSED; every setting within its bounds",
)
"""The allocator with every feature, in any combination; every cell is looked at before use."""

HOMOGENEOUS = Safety(
    "homogeneous",
    ALLOCATOR,
    LAWS,
    LEMMAS,
    {"hash_only": 1, "stores": 0, "layouts": 0},
    (COMPRESSED,),
    f"{ANY_SIZE}; one group, one tier, one layout; a hash hit is used as it is",
    frozenset({"prefetch"}),
    judges_steps=False,
)
"""The thesis: here, and only here, a hash hit may simply be used."""

HASH_ONLY = Safety(
    "hash-only",
    ALLOCATOR,
    LAWS,
    LEMMAS,
    {"hash_only": 1},
    (COMPRESSED, WINDOW),
    "compressed KV and a window; a hash hit is used as it is",
)
"""What the thesis denies: to use a hash hit where a window may be gone."""

SAFETIES = {safety.name: safety for safety in (CACHE, HOMOGENEOUS, HASH_ONLY)}
