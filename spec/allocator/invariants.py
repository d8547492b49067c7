"""What must hold of the allocator in every state and on every step: soundness and I-1 to I-4."""

from __future__ import annotations

from fivestate.spec.allocator.cells import demanded, make_room
from fivestate.spec.allocator.changes import change_kernels, change_weights, crash
from fivestate.spec.allocator.derived import (
    dependants_gone,
    first,
    holds,
    in_use,
    kept,
    only_copy,
    reads,
    ready,
    recovering,
    replaying,
    stored,
    unleased,
    usable,
    waiting,
)
from fivestate.spec.allocator.prefetch import prefetch
from fivestate.spec.allocator.state import (
    BUDGET,
    CAP,
    DISK,
    GRAPHS,
    LAYOUTS,
    PREFETCHES,
    PRIVATE,
    RESERVE,
    SLOTS,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.allocator.tiers import transfers
from fivestate.spec.language import (
    Term,
    changes,
    count,
    forall,
    implies,
    invariant,
    step,
    took,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Bytes, Copy, Device, Fit, Phase


@invariant("I-0")
def sound(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """What runs reads only right bytes."""
    return implies(reads(s, r, p, g), s.bytes[p, g] == Bytes.RIGHT)


@invariant("I-0")
def usable_is_right(s: Allocator, p: Prefix, g: Group) -> Term:
    """What the checks let through is right."""
    return implies(usable(s, p, g), s.bytes[p, g] == Bytes.RIGHT)


def occupied(s: Allocator, g: Group) -> Term:
    """How many frames of the pool somebody has: cells, doubt and private frames."""
    cells = count(Prefix, lambda p: s.device[p, g] != Device.ABSENT)
    return cells + s.doomed[g] + PRIVATE[g] * count(Request, lambda r: in_use(s, r))


@invariant("I-1")
def within_cap(s: Allocator, g: Group) -> Term:
    """A pool's frames in use never exceed its cap, recovery and doubt included (准入上限)."""
    return occupied(s, g) <= CAP[g]


@invariant("I-1", given=STORES)
def within_budget(s: Allocator) -> Term:
    """No more transfers are under way than the bandwidth budget allows."""
    return transfers(s) <= BUDGET


@invariant("I-1")
def within_slots(s: Allocator) -> Term:
    """No more requests are in use at once than were allowed."""
    return count(Request, lambda r: in_use(s, r)) <= SLOTS


@step("I-1")
def claims_at_once(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Whoever claims one missing cell of a prefix claims them all, in the same step."""
    claimed = (before.device[p, g] == Device.ABSENT) & (after.device[p, g] != Device.ABSENT)
    return implies(claimed, forall(Group, lambda h: after.device[p, h] != Device.ABSENT))


@step("I-1")
def first_come_first_served(before: Allocator, after: Allocator, r: Request) -> Term:
    """A waiter is served only if nobody has waited longer."""
    served = waiting(before, r) & after.phase[r].is_in(Phase.RECOVERING, Phase.LEASED)
    return implies(served, first(before, r))


@step("I-1")
def room_is_made_on_demand(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Room is made only where the first waiter lacks a frame."""
    given_up = ready(before, p, g) & (after.device[p, g] == Device.ABSENT)
    return implies(took(make_room) & given_up, demanded(before, p, g))


@step("I-1", given=PREFETCHES)
def reserve_is_left(before: Allocator, after: Allocator, g: Group) -> Term:
    """A prefetch leaves the reserve to requests."""
    del before
    return implies(took(prefetch), after.free[g] >= RESERVE[g])


@invariant("I-2")
def conserved(s: Allocator, g: Group) -> Term:
    """Every frame has one owner: free, cells, doubt and private frames add up to the cap."""
    return s.free[g] + occupied(s, g) == CAP[g]


@step("I-2")
def legal_arcs(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """A cell goes from claimed to made or loaded to complete; only an index is made anew."""
    was, now = before.device[p, g], after.device[p, g]
    return (
        (now == was)
        | (now == Device.ABSENT)
        | ((was == Device.ABSENT) & (now == Device.RESERVED))
        | ((was == Device.RESERVED) & now.is_in(Device.WRITING, Device.LOADING))
        | ((was == Device.WRITING) & (now == Device.READY))
        | ((was == Device.LOADING) & now.is_in(Device.READY, Device.RESERVED))
        | ((was == Device.READY) & (now == Device.WRITING) & (g == INDEXER))
    )


@step("I-2", given=STORES)
def legal_copies(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """A copy is being stored, stored, old, in this order, and may be gone at any time."""
    was, now = before.copy[p, g], after.copy[p, g]
    return (
        (now == was)
        | (now == Copy.NONE)
        | ((was == Copy.NONE) & (now == Copy.STORING))
        | ((was == Copy.STORING) & (now == Copy.STORED))
        | ((was == Copy.STORED) & (now == Copy.OLD))
        | (DISK & (was == Copy.NONE) & (now == before.disk[p, g]))
    )


@step("I-2", given=STORES)
def only_right_is_stored(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Only right bytes become a stored copy."""
    arrives = (before.copy[p, g] == Copy.STORING) & (after.copy[p, g] == Copy.STORED)
    return implies(arrives, before.bytes[p, g] == Bytes.RIGHT)


@step("I-2")
def usable_is_immutable(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """What may be shared is never written to; an index is made anew only while nobody has it."""
    rewritten = usable(before, p, g) & (after.device[p, g] == Device.WRITING)
    return implies(rewritten, (g == INDEXER) & unleased(before, p, g))


@step("I-2")
def published_complete(before: Allocator, after: Allocator, p: Prefix) -> Term:
    """A prefix becomes known only when every group of it is complete and fits."""
    appears = ~before.known[p] & after.known[p]
    return implies(appears, forall(Group, lambda g: usable(before, p, g)))


@step("I-2")
def entries_go_last(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Compressed KV without a copy is let go only when nothing else of the prefix is left."""
    let_go = ready(before, p, g) & (after.device[p, g] == Device.ABSENT) & before.known[p]
    quiet = ~took(change_weights, crash)
    return implies(quiet & let_go & only_copy(before, p, g), dependants_gone(before, p, g))


@invariant("I-2")
def known_has_entries(s: Allocator, p: Prefix) -> Term:
    """The hash entry goes with the compressed KV: what is known can be resumed from."""
    return implies(s.known[p], ready(s, p, COMPRESSED) | kept(s, p, COMPRESSED))


@invariant("I-2")
def work_is_wanted(s: Allocator, p: Prefix, g: Group) -> Term:
    """Work on a cell is wanted by somebody; only a known prefix's index may be renewed for all."""
    working = s.device[p, g].is_in(Device.RESERVED, Device.WRITING, Device.LOADING)
    renewed = (g == INDEXER) & (s.device[p, g] == Device.WRITING) & s.known[p]
    return implies(working & ~renewed, recovering(s, p))


@invariant("I-2")
def recovery_keeps_its_frames(s: Allocator, p: Prefix, g: Group) -> Term:
    """While a prefix is recovered, no frame that was claimed for it is taken away."""
    return implies(recovering(s, p), s.device[p, g] != Device.ABSENT)


@invariant("I-2")
def unknown_is_wanted(s: Allocator, p: Prefix, g: Group) -> Term:
    """What nobody can find exists, on any tier, only while somebody recovers the prefix."""
    exists = (
        (s.device[p, g] != Device.ABSENT)
        | (s.copy[p, g] != Copy.NONE)
        | (s.disk[p, g] != Copy.NONE)
    )
    return implies(~s.known[p] & exists, recovering(s, p))


@invariant("I-2", given=STORES | LAYOUTS)
def only_an_index_is_out_of_step(s: Allocator, p: Prefix, g: Group) -> Term:
    """Only a complete cell is unfit, and only an index is out of step."""
    complete = implies(s.fit[p, g] != Fit.OK, ready(s, p, g))
    return complete & implies(s.fit[p, g] == Fit.OUT_OF_STEP, g == INDEXER)


@invariant("I-2", given=STORES)
def transfers_have_ends(s: Allocator, p: Prefix, g: Group) -> Term:
    """What is being stored is complete where it comes from, and so is what is being loaded."""
    storing = implies(s.copy[p, g] == Copy.STORING, ready(s, p, g))
    moving = implies(s.disk[p, g] == Copy.STORING, stored(s, p, g))
    return storing & moving & implies(s.device[p, g] == Device.LOADING, stored(s, p, g))


@step("I-2")
def nothing_stutters(before: Allocator, after: Allocator) -> Term:
    """Every action changes something; a change or a crash may find nothing to change."""
    return changes(before, after) | took(change_weights, change_kernels, crash)


@invariant("I-3")
def leased_is_ready(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """A leased cell is complete on the device, and fits (检查到使用)."""
    return implies(holds(s, r, p, g), usable(s, p, g))


@step("I-3")
def leased_is_unchanged(
    before: Allocator,
    after: Allocator,
    r: Request,
    p: Prefix,
    g: Group,
) -> Term:
    """A leased cell is not changed by anybody."""
    same = (
        (before.device[p, g] == after.device[p, g])
        & (before.fit[p, g] == after.fit[p, g])
        & (before.bytes[p, g] == after.bytes[p, g])
    )
    return implies(holds(before, r, p, g) & holds(after, r, p, g), same)


@step("I-3")
def leased_as_checked(before: Allocator, after: Allocator, r: Request) -> Term:
    """A hit is leased only while the verdict it was given still stands."""
    leases = waiting(before, r) & (after.phase[r] == Phase.LEASED)
    return implies(leases, before.fresh[r])


@invariant("I-3")
def doubt_is_withheld(s: Allocator, g: Group) -> Term:
    """No more transfers fly than frames are withheld, so none can hit another owner."""
    return s.late[g] <= s.doomed[g]


@invariant("I-4", given=GRAPHS)
def graph_reads_what_it_captured(s: Allocator, p: Prefix, g: Group) -> Term:
    """What a graph reads is complete, and where it was when it was captured (静态图)."""
    return implies(s.graph[p], s.same[p] & ready(s, p, g))


@invariant("I-4", given=GRAPHS)
def replays_on_clean_padding(s: Allocator, p: Prefix) -> Term:
    """A graph is replayed only while it is valid and the null block is clean."""
    return implies(replaying(s, p), s.graph[p] & ~s.dirty)


INVARIANTS = (
    *(sound, usable_is_right),
    *(within_cap, within_budget, within_slots, claims_at_once),
    *(first_come_first_served, room_is_made_on_demand, reserve_is_left),
    *(conserved, legal_arcs, legal_copies, only_right_is_stored, usable_is_immutable),
    *(published_complete, entries_go_last, known_has_entries, work_is_wanted),
    *(
        recovery_keeps_its_frames,
        unknown_is_wanted,
        only_an_index_is_out_of_step,
        transfers_have_ends,
        nothing_stutters,
    ),
    *(leased_is_ready, leased_is_unchanged, leased_as_checked, doubt_is_withheld),
    *(graph_reads_what_it_captured, replays_on_clean_padding),
)
