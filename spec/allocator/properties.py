"""What must hold of the allocator: soundness, the invariants, and that it all does happen."""

from __future__ import annotations

from fivestate.spec.allocator.cells import evict
from fivestate.spec.allocator.state import (
    ABORTS,
    CAP,
    HASH_ONLY,
    PRIVATE,
    Allocator,
    Group,
    Prefix,
    Request,
    holds,
    missing,
    occupied,
    reads,
    recovering,
    usable,
    waiting,
)
from fivestate.spec.language import (
    Term,
    escape,
    exists,
    forall,
    implies,
    invariant,
    step,
    took,
    witness,
)
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, Device, Phase

HYBRID = exists(Group, lambda g: g != COMPRESSED)
ROOMY = forall(Group, lambda g: CAP[g] >= 1 + 2 * PRIVATE[g])


@invariant("I-0")
def sound(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """What runs reads only right bytes."""
    return implies(reads(s, r, p, g), s.right[p, g])


@invariant("I-1")
def within_cap(s: Allocator, g: Group) -> Term:
    """A group's frames in use never exceed its cap, recovery and doubt included (准入上限)."""
    return occupied(s, g) <= CAP[g]


@step("I-1")
def claims_at_once(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Whoever claims one missing cell of a prefix claims them all, in the same step."""
    claimed = (before.device[p, g] == Device.ABSENT) & (after.device[p, g] != Device.ABSENT)
    return implies(claimed, forall(Group, lambda h: after.device[p, h] != Device.ABSENT))


@invariant("I-2")
def conserved(s: Allocator, g: Group) -> Term:
    """Every frame has one owner: free, a cell, doubt and private frames add up to the cap."""
    return s.free[g] + occupied(s, g) == CAP[g]


@step("I-2")
def legal_arcs(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """A cell is reserved, written, complete, in this order, and may be given up in each."""
    was, now = before.device[p, g], after.device[p, g]
    return (
        (now == was)
        | (now == Device.ABSENT)
        | ((was == Device.ABSENT) & (now == Device.RESERVED))
        | ((was == Device.RESERVED) & (now == Device.WRITING))
        | ((was == Device.WRITING) & (now == Device.READY))
    )


@step("I-2")
def published_complete(before: Allocator, after: Allocator, p: Prefix) -> Term:
    """A prefix becomes known only when every group of it is complete."""
    appears = ~before.known[p] & after.known[p]
    return implies(appears, forall(Group, lambda g: usable(before, p, g)))


@invariant("I-2")
def known_has_entries(s: Allocator, p: Prefix) -> Term:
    """The hash entry goes with the compressed KV: what is known can be resumed from."""
    return implies(s.known[p], usable(s, p, COMPRESSED))


@invariant("I-2")
def work_is_wanted(s: Allocator, p: Prefix, g: Group) -> Term:
    """A frame is reserved or written only while somebody recovers the prefix."""
    working = s.device[p, g].is_in(Device.RESERVED, Device.WRITING)
    return implies(working, recovering(s, p))


@invariant("I-2")
def unpublished_is_wanted(s: Allocator, p: Prefix, g: Group) -> Term:
    """A cell that nobody can find exists only while somebody recovers the prefix."""
    return implies(~s.known[p] & (s.device[p, g] != Device.ABSENT), recovering(s, p))


@invariant("I-3")
def leased_is_ready(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """A leased cell is complete on the device (检查到使用)."""
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
    same = (before.device[p, g] == after.device[p, g]) & (before.right[p, g] == after.right[p, g])
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


@step("I-2")
def nothing_stutters(before: Allocator, after: Allocator) -> Term:
    """Every action changes something."""
    prefixes = exists(
        Prefix,
        lambda p: (
            (before.known[p] != after.known[p])
            | exists(Group, lambda g: before.device[p, g] != after.device[p, g])
        ),
    )
    requests = exists(
        Request,
        lambda r: (
            (before.phase[r] != after.phase[r])
            | (before.fresh[r] != after.fresh[r])
            | (before.slid[r] != after.slid[r])
        ),
    )
    doubt = exists(
        Group,
        lambda g: (before.late[g] != after.late[g]) | (before.doomed[g] != after.doomed[g]),
    )
    return prefixes | requests | doubt


@step("I-2")
def window_goes_first(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Eviction keeps to the order of the states: compressed KV goes when all else is gone."""
    gone = took(evict) & (before.device[p, COMPRESSED] != after.device[p, COMPRESSED])
    return implies(gone & (g != COMPRESSED), after.device[p, g] == Device.ABSENT)


@escape("L-1")
def waits(s: Allocator, r: Request) -> Term:
    """A waiting request can still be served."""
    return waiting(s, r)


@escape("L-2")
def recovers(s: Allocator, r: Request) -> Term:
    """A recovery can still end."""
    return s.phase[r] == Phase.RECOVERING


@escape("L-3")
def in_doubt(s: Allocator, g: Group) -> Term:
    """A withheld frame can still come back."""
    return s.doomed[g] > 0


@witness("W-1")
def hit(s: Allocator, r: Request) -> Term:
    """A request is told HIT."""
    return s.phase[r] == Phase.HIT


@witness("W-2", given=HYBRID & ~HASH_ONLY)
def partial(s: Allocator, r: Request) -> Term:
    """A request is told PARTIAL."""
    return s.phase[r] == Phase.PARTIAL


@witness("W-3")
def stale_hit(s: Allocator, r: Request) -> Term:
    """A request was told HIT, and it no longer is one."""
    return (s.phase[r] == Phase.HIT) & ~s.fresh[r]


@witness("W-4", given=ROOMY)
def two_leases(s: Allocator, r: Request, q: Request, p: Prefix) -> Term:
    """Two requests read one prefix at the same time."""
    both = (s.phase[r] == Phase.RUNNING) & (s.phase[q] == Phase.RUNNING)
    return (r != q) & both & (s.want[r] == p) & (s.want[q] == p)


@witness("W-5")
def pool_full(s: Allocator, g: Group) -> Term:
    """A pool is full."""
    return s.free[g] == 0


@witness("W-6", given=ABORTS)
def refused_for_room(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """A waiting request cannot be admitted because a pool has too little room."""
    lacks = s.free[g] < missing(s, p, g) + PRIVATE[g]
    return waiting(s, r) & (s.want[r] == p) & lacks


@witness("W-7", given=ABORTS)
def doubt(s: Allocator, g: Group) -> Term:
    """A transfer flies whose request is gone."""
    return s.late[g] > 0


@witness("W-8", given=HYBRID)
def window_slides_under_a_lease(s: Allocator, r: Request, p: Prefix) -> Term:
    """A request still reads its prefix while the window of that prefix is evicted."""
    gone = s.device[p, WINDOW] == Device.ABSENT
    return (s.phase[r] == Phase.RUNNING) & (s.want[r] == p) & gone


@witness("W-9")
def joined(s: Allocator, r: Request, q: Request, p: Prefix) -> Term:
    """Two requests wait for one recovery."""
    both = (s.phase[r] == Phase.RECOVERING) & (s.phase[q] == Phase.RECOVERING)
    return (r != q) & both & (s.want[r] == p) & (s.want[q] == p)


PROPERTIES = (
    sound,
    within_cap,
    claims_at_once,
    conserved,
    legal_arcs,
    published_complete,
    known_has_entries,
    work_is_wanted,
    unpublished_is_wanted,
    window_goes_first,
    nothing_stutters,
    leased_is_ready,
    leased_is_unchanged,
    leased_as_checked,
    doubt_is_withheld,
    waits,
    recovers,
    in_doubt,
    hit,
    partial,
    stale_hit,
    two_leases,
    pool_full,
    refused_for_room,
    doubt,
    window_slides_under_a_lease,
    joined,
)
