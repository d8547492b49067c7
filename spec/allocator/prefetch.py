"""Recovery that nobody has asked for yet: it may use what is left over, and no more."""

from __future__ import annotations

from fivestate.spec.allocator.aborts import cancel
from fivestate.spec.allocator.derived import missing, usable
from fivestate.spec.allocator.state import (
    ABORTS,
    PREFETCHES,
    RESERVE,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import EVERY, action, each, exists, forall, ite, require
from fivestate.spec.vocabulary import Device, Phase


@action("A-61", state=EVERY, given=PREFETCHES)
def prefetch(s: Allocator, p: Prefix) -> None:
    """Start recovering a known prefix for nobody, out of frames beyond the reserve (预热).

    Without the reserve it would take again and again the frame that was evicted for a waiter:
    recovery that starves requests (恢复把在线请求挤爆).
    Source: seed 000 §6(1); domain §1.6, reserved blocks.
    """
    require(
        known=s.known[p],
        unheld=forall(Request, lambda r: s.want[r] != p),
        useful=exists(Group, lambda g: s.device[p, g] == Device.ABSENT),
        reserve=forall(Group, lambda g: s.free[g] >= missing(s, p, g) + RESERVE[g]),
    )
    s.prefetching[p] = True
    for g in each(Group):
        s.free[g] = s.free[g] - missing(s, p, g)
        s.device[p, g] = ite(missing(s, p, g) == 1, Device.RESERVED, s.device[p, g])


@action("A-62", state=EVERY, given=PREFETCHES)
def prefetched(s: Allocator, p: Prefix) -> None:
    """A prefetch is complete: its cells may be leased, or evicted, like any other."""
    require(
        prefetching=s.prefetching[p],
        known=s.known[p],
        complete=forall(Group, lambda g: usable(s, p, g)),
    )
    s.prefetching[p] = False


@action("A-63", state=EVERY, given=PREFETCHES & ABORTS)
def abort_prefetch(s: Allocator, p: Prefix) -> None:
    """A prefetch is given up; if no request has joined it, the recovery is cancelled."""
    require(prefetching=s.prefetching[p])
    asked = exists(Request, lambda r: (s.phase[r] == Phase.RECOVERING) & (s.want[r] == p))
    s.prefetching[p] = False
    for g in each(Group):
        cancel(s, p, ~asked, 0, g)
