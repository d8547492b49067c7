"""What may become of cells while others go on: they are evicted, make room, are renewed."""

from __future__ import annotations

from fivestate.spec.allocator.cells import evict, make_room, reindex
from fivestate.spec.allocator.derived import dependants_gone, first
from fivestate.spec.allocator.graphs import invalidate
from fivestate.spec.allocator.sizes import CONTENDED, GRADED, HYBRID, TWO_PREFIXES, has
from fivestate.spec.allocator.state import (
    DISK,
    FORKS,
    GRAPHS,
    HASH_ONLY,
    LAYOUTS,
    REINDEXES,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.allocator.tiers import drop
from fivestate.spec.language import Term, Ways, may, ways, witness
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Copy, Device, Phase


def elsewhere(s: Allocator, r: Request, p: Prefix, phase: Phase) -> Term:
    """A request is in this phase, reading all that it ever reads, on another prefix."""
    return (s.phase[r] == phase) & (s.want[r] != p) & ~s.slid[r] & ~s.copied[r]


@witness("P-8", given=CONTENDED)
def evicts_beside(s: Allocator, r: Request, p: Prefix, g: Group) -> Ways:
    """A cell may be evicted while another prefix is held, read or recovered."""
    return ways(
        held=may(evict, p, g) & elsewhere(s, r, p, Phase.LEASED),
        read=may(evict, p, g) & elsewhere(s, r, p, Phase.RUNNING),
        recovered=may(evict, p, g) & elsewhere(s, r, p, Phase.RECOVERING),
    )


@witness("P-9", given=CONTENDED)
def makes_room_beside(s: Allocator, r: Request, p: Prefix, g: Group) -> Ways:
    """Room may be made for a waiter while others hold, read or recover what it waits for."""
    return ways(
        held=may(make_room, p, g) & elsewhere(s, r, p, Phase.LEASED),
        read=may(make_room, p, g) & elsewhere(s, r, p, Phase.RUNNING),
        recovered=may(make_room, p, g) & elsewhere(s, r, p, Phase.RECOVERING),
    )


@witness("P-10", given=CONTENDED & GRADED)
def makes_room_for_anybody(s: Allocator, r: Request, p: Prefix, g: Group) -> Ways:
    """Room may be made for a waiter whatever it was told: a hit needs frames of its own, too."""
    waits = first(s, r) & (s.want[r] != p)
    return ways(
        miss=may(make_room, p, g) & waits & (s.phase[r] == Phase.MISS),
        partial=may(make_room, p, g) & waits & (s.phase[r] == Phase.PARTIAL),
        hit=may(make_room, p, g) & waits & (s.phase[r] == Phase.HIT),
    )


def runs_on(s: Allocator, r: Request, p: Prefix) -> Term:
    """The request runs on this prefix."""
    return (s.phase[r] == Phase.RUNNING) & (s.want[r] == p)


@witness("P-11", given=CONTENDED & has(WINDOW))
def takes_the_window(s: Allocator, r: Request, p: Prefix) -> Ways:
    """The window that a running request has let go may be taken from under it."""
    let_go = runs_on(s, r, p) & s.slid[r]
    return ways(
        evicted=may(evict, p, WINDOW) & let_go,
        for_room=may(make_room, p, WINDOW) & let_go,
    )


@witness("P-12", given=CONTENDED & FORKS & has(TAIL))
def takes_the_tail(s: Allocator, r: Request, p: Prefix) -> Ways:
    """The shared tail may be taken from under a running request that has its own."""
    let_go = runs_on(s, r, p) & s.copied[r]
    return ways(
        evicted=may(evict, p, TAIL) & let_go,
        for_room=may(make_room, p, TAIL) & let_go,
    )


def over(s: Allocator, p: Prefix, host: Copy, disk: Copy) -> Term:
    """The compressed KV has just these copies, and something that was made from it is left."""
    copies = (s.copy[p, COMPRESSED] == host) & (s.disk[p, COMPRESSED] == disk)
    return copies & ~dependants_gone(s, p, COMPRESSED)


@witness("P-13", given=STORES & HYBRID & ~HASH_ONLY)
def evicts_entries_first(s: Allocator, p: Prefix) -> Term:
    """Compressed KV with a copy may be evicted before what was made from it."""
    return may(evict, p, COMPRESSED) & over(s, p, Copy.STORED, Copy.NONE)


@witness("P-14", given=STORES & HYBRID & LAYOUTS)
def evicts_over_an_old_copy(s: Allocator, p: Prefix) -> Term:
    """A copy in an old layout is a copy: it keeps what is evicted."""
    return may(evict, p, COMPRESSED) & over(s, p, Copy.OLD, Copy.NONE)


@witness("P-15", given=DISK & HYBRID)
def relies_on_the_disk(s: Allocator, p: Prefix) -> Ways:
    """A copy on disk alone is a copy: it keeps what is evicted, or dropped from host memory."""
    absent = s.device[p, COMPRESSED] == Device.ABSENT
    return ways(
        evicted=may(evict, p, COMPRESSED) & over(s, p, Copy.NONE, Copy.STORED),
        dropped=may(drop, p, COMPRESSED) & over(s, p, Copy.STORED, Copy.STORED) & absent,
    )


@witness("P-16", given=DISK & HYBRID & LAYOUTS)
def relies_on_an_old_disk_copy(s: Allocator, p: Prefix) -> Ways:
    """A copy on disk in an old layout keeps what is evicted, or dropped, as well."""
    absent = s.device[p, COMPRESSED] == Device.ABSENT
    return ways(
        evicted=may(evict, p, COMPRESSED) & over(s, p, Copy.NONE, Copy.OLD),
        dropped=may(drop, p, COMPRESSED) & over(s, p, Copy.OLD, Copy.OLD) & absent,
    )


@witness("P-17", given=TWO_PREFIXES & STORES & HYBRID)
def makes_room_of_entries_first(s: Allocator, p: Prefix) -> Term:
    """Room may be made of compressed KV with a copy before what was made from it."""
    return may(make_room, p, COMPRESSED) & over(s, p, Copy.STORED, Copy.NONE)


@witness("P-18", given=TWO_PREFIXES & STORES & HYBRID & LAYOUTS)
def makes_room_over_an_old_copy(s: Allocator, p: Prefix) -> Term:
    """Room may be made over a copy in an old layout, too."""
    return may(make_room, p, COMPRESSED) & over(s, p, Copy.OLD, Copy.NONE)


@witness("P-19", given=TWO_PREFIXES & DISK & HYBRID & LAYOUTS)
def makes_room_over_the_disk(s: Allocator, p: Prefix) -> Ways:
    """Room may be made over a copy on disk alone, in whichever layout."""
    return ways(
        now=may(make_room, p, COMPRESSED) & over(s, p, Copy.NONE, Copy.STORED),
        old=may(make_room, p, COMPRESSED) & over(s, p, Copy.NONE, Copy.OLD),
    )


@witness("P-20", given=REINDEXES & has(WINDOW) & has(INDEXER))
def renews_without_the_window(s: Allocator, p: Prefix) -> Ways:
    """An index may be renewed while the window is gone, and the window may go meanwhile."""
    return ways(
        renewed=may(reindex, p) & (s.device[p, WINDOW] == Device.ABSENT),
        meanwhile=may(evict, p, WINDOW) & (s.device[p, INDEXER] == Device.WRITING),
    )


@witness("P-21", given=TWO_PREFIXES & REINDEXES & has(WINDOW) & has(INDEXER))
def makes_room_meanwhile(s: Allocator, p: Prefix) -> Term:
    """Room may be made of a window while the index beside it is renewed."""
    return may(make_room, p, WINDOW) & (s.device[p, INDEXER] == Device.WRITING)


@witness("P-22", given=REINDEXES & has(INDEXER) & CONTENDED)
def renews_beside(s: Allocator, r: Request, p: Prefix) -> Ways:
    """An index may be renewed while another prefix is held, read or recovered."""
    return ways(
        held=may(reindex, p) & elsewhere(s, r, p, Phase.LEASED),
        read=may(reindex, p) & elsewhere(s, r, p, Phase.RUNNING),
        recovered=may(reindex, p) & elsewhere(s, r, p, Phase.RECOVERING),
    )


@witness("P-23", given=GRAPHS & CONTENDED)
def invalidates_beside(s: Allocator, r: Request, p: Prefix) -> Term:
    """A graph may be given up while that of another prefix is replayed."""
    return may(invalidate, p) & (s.phase[r] == Phase.REPLAYING) & (s.want[r] != p)


CELLS = (
    evicts_beside,
    makes_room_beside,
    makes_room_for_anybody,
    takes_the_window,
    takes_the_tail,
    evicts_entries_first,
    evicts_over_an_old_copy,
    relies_on_the_disk,
    relies_on_an_old_disk_copy,
    makes_room_of_entries_first,
    makes_room_over_an_old_copy,
    makes_room_over_the_disk,
    renews_without_the_window,
    makes_room_meanwhile,
    renews_beside,
    invalidates_beside,
)
