"""The specification language: everything a file of the specification imports."""

from fivestate.spec.language.declare import (
    BOOL,
    NOTHING,
    Array,
    Relation,
    Scalar,
    Size,
    State,
    Switch,
    Table,
    maybe,
    within,
)
from fivestate.spec.language.errors import ModelError, Refused, SpecError
from fivestate.spec.language.machine import Fairness, Machine, Refinement
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Kind, changes, escape, invariant, step, took, witness
from fivestate.spec.language.run import OutOfRange, Run
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.terms import (
    Term,
    count,
    exists,
    forall,
    implies,
    ite,
    max_,
    min_,
    total,
)
from fivestate.spec.language.tracing import EVERY, action, each, require

__all__ = [
    "BOOL",
    "EVERY",
    "NOTHING",
    "Array",
    "Fairness",
    "Kind",
    "Machine",
    "Model",
    "ModelError",
    "OutOfRange",
    "Refinement",
    "Refused",
    "Relation",
    "Run",
    "Scalar",
    "Size",
    "Sort",
    "SpecError",
    "State",
    "Switch",
    "Table",
    "Term",
    "action",
    "changes",
    "count",
    "each",
    "escape",
    "exists",
    "forall",
    "implies",
    "invariant",
    "ite",
    "max_",
    "maybe",
    "min_",
    "require",
    "step",
    "took",
    "total",
    "within",
    "witness",
]
