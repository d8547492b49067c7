"""Ways out in the middle: a request is aborted while it waits, recovers, holds or runs."""

from __future__ import annotations

from fivestate.spec.allocator.requests import leave
from fivestate.spec.allocator.state import (
    ABORTS,
    PRIVATE,
    Allocator,
    Group,
    Prefix,
    Request,
    last_interest,
    waiting,
)
from fivestate.spec.language import EVERY, NOTHING, action, each, ite, require
from fivestate.spec.vocabulary import Device, Phase


@action("A-31", state=EVERY, given=ABORTS)
def abort_waiting(s: Allocator, r: Request) -> None:
    """A waiting request goes away."""
    require(waiting=waiting(s, r))
    s.phase[r] = Phase.IDLE
    s.want[r] = NOTHING
    s.fresh[r] = False


@action("A-32", state=EVERY, given=ABORTS)
def abort_recovery(s: Allocator, r: Request, p: Prefix) -> None:
    """A recovering request goes away; with the last one the recovery is cancelled.

    What was reserved is free again; a frame that is being written is withheld, since the
    transfer cannot be called back; what nobody could find any more is given up.
    Source: domain §9(5).
    """
    require(recovering=s.phase[r] == Phase.RECOVERING, mine=s.want[r] == p)
    last = last_interest(s, r, p)
    s.phase[r] = Phase.IDLE
    s.want[r] = NOTHING
    for g in each(Group):
        unseen = (s.device[p, g] == Device.READY) & ~s.known[p]
        given_up = last & ((s.device[p, g] == Device.RESERVED) | unseen)
        withheld = last & (s.device[p, g] == Device.WRITING)
        s.device[p, g] = ite(given_up | withheld, Device.ABSENT, s.device[p, g])
        s.right[p, g] = s.right[p, g] & ~(given_up | withheld)
        s.free[g] = s.free[g] + PRIVATE[g] + ite(given_up, 1, 0)
        s.doomed[g] = s.doomed[g] + ite(withheld, 1, 0)
        s.late[g] = s.late[g] + ite(withheld, 1, 0)


@action("A-33", state=EVERY, given=ABORTS)
def abort_leased(s: Allocator, r: Request) -> None:
    """A request that holds its prefix and has read nothing goes away."""
    require(leased=s.phase[r] == Phase.LEASED)
    leave(s, r)


@action("A-34", state=EVERY, given=ABORTS)
def abort_step(s: Allocator, r: Request) -> None:
    """A running request goes away; kernels in flight still read, so it drains with its lease.

    Source: domain §1.7.
    """
    require(running=s.phase[r] == Phase.RUNNING)
    s.phase[r] = Phase.DRAINING


@action("A-35", state=EVERY, given=ABORTS)
def drained(s: Allocator, r: Request) -> None:
    """The last kernel of an aborted request has ended."""
    require(draining=s.phase[r] == Phase.DRAINING)
    leave(s, r)
