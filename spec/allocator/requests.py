"""What requests do: arrive, be admitted or lease, run, let the window go, finish."""

from __future__ import annotations

from fivestate.spec.allocator.state import (
    PRIVATE,
    Allocator,
    Group,
    Prefix,
    Request,
    missing,
    usable,
    verdict,
    waiting,
)
from fivestate.spec.language import EVERY, NOTHING, action, each, forall, ite, require
from fivestate.spec.vocabulary import WINDOW, Device, Phase


@action("A-11", state=EVERY)
def arrive(s: Allocator, r: Request, p: Prefix) -> None:
    """A request arrives and is told what its prefix is worth now.

    Source: seed 000 §4.
    """
    require(idle=s.phase[r] == Phase.IDLE)
    s.want[r] = p
    s.phase[r] = verdict(s, p)
    s.fresh[r] = True


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
    """Admit a waiting request to recovery and claim every frame it will need, at once (准入).

    Check and claim are one step, for all groups together: two requests that each hold a part
    would wait for each other for ever. It looks at the cells itself, so it needs no verdict.
    Source: seed 003 §5.1; seed 000 §6(1). Decision: D-3.
    """
    require(
        waiting=waiting(s, r),
        mine=s.want[r] == p,
        room=forall(Group, lambda g: s.free[g] >= missing(s, p, g) + PRIVATE[g]),
    )
    s.phase[r] = Phase.RECOVERING
    s.fresh[r] = False
    for g in each(Group):
        s.free[g] = s.free[g] - missing(s, p, g) - PRIVATE[g]
        s.device[p, g] = ite(s.device[p, g] == Device.ABSENT, Device.RESERVED, s.device[p, g])


@action("A-14", state=EVERY)
def lease(s: Allocator, r: Request, p: Prefix) -> None:
    """Take the prefix of a hit as it was when it was checked; nobody may change it from now on.

    Source: seed 000 §6(3); seed 003 §5.3. Decision: D-4.
    """
    require(
        hit=s.phase[r] == Phase.HIT,
        mine=s.want[r] == p,
        fresh=s.fresh[r],
        room=forall(Group, lambda g: s.free[g] >= PRIVATE[g]),
    )
    s.phase[r] = Phase.LEASED
    s.fresh[r] = False
    for g in each(Group):
        s.free[g] = s.free[g] - PRIVATE[g]


@action("A-15", state=EVERY)
def resume(s: Allocator, r: Request, p: Prefix) -> None:
    """Take a recovered prefix: every group is there, and the prefix is known (恢复完成).

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
    require(running=s.phase[r] == Phase.RUNNING)
    leave(s, r)


def leave(s: Allocator, r: Request) -> None:
    """Make the request idle and give back its private frames (shared by all ways out)."""
    s.phase[r] = Phase.IDLE
    s.want[r] = NOTHING
    s.slid[r] = False
    for g in each(Group):
        s.free[g] = s.free[g] + PRIVATE[g]
