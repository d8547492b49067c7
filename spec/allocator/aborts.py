"""Ways out in the middle: a request is aborted while it waits, recovers, holds or runs."""

from __future__ import annotations

from fivestate.spec.allocator.derived import others_recover, ready, waiting
from fivestate.spec.allocator.effects import give_back, leave, stop_waiting
from fivestate.spec.allocator.state import ABORTS, PRIVATE, Allocator, Group, Prefix, Request
from fivestate.spec.language import EVERY, NOTHING, Term, action, each, ite, require
from fivestate.spec.vocabulary import Bytes, Copy, Device, Fit, Phase


def cancel(s: Allocator, p: Prefix, last: Term, returned: Term | int, g: Group) -> None:
    """Give up, with the last interest in it, what a recovery has made so far of one group.

    What was reserved is free again. A frame that a transfer may still touch is withheld, since
    the transfer cannot be called back. What nobody could find any more is given up.
    """
    unseen = ready(s, p, g) & ~s.known[p]
    flying = s.device[p, g].is_in(Device.WRITING, Device.LOADING)
    flying = flying | (unseen & (s.copy[p, g] == Copy.STORING))
    withheld = last & flying
    given_up = last & ((s.device[p, g] == Device.RESERVED) | unseen) & ~flying
    gone = withheld | given_up
    orphan = last & ~s.known[p]
    s.device[p, g] = ite(gone, Device.ABSENT, s.device[p, g])
    s.fit[p, g] = ite(gone, Fit.OK, s.fit[p, g])
    s.bytes[p, g] = ite(gone, Bytes.WRONG, s.bytes[p, g])
    s.copy[p, g] = ite(orphan, Copy.NONE, s.copy[p, g])
    s.stored[p, g] = ite(orphan, Bytes.WRONG, s.stored[p, g])
    s.disk[p, g] = ite(orphan, Copy.NONE, s.disk[p, g])
    s.archived[p, g] = ite(orphan, Bytes.WRONG, s.archived[p, g])
    s.free[g] = s.free[g] + returned + ite(given_up, 1, 0)
    s.doomed[g] = s.doomed[g] + ite(withheld, 1, 0)
    s.late[g] = s.late[g] + ite(withheld, 1, 0)


@action("A-31", state=EVERY, given=ABORTS)
def abort_waiting(s: Allocator, r: Request) -> None:
    """A waiting request goes away."""
    require(waiting=waiting(s, r))
    s.phase[r] = Phase.IDLE
    s.want[r] = NOTHING
    stop_waiting(s, r)


@action("A-32", state=EVERY, given=ABORTS)
def abort_recovery(s: Allocator, r: Request, p: Prefix) -> None:
    """A recovering request goes away; with the last interest the recovery is cancelled.

    Source: domain §9(5).
    """
    require(recovering=s.phase[r] == Phase.RECOVERING, mine=s.want[r] == p)
    last = ~others_recover(s, r, p)
    s.phase[r] = Phase.IDLE
    s.want[r] = NOTHING
    for g in each(Group):
        cancel(s, p, last, PRIVATE[g], g)


@action("A-33", state=EVERY, given=ABORTS)
def abort_leased(s: Allocator, r: Request) -> None:
    """A request that holds its prefix and has read nothing goes away."""
    require(leased=s.phase[r] == Phase.LEASED)
    give_back(s, r)


@action("A-34", state=EVERY, given=ABORTS)
def abort_step(s: Allocator, r: Request) -> None:
    """A running request goes away; kernels in flight still read, so it drains with its lease.

    Source: domain §1.7.
    """
    require(running=s.phase[r].is_in(Phase.RUNNING, Phase.REPLAYING))
    s.phase[r] = Phase.DRAINING


@action("A-35", state=EVERY, given=ABORTS)
def drained(s: Allocator, r: Request) -> None:
    """The last kernel of an aborted request has ended."""
    require(draining=s.phase[r] == Phase.DRAINING)
    leave(s, r)
