"""The tiers off the device: cells are stored, loaded back, dropped, moved to disk and back.

A transfer is one arc from its begin to its end, good or bad: what it does in between (read,
verify, move, rebuild metadata) nobody may observe, and it may be cut at any of these (D-14).
The index has no copy: fetched whole it could be of another generation (D-13).
"""

from __future__ import annotations

from fivestate.spec.allocator.derived import (
    archived,
    copies,
    dependants_gone,
    dirty_copies,
    ready,
    stored,
    usable,
)
from fivestate.spec.allocator.effects import arrive_in_cell, outdate
from fivestate.spec.allocator.state import (
    BUDGET,
    DISK,
    HOST,
    MISFITS,
    STORABLE,
    STORES,
    Allocator,
    Group,
    Prefix,
)
from fivestate.spec.language import (
    Term,
    action,
    count,
    implies,
    ite,
    require,
    total,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Bytes, Copy, Device, Fit


def transfers(s: Allocator) -> Term:
    """How many loads, stores and demotions are under way: they share one budget (D-3)."""
    return total(
        Group,
        lambda g: (
            count(Prefix, lambda p: s.device[p, g] == Device.LOADING)
            + count(Prefix, lambda p: s.copy[p, g] == Copy.STORING)
            + count(Prefix, lambda p: s.disk[p, g] == Copy.STORING)
        ),
    )


def in_budget(s: Allocator) -> Term:
    """One more transfer may be under way."""
    return transfers(s) < BUDGET


@action("A-41", state="g", given=STORES)
def load_begin(s: Allocator, p: Prefix, g: Group) -> None:
    """Start bringing a copy back into the frame that was claimed for it (回迁).

    Source: seed 000 §3(5), §6(1); seed 003 §3.5.
    """
    require(
        reserved=s.device[p, g] == Device.RESERVED,
        stored=stored(s, p, g),
        in_budget=in_budget(s),
    )
    s.device[p, g] = Device.LOADING


@action("A-42", state="g", marks=(INDEXER,), given=STORES)
def load_good(s: Allocator, p: Prefix, g: Group) -> None:
    """The load ends, and what came checks."""
    require(loading=s.device[p, g] == Device.LOADING)
    old = s.copy[p, g] == Copy.OLD
    arrive_in_cell(s, p, g, ite(old, Fit.OLD_LAYOUT, Fit.OK), s.stored[p, g])


@action("A-43", state="g", marks=(INDEXER,), given=STORES & MISFITS)
def load_misaligned(s: Allocator, p: Prefix, g: Group) -> None:
    """The load ends, and the bytes lie where no kernel looks for them (未对齐).

    Source: seed 000 §5(4); seed 003 §4.4.
    """
    require(loading=s.device[p, g] == Device.LOADING)
    fit = ite(s.copy[p, g] == Copy.OLD, Fit.OLD_LAYOUT, Fit.MISALIGNED)
    wrong = s.stored[p, g] == Bytes.WRONG
    arrive_in_cell(s, p, g, fit, ite(wrong, Bytes.WRONG, Bytes.FIXABLE))


@action("A-44", state="g", given=STORES)
def load_bad(s: Allocator, p: Prefix, g: Group) -> None:
    """The load ends, and what came does not check: every copy of it is dropped, the frame kept.

    A copy that stayed, on whatever tier, would be loaded, and fail, for ever. Without its
    entries the prefix is no longer known.
    Source: domain §9; vllm-ascend, lookup hit and then failed get.
    """
    require(loading=s.device[p, g] == Device.LOADING)
    s.device[p, g] = Device.RESERVED
    s.copy[p, g] = Copy.NONE
    s.stored[p, g] = Bytes.WRONG
    s.disk[p, g] = Copy.NONE
    s.archived[p, g] = Bytes.WRONG
    lost = g == COMPRESSED
    s.known[p] = s.known[p] & ~lost
    outdate(s, p, lost)


@action("A-45", state="g", given=STORES)
def store_begin(s: Allocator, p: Prefix, g: Group) -> None:
    """Start storing a usable cell of a known prefix, where the tier has room for it (下沉).

    With a disk behind it, the tier keeps one place that it can give up at once, since the disk
    has that copy too (D-26).
    """
    require(
        known=s.known[p],
        usable=usable(s, p, g),
        storable=STORABLE[g],
        none=s.copy[p, g] == Copy.NONE,
        room=copies(s, g) < HOST[g],
        clean=implies(DISK & ~archived(s, p, g), dirty_copies(s, g) + 1 < HOST[g]),
        in_budget=in_budget(s),
    )
    s.copy[p, g] = Copy.STORING


@action("A-46", state="g", given=STORES)
def store_good(s: Allocator, p: Prefix, g: Group) -> None:
    """The store ends well; it counts only if the prefix is still known."""
    require(storing=(s.copy[p, g] == Copy.STORING) & ready(s, p, g))
    s.copy[p, g] = ite(s.known[p], Copy.STORED, Copy.NONE)
    s.stored[p, g] = ite(s.known[p], s.bytes[p, g], Bytes.WRONG)


@action("A-47", state="g", given=STORES)
def store_bad(s: Allocator, p: Prefix, g: Group) -> None:
    """The store fails: there is no copy."""
    require(storing=(s.copy[p, g] == Copy.STORING) & ready(s, p, g))
    s.copy[p, g] = Copy.NONE


def unclaimed(s: Allocator, p: Prefix, g: Group) -> Term:
    """No load reads the copy, or is about to."""
    return ~s.device[p, g].is_in(Device.RESERVED, Device.LOADING)


@action("A-48", state="g", given=STORES)
def drop(s: Allocator, p: Prefix, g: Group) -> None:
    """Drop a copy that no load reads or is about to; the last of compressed KV goes last.

    Source: domain §2.2.
    """
    elsewhere = ready(s, p, g) | archived(s, p, g)
    alone = (s.device[p, g] == Device.ABSENT) & dependants_gone(s, p, g)
    require(
        stored=stored(s, p, g),
        unclaimed=unclaimed(s, p, g),
        not_moving=s.disk[p, g] != Copy.STORING,
        last=implies(g == COMPRESSED, elsewhere | alone),
    )
    s.copy[p, g] = Copy.NONE
    s.stored[p, g] = Bytes.WRONG
    lost = (g == COMPRESSED) & ~elsewhere
    s.known[p] = s.known[p] & ~lost
    outdate(s, p, lost)


@action("A-51", state="g", given=DISK)
def demote_begin(s: Allocator, p: Prefix, g: Group) -> None:
    """Start writing a host copy to disk (降级)."""
    require(
        stored=s.copy[p, g] == Copy.STORED,
        none=s.disk[p, g] == Copy.NONE,
        in_budget=in_budget(s),
    )
    s.disk[p, g] = Copy.STORING


@action("A-52", state="g", given=DISK)
def demote_good(s: Allocator, p: Prefix, g: Group) -> None:
    """The disk copy is complete and synced."""
    require(moving=s.disk[p, g] == Copy.STORING)
    s.disk[p, g] = s.copy[p, g]
    s.archived[p, g] = s.stored[p, g]


@action("A-53", state="g", given=DISK)
def demote_bad(s: Allocator, p: Prefix, g: Group) -> None:
    """The disk copy fails: there is none."""
    require(moving=s.disk[p, g] == Copy.STORING)
    s.disk[p, g] = Copy.NONE


@action("A-54", state="g", given=DISK)
def fetch(s: Allocator, p: Prefix, g: Group) -> None:
    """Read a disk copy into host memory, for a cell that waits for it, and verify it (升级)."""
    require(
        reserved=s.device[p, g] == Device.RESERVED,
        archived=archived(s, p, g),
        none=s.copy[p, g] == Copy.NONE,
        room=copies(s, g) < HOST[g],
    )
    s.copy[p, g] = s.disk[p, g]
    s.stored[p, g] = s.archived[p, g]


@action("A-55", state="g", given=DISK)
def fetch_bad(s: Allocator, p: Prefix, g: Group) -> None:
    """A disk copy does not check when it is read: it is dropped."""
    require(
        reserved=s.device[p, g] == Device.RESERVED,
        archived=archived(s, p, g),
        none=s.copy[p, g] == Copy.NONE,
    )
    s.disk[p, g] = Copy.NONE
    s.archived[p, g] = Bytes.WRONG
    lost = g == COMPRESSED
    s.known[p] = s.known[p] & ~lost
    outdate(s, p, lost)


@action("A-56", state="g", given=DISK)
def erase(s: Allocator, p: Prefix, g: Group) -> None:
    """Erase a disk copy; the last of compressed KV goes last.

    What host memory has of it can then no longer be given up at once, so another place there
    has to be one that can.
    """
    elsewhere = ready(s, p, g) | stored(s, p, g)
    alone = (s.device[p, g] == Device.ABSENT) & dependants_gone(s, p, g)
    require(
        archived=archived(s, p, g),
        last=implies(g == COMPRESSED, elsewhere | alone),
        clean=implies(s.copy[p, g] != Copy.NONE, dirty_copies(s, g) + 1 < HOST[g]),
    )
    s.disk[p, g] = Copy.NONE
    s.archived[p, g] = Bytes.WRONG
    lost = (g == COMPRESSED) & ~elsewhere
    s.known[p] = s.known[p] & ~lost
    outdate(s, p, lost)
