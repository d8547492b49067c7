"""What changes under everybody: weights, kernels, and the process itself."""

from __future__ import annotations

from fivestate.spec.allocator.derived import AnyGroup, archived, in_use, ready, stored, waiting
from fivestate.spec.allocator.state import (
    CAP,
    CRASHES,
    DISK,
    LAYOUTS,
    WEIGHTS,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import (
    EVERY,
    NOTHING,
    Term,
    action,
    each,
    forall,
    ite,
    require,
)
from fivestate.spec.vocabulary import COMPRESSED, Bytes, Copy, Device, Fit, Phase


def quiescent(s: Allocator) -> Term:
    """Nobody uses or recovers a prefix, and nothing is being written."""
    idle = forall(Request, lambda r: ~in_use(s, r))
    still = forall(
        Prefix,
        lambda p: (
            ~s.prefetching[p]
            & forall(Group, lambda g: ~s.device[p, g].is_in(Device.WRITING, Device.LOADING))
        ),
    )
    return idle & still


def transfers_ended(s: Allocator) -> Term:
    """No store is under way."""
    return forall(
        Prefix,
        lambda p: forall(
            Group,
            lambda g: (s.copy[p, g] != Copy.STORING) & (s.disk[p, g] != Copy.STORING),
        ),
    )


def everyone_looks_again(s: Allocator) -> None:
    """No verdict stands any longer."""
    for r in each(Request):
        s.fresh[r] = s.fresh[r] & ~waiting(s, r)


@action("A-81", state=EVERY, given=WEIGHTS)
def change_weights(s: Allocator) -> None:
    """Change the weights: nothing computed before is of any use, on any tier.

    Source: seed 003 §3.1; domain §5.
    """
    require(quiescent=quiescent(s), transfers_ended=transfers_ended(s))
    everyone_looks_again(s)
    for p in each(Prefix):
        s.known[p] = False
        s.graph[p] = False
        s.same[p] = False
        for g in each(Group):
            s.device[p, g] = Device.ABSENT
            s.fit[p, g] = Fit.OK
            s.bytes[p, g] = Bytes.WRONG
            s.copy[p, g] = Copy.NONE
            s.stored[p, g] = Bytes.WRONG
            s.disk[p, g] = Copy.NONE
            s.archived[p, g] = Bytes.WRONG
    for g in each(Group):
        s.free[g] = CAP[g] - s.doomed[g]


def in_old_layout(seen: Term) -> Term:
    """Bytes that were right are now in a layout that the kernels do not expect."""
    return ite(seen == Bytes.RIGHT, Bytes.FIXABLE, seen)


@action("A-82", state=EVERY, given=LAYOUTS)
def change_kernels(s: Allocator) -> None:
    """Change the kernels: what there is, on every tier, is in the old layout (内核ABI).

    Source: seed 000 §5(2); seed 003 §4.2.
    """
    require(quiescent=quiescent(s), transfers_ended=transfers_ended(s))
    everyone_looks_again(s)
    for p in each(Prefix):
        s.graph[p] = False
        s.same[p] = False
        for g in each(Group):
            old = ready(s, p, g) & (s.fit[p, g] != Fit.OUT_OF_STEP)
            s.fit[p, g] = ite(old, Fit.OLD_LAYOUT, s.fit[p, g])
            s.bytes[p, g] = in_old_layout(s.bytes[p, g])
            s.copy[p, g] = ite(s.copy[p, g] == Copy.STORED, Copy.OLD, s.copy[p, g])
            s.stored[p, g] = in_old_layout(s.stored[p, g])
            s.disk[p, g] = ite(s.disk[p, g] == Copy.STORED, Copy.OLD, s.disk[p, g])
            s.archived[p, g] = in_old_layout(s.archived[p, g])


@action("A-83", state=EVERY, given=CRASHES)
def crash(s: Allocator) -> None:
    """The process crashes and starts again: what was complete off the device is all there is.

    It may at any time, even with nothing to lose. Host memory goes with the process. A copy that
    was being stored counts as none, and a copy whose entries are gone is of no use.
    Source: domain §9(5).
    """
    s.dirty = False
    for r in each(Request):
        s.phase[r] = Phase.IDLE
        s.want[r] = NOTHING
        s.fresh[r] = False
        s.slid[r] = False
        s.copied[r] = False
        s.grown[r] = False
        for q in each(Request):
            s.ahead[q, r] = False
    for g in each(Group):
        s.free[g] = CAP[g]
        s.doomed[g] = 0
        s.late[g] = 0
    for p in each(Prefix):
        s.known[p] = survives(s, p, COMPRESSED)
        s.prefetching[p] = False
        s.graph[p] = False
        s.same[p] = False
        for g in each(Group):
            left = survives(s, p, COMPRESSED) & survives(s, p, g)
            s.device[p, g] = Device.ABSENT
            s.fit[p, g] = Fit.OK
            s.bytes[p, g] = Bytes.WRONG
            s.copy[p, g] = ite(left & ~DISK, s.copy[p, g], Copy.NONE)
            s.stored[p, g] = ite(left & ~DISK, s.stored[p, g], Bytes.WRONG)
            s.disk[p, g] = ite(left, s.disk[p, g], Copy.NONE)
            s.archived[p, g] = ite(left, s.archived[p, g], Bytes.WRONG)


def survives(s: Allocator, p: Prefix, g: AnyGroup) -> Term:
    """The cell has a complete copy on the tier that outlives the process."""
    return ite(DISK, archived(s, p, g), stored(s, p, g))
