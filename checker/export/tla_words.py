"""TLA+'s words: what the things of a model are called there."""

from __future__ import annotations

from enum import Enum

from fivestate.checker.export.names import Names, camel
from fivestate.spec.language.model import Model
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.trees import (
    Atom,
    Boolean,
    Bound,
    Enumerated,
    Maybe,
    Type,
)

_WORDS = """
ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE
DEFS DOMAIN ELSE ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL
MODULE NEW OBVIOUS OMITTED ONLY OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE SF_ STATE
STRING SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM TRUE UNCHANGED UNION USE VARIABLE VARIABLES
WF_ WITH WITNESS
Cardinality FiniteSets Int Integers IsFiniteSet Nat Naturals
Init Max Min NOTHING Next S Spec Sum TypeOK a b e f vars x
"""
RESERVED = frozenset(_WORDS.split())
"""TLA+'s own words, those of its modules, and those that every module here defines."""


class Words:
    """What the things of a model are called in TLA+, and how trees are written."""

    def __init__(self, model: Model) -> None:
        self.model = model
        machine = model.machine
        self._names = Names(RESERVED)
        give = self._names.give
        self.module = give(camel(model.name))
        self.atoms = {
            (sort, code): give(model.show(sort.element_type(), code))
            for sort in machine.sorts
            if isinstance(sort.element_type(), Atom)
            for code in model.elements(sort)
        }
        self.variables = {name: give(name) for name in model.variables}
        self.constants = {name: give(name.upper()) for name in _kept(model)}
        self.sorts: dict[type[Sort], str] = {s: give(s.__name__) for s in machine.sorts}
        self.enums: dict[type[Enum], str] = {}
        for variable in model.variables.values():
            if isinstance(variable.type, Enumerated):
                self._name_enum(variable.type.enum)
        for sort in machine.sorts:
            if sort.of is not None:
                self._name_enum(sort.of)
        self.actions = {action.name: give(camel(action.name)) for action in model.actions}
        self.claims = {claim.name: give(camel(claim.name)) for claim in model.claims}
        self._bounds: dict[str, str] = {}

    def _name_enum(self, enum: type[Enum]) -> None:
        if enum not in self.enums:
            self.enums[enum] = self._names.give(enum.__name__)

    def fresh(self, wanted: str) -> str:
        """Return a name that nothing else has."""
        return self._names.give(wanted)

    def bound(self, name: str) -> str:
        """Return the name of a bound variable; TLA+ lets none hide another name."""
        if name not in self._bounds:
            given = self._names.give(name)
            self._bounds |= {name: given, given: given}  # what has been renamed stays as it is
        return self._bounds[name]

    def over(self, *bounds: Bound) -> str:
        r"""Return ``p \in Prefix, g \in Group``."""
        return ", ".join(f"{self.bound(b.name)} \\in {self.sorts[b.sort]}" for b in bounds)

    def literal(self, value: int, kind: Type) -> str:
        """Return a value as it is written."""
        match kind:
            case Boolean():
                return "TRUE" if value else "FALSE"
            case Enumerated():
                return f'"{self.model.show(kind, value)}"'
            case Atom(sort):
                return self.atoms[sort, value]
            case Maybe(sort):
                return self.atoms[sort, value - 1] if value else "NOTHING"
            case _:
                return self.model.show(kind, value)

    def call(self, action: str, arguments: list[str]) -> str:
        """Return ``Admit(r, p)``."""
        name = self.actions[action]
        return f"{name}({', '.join(arguments)})" if arguments else name


def holds_maybe(model: Model) -> bool:
    """Say whether some variable of the model may be NOTHING."""
    return any(isinstance(v.type, Maybe) for v in model.variables.values())


def _kept(model: Model) -> dict[str, None]:
    """Return the constants that are no switches; a switch decides what the module contains."""
    constants = model.machine.constants
    kept = (c.name for c in constants if c.indices or not isinstance(c.type, Boolean))
    return dict.fromkeys(kept)
