"""The tier next to the device is finite; before a disk, room in it costs nothing (D-26)."""

from __future__ import annotations

from fivestate.spec.allocator.derived import archived, awaits_fetch, copies, dirty_copies, stored
from fivestate.spec.allocator.state import DISK, HOST, STORES, Allocator, Group, Prefix
from fivestate.spec.allocator.tiers import unclaimed
from fivestate.spec.language import Term, action, exists, implies, invariant, require, step, took
from fivestate.spec.vocabulary import Bytes, Copy


def host_demanded(s: Allocator, g: Group) -> Term:
    """A fetch waits for a place in host memory, and there is none."""
    return (copies(s, g) == HOST[g]) & exists(Prefix, lambda q: awaits_fetch(s, q, g))


@action("A-57", state="g", given=DISK)
def make_host_room(s: Allocator, p: Prefix, g: Group) -> None:
    """Drop a host copy that the disk has too, because a fetch lacks its place (按需淘汰).

    Nothing is lost by it; never under a load or before one.
    Decision: D-26.
    """
    require(
        twice=stored(s, p, g) & archived(s, p, g),
        unclaimed=unclaimed(s, p, g),
        demanded=host_demanded(s, g),
    )
    s.copy[p, g] = Copy.NONE
    s.stored[p, g] = Bytes.WRONG


@invariant("I-1", given=STORES)
def within_host(s: Allocator, g: Group) -> Term:
    """No more copies are in the tier next to the device than it has room for."""
    return copies(s, g) <= HOST[g]


@invariant("I-1", given=DISK)
def one_place_is_clean(s: Allocator, g: Group) -> Term:
    """Host memory never fills up with copies that the disk does not have."""
    return dirty_copies(s, g) < HOST[g]


@step("I-1", given=DISK)
def host_room_costs_nothing(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Room in host memory is made only for a fetch that lacks it, of what the disk has too."""
    given_up = (before.copy[p, g] != Copy.NONE) & (after.copy[p, g] == Copy.NONE)
    right = host_demanded(before, g) & archived(before, p, g)
    return implies(took(make_host_room) & given_up, right)


HOST_RULES = (within_host, one_place_is_clean, host_room_costs_nothing)
