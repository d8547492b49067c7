"""The allocator: prefixes, cache groups and requests; time, sharing and failure."""

from __future__ import annotations

from fivestate.spec.allocator.aborts import (
    abort_leased,
    abort_recovery,
    abort_step,
    abort_waiting,
    drained,
)
from fivestate.spec.allocator.cells import evict, land, made, make, publish, reclaim
from fivestate.spec.allocator.properties import PROPERTIES
from fivestate.spec.allocator.requests import (
    admit,
    arrive,
    finish,
    lease,
    reclassify,
    resume,
    run,
    slide,
)
from fivestate.spec.allocator.state import Allocator, Group
from fivestate.spec.language import Machine

NEXT = (
    *(arrive, reclassify, admit, lease, resume, run, slide, finish),
    *(make, made, publish, evict, land, reclaim),
    *(abort_waiting, abort_recovery, abort_leased, abort_step, drained),
)

ALLOCATOR = Machine("allocator", Allocator, NEXT, PROPERTIES, routes=Group)
