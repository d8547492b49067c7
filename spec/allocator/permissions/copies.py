"""What may become of copies off the device: they are dropped and erased."""

from __future__ import annotations

from fivestate.spec.allocator.derived import copies, dependants_gone, dirty_copies
from fivestate.spec.allocator.host import make_host_room
from fivestate.spec.allocator.sizes import HOST_TIGHT, TWO_STORABLE
from fivestate.spec.allocator.state import DISK, HOST, LAYOUTS, STORES, Allocator, Group, Prefix
from fivestate.spec.allocator.tiers import drop, erase, fetch, store_begin
from fivestate.spec.language import Term, Ways, may, ways, witness
from fivestate.spec.vocabulary import COMPRESSED, Copy, Device


@witness("P-24", given=STORES)
def drops(s: Allocator, p: Prefix) -> Ways:
    """The copy of compressed KV may be dropped beside its cell, or as the last of its prefix."""
    cell = s.device[p, COMPRESSED]
    return ways(
        beside=may(drop, p, COMPRESSED) & (cell == Device.READY),
        last=may(drop, p, COMPRESSED) & (cell == Device.ABSENT),
    )


@witness("P-25", given=TWO_STORABLE)
def drops_others_at_will(s: Allocator, p: Prefix, g: Group) -> Term:
    """A copy of anything else may be dropped though it is the only one."""
    only = (s.device[p, g] == Device.ABSENT) & (s.disk[p, g] == Copy.NONE)
    return may(drop, p, g) & (g != COMPRESSED) & only & ~dependants_gone(s, p, g)


@witness("P-26", given=STORES & LAYOUTS)
def drops_old(s: Allocator, p: Prefix, g: Group) -> Term:
    """A copy in an old layout may be dropped."""
    return may(drop, p, g) & (s.copy[p, g] == Copy.OLD)


@witness("P-27", given=DISK)
def erases(s: Allocator, p: Prefix) -> Ways:
    """The disk copy of compressed KV may be erased beside its cell, in a load, or as the last."""
    cell, host = s.device[p, COMPRESSED], s.copy[p, COMPRESSED]
    return ways(
        beside=may(erase, p, COMPRESSED) & (cell == Device.READY) & (host == Copy.NONE),
        loading=may(erase, p, COMPRESSED) & (cell == Device.LOADING) & (host == Copy.STORED),
        last=may(erase, p, COMPRESSED) & (cell == Device.ABSENT) & (host == Copy.NONE),
    )


@witness("P-28", given=DISK & LAYOUTS)
def erases_old(s: Allocator, p: Prefix) -> Ways:
    """An old copy on disk may be erased, and one beside an old copy that is being loaded."""
    cell, host = s.device[p, COMPRESSED], s.copy[p, COMPRESSED]
    return ways(
        old=may(erase, p, COMPRESSED) & (s.disk[p, COMPRESSED] == Copy.OLD),
        loading=may(erase, p, COMPRESSED) & (cell == Device.LOADING) & (host == Copy.OLD),
    )


@witness("P-29", given=DISK & TWO_STORABLE)
def erases_others_at_will(s: Allocator, p: Prefix, g: Group) -> Term:
    """A disk copy of anything else may be erased though it is the only one."""
    only = (s.device[p, g] == Device.ABSENT) & (s.copy[p, g] == Copy.NONE)
    return may(erase, p, g) & (g != COMPRESSED) & only & ~dependants_gone(s, p, g)


@witness("P-36", given=STORES & HOST_TIGHT)
def fills_the_host(s: Allocator, p: Prefix, g: Group) -> Ways:
    """The last place off the device may be taken, by a store or by a fetch."""
    last = copies(s, g) + 1 == HOST[g]
    return ways(stored=may(store_begin, p, g) & last, fetched=may(fetch, p, g) & last)


@witness("P-37", given=DISK & HOST_TIGHT)
def keeps_one_place_clean(s: Allocator, p: Prefix, g: Group) -> Ways:
    """All but one place in host memory may hold what the disk does not have.

    Then a disk copy that host memory does not hold may still be erased.
    """
    last = dirty_copies(s, g) + 2 == HOST[g]
    full = dirty_copies(s, g) + 1 == HOST[g]
    return ways(
        stored=may(store_begin, p, g) & last & (s.disk[p, g] == Copy.NONE),
        erased=may(erase, p, g) & last & (s.copy[p, g] != Copy.NONE),
        erased_beside=may(erase, p, g) & full & (s.copy[p, g] == Copy.NONE),
    )


@witness("P-38", given=DISK & HOST_TIGHT)
def makes_host_room(s: Allocator, p: Prefix, g: Group) -> Ways:
    """Room in host memory may be made of a copy whether or not the device has the cell."""
    return ways(
        beside=may(make_host_room, p, g) & (s.device[p, g] == Device.READY),
        alone=may(make_host_room, p, g) & (s.device[p, g] == Device.ABSENT),
    )


@witness("P-39", given=DISK & HOST_TIGHT & LAYOUTS)
def makes_host_room_of_any_layout(s: Allocator, p: Prefix, g: Group) -> Ways:
    """Room in host memory may be made of copies in the new layout and in an old one."""
    return ways(
        new=may(make_host_room, p, g) & (s.copy[p, g] == Copy.STORED),
        old=may(make_host_room, p, g) & (s.copy[p, g] == Copy.OLD),
        old_disk=may(make_host_room, p, g) & (s.disk[p, g] == Copy.OLD),
        new_disk=may(make_host_room, p, g) & (s.disk[p, g] == Copy.STORED),
    )


@witness("P-40", given=DISK & HOST_TIGHT & LAYOUTS)
def stores_what_the_disk_has(s: Allocator, p: Prefix, g: Group) -> Ways:
    """What the disk has, in whichever layout, may be stored into the place that is kept clean."""
    kept = (copies(s, g) + 1 == HOST[g]) & (dirty_copies(s, g) + 1 == HOST[g])
    return ways(
        new=may(store_begin, p, g) & kept & (s.disk[p, g] == Copy.STORED),
        old=may(store_begin, p, g) & kept & (s.disk[p, g] == Copy.OLD),
    )


COPIES = (
    drops,
    drops_others_at_will,
    drops_old,
    erases,
    erases_old,
    erases_others_at_will,
    fills_the_host,
    keeps_one_place_clean,
    makes_host_room,
    makes_host_room_of_any_layout,
    stores_what_the_disk_has,
)
