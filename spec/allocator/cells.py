"""What happens to cells on the device: they are made, published, repacked, evicted."""

from __future__ import annotations

from fivestate.spec.allocator.derived import (
    demand,
    dependants_gone,
    first,
    kept,
    only_copy,
    ready,
    recovering,
    unleased,
    usable,
    waiting,
)
from fivestate.spec.allocator.effects import arrive_in_cell, outdate, take_frame
from fivestate.spec.allocator.state import (
    FEEDS,
    LAYOUTS,
    REINDEXES,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import Term, action, each, exists, forall, implies, ite, require
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Bytes, Copy, Device, Fit


def sources_right(s: Allocator, p: Prefix, g: Group) -> Term:
    """What the cell is made from is right now (ghost)."""
    return forall(Group, lambda h: implies(FEEDS[h, g], s.bytes[p, h] == Bytes.RIGHT))


@action("A-21", state="g")
def make(s: Allocator, p: Prefix, g: Group) -> None:
    """Start making a missing or stale cell from the groups it is made from (写入, 重算, 重建).

    COMPRESSED is computed from the tokens, if the prefix is not known; WINDOW and INDEXER from
    it; TAIL from it and WINDOW. A recovery makes cells under a prefix that is known.
    Source: seed 002 §4.4; domain §9(1).
    """
    stale = ready(s, p, g) & (s.fit[p, g] == Fit.OUT_OF_STEP) & recovering(s, p)
    require(
        due=(s.device[p, g] == Device.RESERVED) | stale,
        unknown=implies(g == COMPRESSED, ~s.known[p]),
        sources=forall(Group, lambda h: implies(FEEDS[h, g], usable(s, p, h))),
    )
    s.device[p, g] = Device.WRITING
    s.fit[p, g] = Fit.OK
    s.bytes[p, g] = ite(sources_right(s, p, g), Bytes.FIXABLE, Bytes.WRONG)


@action("A-22", state="g", marks=(INDEXER,))
def made(s: Allocator, p: Prefix, g: Group) -> None:
    """The cell is complete."""
    require(writing=s.device[p, g] == Device.WRITING)
    right = (s.bytes[p, g] == Bytes.FIXABLE) & sources_right(s, p, g)
    arrive_in_cell(s, p, g, Fit.OK, ite(right, Bytes.RIGHT, Bytes.WRONG))


@action("A-23", state=COMPRESSED)
def publish(s: Allocator, p: Prefix) -> None:
    """Put the prefix into the hash index, once every group of it is complete (发布).

    Source: domain §9(5).
    """
    require(unknown=~s.known[p], complete=forall(Group, lambda g: usable(s, p, g)))
    s.known[p] = True


@action("A-24", state="g", given=STORES | LAYOUTS)
def repack(s: Allocator, p: Prefix, g: Group) -> None:
    """Move a cell's bytes to where, and into the layout in which, the kernels look (重排).

    It repairs place and layout, never an index that is out of step. Only for who recovers: it
    costs bandwidth.
    Source: seed 000 §5(4).
    """
    require(
        unfit=s.fit[p, g].is_in(Fit.MISALIGNED, Fit.OLD_LAYOUT),
        wanted=recovering(s, p),
    )
    s.fit[p, g] = Fit.OK
    s.bytes[p, g] = ite(s.bytes[p, g] == Bytes.FIXABLE, Bytes.RIGHT, s.bytes[p, g])


@action("A-25", state=INDEXER, given=REINDEXES)
def reindex(s: Allocator, p: Prefix) -> None:
    """Rebuild a prefix's index in place, while nobody holds it and no graph reads it (索引更新).

    A request that was told HIT before must look again.
    Source: seed 003 §3.4.
    """
    require(
        usable=usable(s, p, INDEXER),
        unleased=unleased(s, p, INDEXER),
        settled=~recovering(s, p),
        uncaptured=~s.graph[p],
        sources=forall(Group, lambda h: implies(FEEDS[h, INDEXER], usable(s, p, h))),
    )
    s.device[p, INDEXER] = Device.WRITING
    s.bytes[p, INDEXER] = Bytes.FIXABLE
    outdate(s, p)


def require_evictable(s: Allocator, p: Prefix, g: Group) -> None:
    """Refuse to take a frame that somebody holds, reads, stores or builds on."""
    require(
        ready=ready(s, p, g),
        unleased=unleased(s, p, g),
        settled=~recovering(s, p),
        uncaptured=~s.graph[p],
        not_storing=s.copy[p, g] != Copy.STORING,
        not_a_source=forall(
            Group,
            lambda h: implies(FEEDS[g, h], s.device[p, h] != Device.WRITING),
        ),
        last=implies(only_copy(s, p, g), dependants_gone(s, p, g)),
    )


@action("A-26", state="g")
def evict(s: Allocator, p: Prefix, g: Group) -> None:
    """Take the frame of a cell that nobody holds or recovers (淘汰).

    Each group is evicted on its own. Compressed KV without a copy goes last, and the hash entry
    goes with it.
    Source: seed 000 §6(2); seed 003 §3.1.
    """
    require_evictable(s, p, g)
    take_frame(s, p, g, s.known[p] & ((g != COMPRESSED) | kept(s, p, g)))


@action("A-27", state="g")
def make_room(s: Allocator, p: Prefix, g: Group) -> None:
    """Evict because the first waiter lacks a frame of this group (按需淘汰).

    Demand is admission's own formula; a pool that is merely not empty may still be too small.
    Never a cell of the waiter's own prefix: it would be missing next.
    Source: vLLM #39734.
    """
    require_evictable(s, p, g)
    require(demanded=demanded(s, p, g))
    take_frame(s, p, g, s.known[p] & ((g != COMPRESSED) | kept(s, p, g)))


def demanded(s: Allocator, p: Prefix, g: Group) -> Term:
    """The first waiter, on another prefix, lacks a frame of this group."""
    return exists(
        Request,
        lambda r: (
            waiting(s, r)
            & first(s, r)
            & exists(
                Prefix,
                lambda q: (q != p) & (s.want[r] == q) & (s.free[g] < demand(s, q, g)),
            )
        ),
    )


@action("A-28", state="g")
def land(s: Allocator, g: Group) -> None:
    """A transfer whose request is gone reaches its frame.

    If that frame had been given to somebody else, it would hit what they have there.
    """
    require(flying=s.late[g] > 0)
    s.late[g] = s.late[g] - 1
    for p in each(Prefix):
        s.bytes[p, g] = ite(s.late[g] > s.doomed[g], Bytes.WRONG, s.bytes[p, g])


@action("A-29", state="g")
def reclaim(s: Allocator, g: Group) -> None:
    """Give back a withheld frame, once its transfer has landed.

    Source: domain §9(5), in doubt.
    """
    require(landed=s.late[g] < s.doomed[g])
    s.doomed[g] = s.doomed[g] - 1
    s.free[g] = s.free[g] + 1
