"""What happens to cells: they are written, published, evicted."""

from __future__ import annotations

from fivestate.spec.allocator.state import (
    FEEDS,
    Allocator,
    Group,
    Prefix,
    Request,
    holds,
    recovering,
    usable,
    waiting,
)
from fivestate.spec.language import action, each, forall, implies, require
from fivestate.spec.vocabulary import COMPRESSED, Device


@action("A-21", state="g")
def make(s: Allocator, p: Prefix, g: Group) -> None:
    """Start making a missing cell from the groups it is made from (写入, 重算, 重建).

    COMPRESSED is computed from the tokens; WINDOW and INDEXER from it; TAIL from it and WINDOW.
    The prefix may be known already: a recovery writes under a known prefix.
    Source: seed 002 §4.4; domain §9(1).
    """
    require(
        reserved=s.device[p, g] == Device.RESERVED,
        sources=forall(Group, lambda h: implies(FEEDS[h, g], usable(s, p, h))),
    )
    s.device[p, g] = Device.WRITING
    s.right[p, g] = forall(Group, lambda h: implies(FEEDS[h, g], s.right[p, h]))


@action("A-22", state="g")
def made(s: Allocator, p: Prefix, g: Group) -> None:
    """The cell is complete."""
    require(writing=s.device[p, g] == Device.WRITING)
    s.device[p, g] = Device.READY
    sources = forall(Group, lambda h: implies(FEEDS[h, g], s.right[p, h]))
    s.right[p, g] = s.right[p, g] & sources


@action("A-23", state=COMPRESSED)
def publish(s: Allocator, p: Prefix) -> None:
    """Put the prefix into the hash index, once every group of it is complete (发布).

    Source: domain §9(5).
    """
    require(unknown=~s.known[p], complete=forall(Group, lambda g: usable(s, p, g)))
    s.known[p] = True


@action("A-24", state="g")
def evict(s: Allocator, p: Prefix, g: Group) -> None:
    """Take the frame of a cell that nobody holds or recovers (淘汰).

    Each group is evicted on its own; COMPRESSED goes last, and the hash entry goes with it.
    Source: seed 000 §6(2); seed 003 §3.1.
    """
    require(
        ready=s.device[p, g] == Device.READY,
        unleased=forall(Request, lambda r: ~holds(s, r, p, g)),
        settled=~recovering(s, p),
        last=forall(
            Group,
            lambda h: implies((g == COMPRESSED) & (h != g), s.device[p, h] == Device.ABSENT),
        ),
    )
    s.device[p, g] = Device.ABSENT
    s.right[p, g] = False
    s.free[g] = s.free[g] + 1
    s.known[p] = s.known[p] & (g != COMPRESSED)
    for r in each(Request):
        s.fresh[r] = s.fresh[r] & ~(waiting(s, r) & (s.want[r] == p))


@action("A-25", state="g")
def land(s: Allocator, g: Group) -> None:
    """A transfer whose request is gone reaches its frame."""
    require(flying=s.late[g] > 0)
    s.late[g] = s.late[g] - 1


@action("A-26", state="g")
def reclaim(s: Allocator, g: Group) -> None:
    """Give back a withheld frame, once as many transfers have landed.

    Source: domain §9(5), in doubt.
    """
    require(landed=s.late[g] < s.doomed[g])
    s.doomed[g] = s.doomed[g] - 1
    s.free[g] = s.free[g] + 1
