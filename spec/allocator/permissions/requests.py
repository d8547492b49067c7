"""What a request, or a prefetch, may do: look again, take what is left, go away."""

from __future__ import annotations

from fivestate.spec.allocator.aborts import abort_leased, abort_recovery, abort_step, abort_waiting
from fivestate.spec.allocator.cells import make, repack
from fivestate.spec.allocator.derived import in_use, usable
from fivestate.spec.allocator.forks import fork
from fivestate.spec.allocator.prefetch import abort_prefetch, prefetched
from fivestate.spec.allocator.requests import lease, reclassify
from fivestate.spec.allocator.sizes import GRADED, ROOM_FOR_ALL, SHARING, has
from fivestate.spec.allocator.state import (
    ABORTS,
    FORKS,
    GRAPHS,
    LAYOUTS,
    MISFITS,
    PREFETCHES,
    PRIVATE,
    SLOTS,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import Term, Ways, count, exists, forall, may, ways, witness
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, Fit, Phase


def last_frames(s: Allocator) -> Term:
    """Some pool has only just the private frames of one request more."""
    return exists(Group, lambda g: s.free[g] == PRIVATE[g])


def last_slot(s: Allocator) -> Term:
    """One request more is as many as may be in use."""
    return count(Request, lambda r: in_use(s, r)) + 1 == SLOTS


@witness("P-1", given=GRADED & SHARING)
def looks_again(s: Allocator, r: Request, p: Prefix) -> Ways:
    """A waiter whose verdict stands no longer may look again, whatever it was told."""
    return ways(
        miss=may(reclassify, r, p) & (s.phase[r] == Phase.MISS),
        partial=may(reclassify, r, p) & (s.phase[r] == Phase.PARTIAL),
        hit=may(reclassify, r, p) & (s.phase[r] == Phase.HIT),
    )


@witness("P-2", given=ROOM_FOR_ALL & (SHARING | (SLOTS == 1)))
def leases_the_last(s: Allocator, r: Request) -> Ways:
    """A hit may be leased with the last private frames, and into the last place."""
    return ways(frames=may(lease, r) & last_frames(s), place=may(lease, r) & last_slot(s))


@witness("P-3", given=ABORTS & GRADED)
def goes_away(s: Allocator, r: Request, p: Prefix) -> Ways:
    """A request may go away whatever it waits for or does."""
    return ways(
        miss=may(abort_waiting, r) & (s.phase[r] == Phase.MISS),
        partial=may(abort_waiting, r) & (s.phase[r] == Phase.PARTIAL),
        hit=may(abort_waiting, r) & (s.phase[r] == Phase.HIT),
        recovering=may(abort_recovery, r, p),
        leased=may(abort_leased, r),
        running=may(abort_step, r) & (s.phase[r] == Phase.RUNNING),
    )


@witness("P-4", given=ABORTS & GRAPHS)
def goes_away_from_a_graph(s: Allocator, r: Request) -> Term:
    """A request may go away while a graph is replayed for it."""
    return may(abort_step, r) & (s.phase[r] == Phase.REPLAYING)


@witness("P-5", given=FORKS & has(TAIL) & SHARING & ROOM_FOR_ALL)
def forks_into_the_last(s: Allocator, q: Request, r: Request, p: Prefix) -> Ways:
    """A request may be forked with the last private frames, and into the last place."""
    return ways(
        frames=may(fork, q, r, p) & last_frames(s),
        place=may(fork, q, r, p) & last_slot(s),
    )


@witness("P-6", given=PREFETCHES & ABORTS)
def prefetch_ends(s: Allocator, p: Prefix) -> Ways:
    """A prefetch may be completed though nobody wants it, or given up."""
    unasked = forall(Request, lambda r: s.want[r] != p)
    return ways(
        complete=may(prefetched, p) & unasked,
        given_up=may(abort_prefetch, p) & ~usable(s, p, COMPRESSED),
    )


@witness("P-7", given=PREFETCHES & has(INDEXER) & STORES & (MISFITS | LAYOUTS))
def prefetch_recovers(s: Allocator, p: Prefix, g: Group) -> Ways:
    """A prefetch may do all that the recovery of a request may: renew an index, repack."""
    alone = ~exists(Request, lambda r: (s.phase[r] == Phase.RECOVERING) & (s.want[r] == p))
    stale = s.fit[p, INDEXER] == Fit.OUT_OF_STEP
    return ways(
        index=may(make, p, INDEXER) & stale & alone,
        repack=may(repack, p, g) & alone,
    )


REQUESTS = (
    looks_again,
    leases_the_last,
    goes_away,
    goes_away_from_a_graph,
    forks_into_the_last,
    prefetch_ends,
    prefetch_recovers,
)
