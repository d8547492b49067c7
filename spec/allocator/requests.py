"""What requests do: arrive, be admitted or lease, run, let the window go, finish."""

from __future__ import annotations

from fivestate.spec.allocator.derived import (
    demand,
    first,
    missing,
    slot_free,
    usable,
    verdict,
    waiting,
)
from fivestate.spec.allocator.effects import claim_private, leave, stop_waiting
from fivestate.spec.allocator.state import PRIVATE, Allocator, Group, Prefix, Request
from fivestate.spec.language import EVERY, action, each, forall, ite, require
from fivestate.spec.vocabulary import WINDOW, Device, Phase


@action("A-11", state=EVERY)
def arrive(s: Allocator, r: Request, p: Prefix) -> None:
    """A request arrives, is told what its prefix is worth now, and queues.

    Source: seed 000 §4.
    """
    require(idle=s.phase[r] == Phase.IDLE)
    s.want[r] = p
    s.phase[r] = verdict(s, p)
    s.fresh[r] = True
    for q in each(Request):
        s.ahead[q, r] = waiting(s, q)


@action("A-12", state=EVERY)
def reclassify(s: Allocator, r: Request, p: Prefix) -> None:
    """A waiting request whose verdict no longer stands looks again.

    Source: seed 000 §6(3).
    """
    require(waiting=waiting(s, r), mine=s.want[r] == p, stale=~s.fresh[r])
    s.phase[r] = verdict(s, p)
    s.fresh[r] = True


@action("A-13", state=EVERY)
def admit(s: Allocator, r: Request, p: Prefix) -> None:
    """Admit the first waiter to recovery and claim every frame it will need, at once (准入).

    Check and claim are one step, for all groups together: two requests that each hold a part
    would wait for each other for ever. It looks at the cells itself, so it needs no verdict;
    first come, first served, or a stream of small requests starves a large one.
    Source: seed 003 §5.1; seed 000 §6(1). Decision: D-3.
    """
    require(
        waiting=waiting(s, r),
        mine=s.want[r] == p,
        first=first(s, r),
        slot=slot_free(s),
        room=forall(Group, lambda g: s.free[g] >= demand(s, p, g)),
    )
    s.phase[r] = Phase.RECOVERING
    stop_waiting(s, r)
    for g in each(Group):
        s.free[g] = s.free[g] - demand(s, p, g)
        s.device[p, g] = ite(missing(s, p, g) == 1, Device.RESERVED, s.device[p, g])


@action("A-14", state=EVERY)
def lease(s: Allocator, r: Request) -> None:
    """Take the prefix of a hit as it was when it was checked; nobody may change it from now on.

    A hit waits its turn as well: a stream of hits would keep the frames that a request before
    them lacks (D-12).
    Source: seed 000 §6(3); seed 003 §5.3. Decision: D-4.
    """
    require(
        hit=s.phase[r] == Phase.HIT,
        fresh=s.fresh[r],
        first=first(s, r),
        slot=slot_free(s),
        room=forall(Group, lambda g: s.free[g] >= PRIVATE[g]),
    )
    s.phase[r] = Phase.LEASED
    stop_waiting(s, r)
    claim_private(s)


@action("A-15", state=EVERY)
def resume(s: Allocator, r: Request, p: Prefix) -> None:
    """Take a recovered prefix: every group is there and fits, and the prefix is known (恢复完成).

    Source: seed 000 §5(3).
    """
    require(
        recovering=s.phase[r] == Phase.RECOVERING,
        mine=s.want[r] == p,
        known=s.known[p],
        complete=forall(Group, lambda g: usable(s, p, g)),
    )
    s.phase[r] = Phase.LEASED


@action("A-16", state=EVERY)
def run(s: Allocator, r: Request) -> None:
    """Run: from now on kernels read what is leased."""
    require(leased=s.phase[r] == Phase.LEASED)
    s.phase[r] = Phase.RUNNING


@action("A-17", state=WINDOW)
def slide(s: Allocator, r: Request) -> None:
    """The request's window moves past the prefix, and it lets go of the window cell (滑出).

    Source: seed 000 §3(3).
    """
    require(running=s.phase[r] == Phase.RUNNING, inside=~s.slid[r])
    s.slid[r] = True


@action("A-18", state=EVERY)
def finish(s: Allocator, r: Request) -> None:
    """The request ends and gives back its lease and its private frames."""
    require(running=s.phase[r].is_in(Phase.RUNNING, Phase.REPLAYING))
    leave(s, r)
