"""The theory of reuse: which prefix may be resumed, what comes first, at what cost, and why.

Pure functions on whole numbers; no time, no sharing, no failure. Those are the machine's.
"""

from __future__ import annotations

from fivestate.spec.reuse.availability import (
    Abi,
    Availability,
    Extent,
    Identity,
    Place,
    Tier,
    resident,
    stored,
)
from fivestate.spec.reuse.checks import (
    CHECKS,
    Asked,
    Consumer,
)
from fivestate.spec.reuse.classify import Kind, Verdict, classify
from fivestate.spec.reuse.cost import Cost, Rates
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Role, Shape
from fivestate.spec.reuse.ledger import Line, ledger
from fivestate.spec.reuse.numbers import Numbers, Tally
from fivestate.spec.reuse.reasons import Reason, Why
from fivestate.spec.reuse.recovery import Means, Plan, Policy, Step
from fivestate.spec.reuse.spans import Span

__all__ = [
    "CHECKS",
    "Abi",
    "Asked",
    "Availability",
    "CacheGroup",
    "Consumer",
    "Cost",
    "Extent",
    "Geometry",
    "Identity",
    "Kind",
    "Line",
    "Means",
    "Numbers",
    "Place",
    "Plan",
    "Policy",
    "Rates",
    "Reason",
    "Role",
    "Shape",
    "Span",
    "Step",
    "Tally",
    "Tier",
    "Verdict",
    "Why",
    "classify",
    "ledger",
    "resident",
    "stored",
]
