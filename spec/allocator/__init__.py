"""The allocator: prefixes, cache groups and requests; time, sharing and failure."""

from __future__ import annotations

from fivestate.spec.allocator.aborts import (
    abort_leased,
    abort_recovery,
    abort_step,
    abort_waiting,
    drained,
)
from fivestate.spec.allocator.bookkeeping import BOOKKEEPING
from fivestate.spec.allocator.cells import (
    evict,
    land,
    made,
    make,
    make_room,
    publish,
    reclaim,
    reindex,
    repack,
)
from fivestate.spec.allocator.changes import change_kernels, change_weights, crash
from fivestate.spec.allocator.fairness import FAIRNESS, LIVENESS
from fivestate.spec.allocator.forks import append, copy_on_write, fork
from fivestate.spec.allocator.graphs import capture, invalidate, replay, scrub
from fivestate.spec.allocator.host import HOST_RULES, make_host_room
from fivestate.spec.allocator.invariants import INVARIANTS
from fivestate.spec.allocator.lemmas import LAWS
from fivestate.spec.allocator.permissions import PERMISSIONS
from fivestate.spec.allocator.policy import POLICY
from fivestate.spec.allocator.prefetch import abort_prefetch, prefetch, prefetched
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
from fivestate.spec.allocator.tiers import (
    demote_bad,
    demote_begin,
    demote_good,
    drop,
    erase,
    fetch,
    fetch_bad,
    load_bad,
    load_begin,
    load_good,
    load_misaligned,
    store_bad,
    store_begin,
    store_good,
)
from fivestate.spec.allocator.witnesses import WITNESSES
from fivestate.spec.language import Machine

NEXT = (
    *(arrive, reclassify, admit, lease, resume, run, slide, finish),
    *(abort_waiting, abort_recovery, abort_leased, abort_step, drained),
    *(fork, copy_on_write, append),
    *(make, made, publish, repack, reindex, evict, make_room, land, reclaim),
    *(load_begin, load_good, load_misaligned, load_bad),
    *(store_begin, store_good, store_bad, drop),
    *(demote_begin, demote_good, demote_bad, fetch, fetch_bad, erase, make_host_room),
    *(prefetch, prefetched, abort_prefetch),
    *(capture, scrub, replay, invalidate),
    *(change_weights, change_kernels, crash),
)

PROPERTIES = (*INVARIANTS, *BOOKKEEPING, *HOST_RULES, *POLICY, *LIVENESS, *WITNESSES, *PERMISSIONS)

ALLOCATOR = Machine("allocator", Allocator, NEXT, PROPERTIES, Group, FAIRNESS, LAWS)
