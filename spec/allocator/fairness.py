"""Liveness: who is served in the end, and what it takes for that to be so.

Weak fairness alone is not enough. A waiter is served because of five things together, and
without any one of them there is a run in which it waits for ever:

- admission re-plans: it looks at the cells itself and needs no verdict that others can spoil;
- first come, first served, or others overtake for ever;
- room is made on demand, by admission's own formula;
- making room is *strongly* fair, for a store and a drop disable and enable it again and again;
  so are making room in host memory, fetching into it and loading, for others may come first;
- a bad load consumes its copy, or it is loaded and fails again and again.
"""

from __future__ import annotations

from fivestate.spec.allocator.aborts import (
    abort_leased,
    abort_recovery,
    abort_step,
    abort_waiting,
    drained,
)
from fivestate.spec.allocator.cells import land, made, make, make_room, publish, reclaim, repack
from fivestate.spec.allocator.changes import change_kernels, change_weights, crash
from fivestate.spec.allocator.derived import in_use, waiting
from fivestate.spec.allocator.graphs import invalidate, scrub
from fivestate.spec.allocator.host import make_host_room
from fivestate.spec.allocator.prefetch import abort_prefetch, prefetched
from fivestate.spec.allocator.requests import admit, finish, lease, reclassify, resume, run
from fivestate.spec.allocator.state import Allocator, Group, Request
from fivestate.spec.allocator.tiers import (
    demote_good,
    fetch,
    load_begin,
    load_good,
    store_good,
)
from fivestate.spec.language import Fairness, Term, escape
from fivestate.spec.vocabulary import Phase


@escape("L-1")
def waits(s: Allocator, r: Request) -> Term:
    """A waiting request is served."""
    return waiting(s, r)


@escape("L-2")
def recovers(s: Allocator, r: Request) -> Term:
    """A recovery ends."""
    return s.phase[r] == Phase.RECOVERING


@escape("L-3")
def in_doubt(s: Allocator, g: Group) -> Term:
    """A withheld frame comes back."""
    return s.doomed[g] > 0


@escape("L-4")
def uses(s: Allocator, r: Request) -> Term:
    """A request that holds its prefix ends."""
    return in_use(s, r) & (s.phase[r] != Phase.RECOVERING)


LIVENESS = (waits, recovers, in_doubt, uses)

FAIRNESS = Fairness(
    weak=(
        *(reclassify, admit, lease, resume, run, finish, drained),
        *(make, made, publish, repack, land, reclaim),
        *(load_good, store_good, demote_good),
        *(prefetched, scrub, invalidate),
    ),
    strong=(make_room, make_host_room, fetch, load_begin),
    finite=(
        *(abort_waiting, abort_recovery, abort_leased, abort_step, abort_prefetch),
        *(change_weights, change_kernels, crash),
    ),
)
"""Not fair, for nobody owes them: arrive, slide, evict, fork, append, store_begin, drop, ..."""
