"""That it all does happen: without these, what must hold might hold of nothing."""

from __future__ import annotations

from fivestate.spec.allocator.derived import (
    awaits_fetch,
    copies,
    demand,
    in_use,
    ready,
    recovering,
    stored,
    unleased,
    usable,
    waiting,
)
from fivestate.spec.allocator.sizes import HOST_TIGHT, HYBRID, SHARING, TWO_STORABLE, has
from fivestate.spec.allocator.state import (
    ABORTS,
    BUDGET,
    DISK,
    FORKS,
    GRAPHS,
    HASH_ONLY,
    HOST,
    LAYOUTS,
    MISFITS,
    PREFETCHES,
    REINDEXES,
    SLOTS,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.allocator.tiers import transfers
from fivestate.spec.language import Term, count, forall, witness
from fivestate.spec.vocabulary import INDEXER, TAIL, WINDOW, Copy, Device, Fit, Phase


@witness("W-1")
def told_miss(s: Allocator, r: Request) -> Term:
    """A request is told MISS."""
    return s.phase[r] == Phase.MISS


@witness("W-2", given=(HYBRID | STORES) & ~HASH_ONLY)
def told_partial(s: Allocator, r: Request) -> Term:
    """A request is told PARTIAL."""
    return s.phase[r] == Phase.PARTIAL


@witness("W-3")
def told_hit(s: Allocator, r: Request) -> Term:
    """A request is told HIT."""
    return s.phase[r] == Phase.HIT


@witness("W-4")
def told_hit_too_early(s: Allocator, r: Request) -> Term:
    """A request was told HIT, and it no longer is one."""
    return (s.phase[r] == Phase.HIT) & ~s.fresh[r]


@witness("W-5", given=SHARING)
def shared(s: Allocator, r: Request, q: Request, p: Prefix) -> Term:
    """Two requests read one prefix at the same time."""
    both = (s.phase[r] == Phase.RUNNING) & (s.phase[q] == Phase.RUNNING)
    return (r != q) & both & (s.want[r] == p) & (s.want[q] == p)


@witness("W-6", given=SHARING)
def joined(s: Allocator, r: Request, q: Request, p: Prefix) -> Term:
    """Two requests wait for one recovery."""
    both = (s.phase[r] == Phase.RECOVERING) & (s.phase[q] == Phase.RECOVERING)
    return (r != q) & both & (s.want[r] == p) & (s.want[q] == p)


@witness("W-7")
def pool_full(s: Allocator, g: Group) -> Term:
    """A pool is full."""
    return s.free[g] == 0


@witness("W-8", given=ABORTS)
def refused_for_room(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """A waiting request cannot be admitted because a pool has too little room."""
    return waiting(s, r) & (s.want[r] == p) & (s.free[g] < demand(s, p, g))


@witness("W-9", given=SLOTS == 1)
def refused_for_slots(s: Allocator, r: Request) -> Term:
    """A waiting request cannot be admitted because as many as may are in use."""
    return waiting(s, r) & (count(Request, lambda q: in_use(s, q)) == SLOTS)


@witness("W-10", given=ABORTS)
def doubt(s: Allocator, g: Group) -> Term:
    """A transfer flies whose request is gone."""
    return s.late[g] > 0


@witness("W-11", given=has(WINDOW))
def window_gone_under_a_lease(s: Allocator, r: Request, p: Prefix) -> Term:
    """A request still reads its prefix, and the window of that prefix has been evicted."""
    gone = s.device[p, WINDOW] == Device.ABSENT
    return (s.phase[r] == Phase.RUNNING) & (s.want[r] == p) & gone


@witness("W-12", given=STORES)
def only_off_the_device(s: Allocator, p: Prefix) -> Term:
    """A prefix is known, and the device has none of it."""
    return s.known[p] & forall(Group, lambda g: s.device[p, g] == Device.ABSENT)


@witness("W-13", given=STORES & MISFITS)
def misaligned(s: Allocator, p: Prefix, g: Group) -> Term:
    """A cell is misaligned."""
    return s.fit[p, g] == Fit.MISALIGNED


@witness("W-14", given=LAYOUTS)
def in_old_layout(s: Allocator, p: Prefix, g: Group) -> Term:
    """A cell is in an old layout while its prefix is recovered."""
    return (s.fit[p, g] == Fit.OLD_LAYOUT) & recovering(s, p)


@witness("W-15", given=STORES & has(INDEXER))
def out_of_step(s: Allocator, p: Prefix, g: Group) -> Term:
    """An index is out of step with its entries."""
    return s.fit[p, g] == Fit.OUT_OF_STEP


@witness("W-16", given=STORES & (BUDGET == 1) & TWO_STORABLE)
def budget_used_up(s: Allocator, p: Prefix, g: Group) -> Term:
    """A cell could be loaded, but for the bandwidth budget."""
    return (s.device[p, g] == Device.RESERVED) & stored(s, p, g) & (transfers(s) == BUDGET)


@witness("W-17", given=STORES)
def stored_while_read(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """A cell is being stored while a request reads it."""
    return (s.copy[p, g] == Copy.STORING) & (s.phase[r] == Phase.RUNNING) & (s.want[r] == p)


@witness("W-18", given=STORES & LAYOUTS)
def old_copy(s: Allocator, p: Prefix, g: Group) -> Term:
    """A copy in an old layout is being loaded."""
    return (s.copy[p, g] == Copy.OLD) & (s.device[p, g] == Device.LOADING)


@witness("W-19", given=DISK)
def on_every_tier(s: Allocator, p: Prefix, g: Group) -> Term:
    """One cell is on the device, in host memory and on disk."""
    return ready(s, p, g) & stored(s, p, g) & (s.disk[p, g] == Copy.STORED)


@witness("W-20", given=GRAPHS)
def replayed(s: Allocator, r: Request) -> Term:
    """A graph is replayed."""
    return s.phase[r] == Phase.REPLAYING


@witness("W-21", given=GRAPHS)
def padding_dirty(s: Allocator, r: Request, p: Prefix) -> Term:
    """A leased prefix has a graph that must not be replayed yet, for the null block is dirty."""
    return (s.phase[r] == Phase.LEASED) & (s.want[r] == p) & s.graph[p] & s.dirty


@witness("W-22", given=FORKS & has(TAIL) & SHARING)
def tails_apart(s: Allocator, r: Request, q: Request, p: Prefix) -> Term:
    """Two requests have forked: one has written into its own tail, one reads the shared one."""
    both = (s.phase[r] == Phase.RUNNING) & (s.phase[q] == Phase.RUNNING)
    apart = s.grown[r] & ~s.copied[q]
    return (r != q) & both & (s.want[r] == p) & (s.want[q] == p) & apart


@witness("W-23", given=REINDEXES & has(INDEXER))
def index_renewed_under_a_hit(s: Allocator, r: Request, p: Prefix) -> Term:
    """An index is being made anew while a request that was told HIT still waits."""
    renewing = s.known[p] & (s.device[p, INDEXER] == Device.WRITING) & ~recovering(s, p)
    return renewing & (s.phase[r] == Phase.HIT) & (s.want[r] == p)


@witness("W-24", given=PREFETCHES)
def prefetched_for_nobody(s: Allocator, p: Prefix) -> Term:
    """A prefetch has loaded a prefix that no request has asked for."""
    unasked = forall(Request, lambda r: s.want[r] != p)
    every = forall(Group, lambda g: usable(s, p, g) & unleased(s, p, g))
    return s.prefetching[p] & unasked & every


@witness("W-25", given=ABORTS)
def draining(s: Allocator, r: Request) -> Term:
    """An aborted request still reads."""
    return s.phase[r] == Phase.DRAINING


@witness("W-26", given=DISK & HOST_TIGHT)
def host_full(s: Allocator, p: Prefix, g: Group) -> Term:
    """A recovery waits for a copy on disk, and host memory has no room for it."""
    return awaits_fetch(s, p, g) & (copies(s, g) == HOST[g])


WITNESSES = (
    host_full,
    *(told_miss, told_partial, told_hit, told_hit_too_early),
    *(shared, joined, pool_full, refused_for_room, refused_for_slots),
    *(doubt, draining, window_gone_under_a_lease),
    *(only_off_the_device, misaligned, in_old_layout, out_of_step),
    *(budget_used_up, stored_while_read, old_copy, on_every_tier),
    *(replayed, padding_dirty, tails_apart, index_renewed_under_a_hit, prefetched_for_nobody),
)
