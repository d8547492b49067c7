"""Forks: two requests go on from one prefix, and neither writes into what both read."""

from __future__ import annotations

from fivestate.spec.allocator.derived import slot_free, usable, waiting
from fivestate.spec.allocator.effects import claim_private
from fivestate.spec.allocator.state import FORKS, PRIVATE, Allocator, Group, Prefix, Request
from fivestate.spec.language import EVERY, action, each, forall, ite, require
from fivestate.spec.vocabulary import TAIL, Bytes, Phase


@action("A-36", state=EVERY, given=FORKS)
def fork(s: Allocator, q: Request, r: Request, p: Prefix) -> None:
    """A second request goes on from where a running one stands (分叉).

    It needs no verdict, for the first holds what both read; it does need its own frames, and
    does not take them from who waits.
    Source: seed 000 §1.
    """
    require(
        running=s.phase[q] == Phase.RUNNING,
        theirs=s.want[q] == p,
        idle=s.phase[r] == Phase.IDLE,
        nobody_waits=forall(Request, lambda t: ~waiting(s, t)),
        slot=slot_free(s),
        room=forall(Group, lambda g: s.free[g] >= PRIVATE[g]),
        complete=s.known[p] & forall(Group, lambda g: usable(s, p, g)),
    )
    s.phase[r] = Phase.LEASED
    s.want[r] = p
    claim_private(s)


@action("A-37", state=TAIL, given=FORKS)
def copy_on_write(s: Allocator, r: Request) -> None:
    """A request that will write into the tail's last block copies it first (写时复制).

    From then on it reads its own, and lets the shared one go.
    Source: seed 000 §1; domain §1.5.
    """
    require(running=s.phase[r] == Phase.RUNNING, shared=~s.copied[r])
    s.copied[r] = True


@action("A-38", state=TAIL, given=FORKS)
def append(s: Allocator, r: Request) -> None:
    """A request writes its next rows behind the prefix, into a tail of its own."""
    require(
        running=s.phase[r] == Phase.RUNNING,
        own=s.copied[r],
        new=~s.grown[r],
    )
    s.grown[r] = True
    for p in each(Prefix):
        shared = (s.want[r] == p) & ~s.copied[r]
        s.bytes[p, TAIL] = ite(shared, Bytes.WRONG, s.bytes[p, TAIL])
