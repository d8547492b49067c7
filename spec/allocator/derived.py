"""What follows from the allocator's variables: who holds what, what is usable, what has room.

Leases, pins and a pool's use are not variables: a second place to keep them could disagree.
"""

from __future__ import annotations

from fivestate.spec.allocator.state import (
    HASH_ONLY,
    PRIVATE,
    SLOTS,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import Term, count, exists, forall, implies, ite
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW, CacheState, Copy, Device, Fit, Phase

AnyGroup = Group | CacheState


def ready(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """A cell is ready when it is complete, whether or not it fits."""
    return s.device[p, g] == Device.READY


def usable(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """A cell is usable when it is complete and the kernels can read it as it is."""
    return ready(s, p, g) & (s.fit[p, g] == Fit.OK)


def stored(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """The tier next to the device has a complete copy."""
    return s.copy[p, g].is_in(Copy.STORED, Copy.OLD)


def archived(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """The disk behind host memory has a complete copy."""
    return s.disk[p, g].is_in(Copy.STORED, Copy.OLD)


def kept(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """Some tier off the device has a complete copy."""
    return stored(s, p, g) | archived(s, p, g)


def copies(s: Allocator, g: Group) -> Term:
    """How many places of a group in the tier next to the device are taken."""
    return count(Prefix, lambda p: s.copy[p, g] != Copy.NONE)


def dirty_copies(s: Allocator, g: Group) -> Term:
    """How many of them the disk does not have: these cannot just be given up."""
    return count(Prefix, lambda p: (s.copy[p, g] != Copy.NONE) & ~archived(s, p, g))


def awaits_fetch(s: Allocator, p: Prefix, g: Group) -> Term:
    """A cell waits for a copy that only the disk has."""
    waits = (s.device[p, g] == Device.RESERVED) & (s.copy[p, g] == Copy.NONE)
    return waits & archived(s, p, g)


def verdict(s: Allocator, p: Prefix) -> Term:
    """What a request that looks at ``p`` now is told: MISS, PARTIAL or HIT (命中判定).

    HIT: every group is there and fits. PARTIAL: the compressed KV is somewhere, and all else
    can be made from it.
    """
    every = forall(Group, lambda g: usable(s, p, g))
    hit = s.known[p] & (HASH_ONLY | every)
    partial = s.known[p] & (ready(s, p, COMPRESSED) | kept(s, p, COMPRESSED))
    return ite(hit, Phase.HIT, ite(partial, Phase.PARTIAL, Phase.MISS))


def waiting(s: Allocator, r: Request) -> Term:
    """A request waits from its arrival until it is admitted or leases."""
    return s.phase[r].is_in(Phase.MISS, Phase.PARTIAL, Phase.HIT)


def first(s: Allocator, r: Request) -> Term:
    """No request has waited longer."""
    return forall(Request, lambda q: ~s.ahead[q, r])


def in_use(s: Allocator, r: Request) -> Term:
    """A request has its private frames from admission or lease until its last kernel ends."""
    return s.phase[r].is_in(
        Phase.RECOVERING,
        Phase.LEASED,
        Phase.RUNNING,
        Phase.REPLAYING,
        Phase.DRAINING,
    )


def reads(s: Allocator, r: Request, p: Prefix, g: AnyGroup) -> Term:
    """Kernels of the request may be reading this cell now."""
    running = s.phase[r].is_in(Phase.RUNNING, Phase.REPLAYING, Phase.DRAINING)
    let_go = (s.slid[r] & (g == WINDOW)) | (s.copied[r] & (g == TAIL))
    return running & (s.want[r] == p) & ~let_go


def holds(s: Allocator, r: Request, p: Prefix, g: AnyGroup) -> Term:
    """The request's lease pins this cell: nobody may take or change it."""
    return ((s.phase[r] == Phase.LEASED) & (s.want[r] == p)) | reads(s, r, p, g)


def unleased(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """Nobody holds the cell."""
    return forall(Request, lambda r: ~holds(s, r, p, g))


def recovering(s: Allocator, p: Prefix) -> Term:
    """Somebody recovers this prefix; the work belongs to the prefix, not to who asked."""
    asked = exists(Request, lambda r: (s.phase[r] == Phase.RECOVERING) & (s.want[r] == p))
    return asked | s.prefetching[p]


def others_recover(s: Allocator, r: Request, p: Prefix) -> Term:
    """Somebody other than this request recovers the prefix."""
    others = exists(
        Request,
        lambda q: (q != r) & (s.phase[q] == Phase.RECOVERING) & (s.want[q] == p),
    )
    return others | s.prefetching[p]


def missing(s: Allocator, p: Prefix, g: Group) -> Term:
    """How many frames the prefix lacks in this group: none or one."""
    return ite(s.device[p, g] == Device.ABSENT, 1, 0)


def demand(s: Allocator, p: Prefix, g: Group) -> Term:
    """How many free frames an admission to this prefix asks of the group's pool.

    The one formula: admission, eviction on demand and the witnesses all ask it. Two formulas
    that disagree leave a waiter stuck (vLLM #39734).
    """
    return missing(s, p, g) + PRIVATE[g]


def slot_free(s: Allocator) -> Term:
    """One more request may be in use."""
    return count(Request, lambda r: in_use(s, r)) < SLOTS


def replaying(s: Allocator, p: Prefix) -> Term:
    """A captured graph is reading the prefix now."""
    return exists(Request, lambda r: (s.phase[r] == Phase.REPLAYING) & (s.want[r] == p))


def only_copy(s: Allocator, p: Prefix, g: Group) -> Term:
    """The cell is compressed KV with no copy elsewhere: all else of the prefix hangs on it."""
    return (g == COMPRESSED) & ~kept(s, p, g)


def dependants_gone(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """No other group has anything of the prefix, on the device or off it."""
    return forall(
        Group,
        lambda h: implies(
            h != g,
            (s.device[p, h] == Device.ABSENT)
            & (s.copy[p, h] == Copy.NONE)
            & (s.disk[p, h] == Copy.NONE),
        ),
    )
