"""The allocator's variables, the constants a model fixes, and what is derived from them.

There are no counters for time: whether something is *still the one I saw* is a boolean that is
set when it is seen and cleared by whatever changes it (D-7).
"""

from __future__ import annotations

from fivestate.spec.language import (
    BOOL,
    NOTHING,
    Array,
    Relation,
    Sort,
    State,
    Switch,
    Table,
    Term,
    count,
    exists,
    forall,
    ite,
    maybe,
    within,
)
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, CacheState, Device, Phase


class Prefix(Sort, letter="p"):
    """A token prefix that requests may share (前缀)."""


class Group(Sort, letter="g", of=CacheState):
    """A cache group: layers whose cache has one shape, named by its state (缓存组)."""


class Request(Sort, letter="r"):
    """A request that wants to run on a prefix (请求)."""


CAP = Table("cap", "frames in a group's pool", Group, low=1, high=8)
PRIVATE = Table("private", "frames of a group that a running request has to itself", Group, high=4)
FEEDS = Relation("feeds", "h is read when g is made: feeds[h, g]", Group, Group)
HASH_ONLY = Switch("hash_only", "a hash hit counts as a hit; no cell is looked at")
ABORTS = Switch("aborts", "requests may be aborted in any phase")


class Allocator(State):
    """What an allocator knows, and two ghosts it does not."""

    known = Array("the prefix is in the hash index", Prefix, of=BOOL, initial=False)
    device = Array("the device copy", Prefix, Group, of=Device, initial=Device.ABSENT)
    right = Array("a kernel would read right bytes (ghost)", Prefix, Group, of=BOOL, initial=False)
    free = Array("frames nobody has", Group, of=within(0, CAP), initial=CAP)
    doomed = Array("frames withheld: a transfer may fly", Group, of=within(0, CAP), initial=0)
    late = Array("transfers still flying (ghost)", Group, of=within(0, CAP), initial=0)
    phase = Array("what the request is doing", Request, of=Phase, initial=Phase.IDLE)
    want = Array("its prefix", Request, of=maybe(Prefix), initial=NOTHING)
    fresh = Array("its verdict still stands", Request, of=BOOL, initial=False)
    slid = Array("its window has moved past the prefix", Request, of=BOOL, initial=False)


def usable(s: Allocator, p: Prefix, g: Group | CacheState) -> Term:
    """A cell is usable when it is complete on the device."""
    return s.device[p, g] == Device.READY


def verdict(s: Allocator, p: Prefix) -> Term:
    """Say what a request that looks at ``p`` now is told: MISS, PARTIAL or HIT (命中判定)."""
    every = forall(Group, lambda g: usable(s, p, g))
    hit = s.known[p] & (HASH_ONLY | every)
    partial = s.known[p] & usable(s, p, COMPRESSED)
    return ite(hit, Phase.HIT, ite(partial, Phase.PARTIAL, Phase.MISS))


def waiting(s: Allocator, r: Request) -> Term:
    """A request waits from its arrival until it is admitted or leases."""
    return s.phase[r].is_in(Phase.MISS, Phase.PARTIAL, Phase.HIT)


def admitted(s: Allocator, r: Request) -> Term:
    """A request has its private frames from admission or lease until it ends."""
    return s.phase[r].is_in(Phase.RECOVERING, Phase.LEASED, Phase.RUNNING, Phase.DRAINING)


def reads(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """Kernels of the request may be reading this cell now."""
    running = s.phase[r].is_in(Phase.RUNNING, Phase.DRAINING)
    return running & (s.want[r] == p) & ~(s.slid[r] & (g == WINDOW))


def holds(s: Allocator, r: Request, p: Prefix, g: Group) -> Term:
    """The request's lease pins this cell: nobody may take or change it."""
    leased = (s.phase[r] == Phase.LEASED) & (s.want[r] == p)
    return leased | reads(s, r, p, g)


def recovering(s: Allocator, p: Prefix) -> Term:
    """Some request recovers this prefix; the work belongs to the prefix, not to the request."""
    return exists(Request, lambda r: (s.phase[r] == Phase.RECOVERING) & (s.want[r] == p))


def last_interest(s: Allocator, r: Request, p: Prefix) -> Term:
    """No other request recovers this prefix."""
    return forall(
        Request,
        lambda q: (q == r) | (s.phase[q] != Phase.RECOVERING) | (s.want[q] != p),
    )


def missing(s: Allocator, p: Prefix, g: Group) -> Term:
    """How many frames the prefix still lacks in this group: none or one."""
    return ite(s.device[p, g] == Device.ABSENT, 1, 0)


def occupied(s: Allocator, g: Group) -> Term:
    """How many frames of the group's pool somebody has: cells, doubt and private frames."""
    cells = count(Prefix, lambda p: s.device[p, g] != Device.ABSENT)
    return cells + s.doomed[g] + PRIVATE[g] * count(Request, lambda r: admitted(s, r))
