"""What nobody can rule out: transfers fail, weights and kernels change, processes crash."""

from __future__ import annotations

from fivestate.spec.allocator.changes import change_kernels, change_weights, crash
from fivestate.spec.allocator.derived import holds, ready, recovering, waiting
from fivestate.spec.allocator.state import (
    CRASHES,
    DISK,
    LAYOUTS,
    STORES,
    WEIGHTS,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.allocator.tiers import demote_bad, fetch_bad, load_bad, store_bad
from fivestate.spec.language import Term, Ways, exists, may, ways, witness
from fivestate.spec.vocabulary import Copy, Device, Phase


@witness("P-30", given=STORES)
def transfers_fail(s: Allocator, p: Prefix, g: Group) -> Ways:
    """Any load may end badly, and any store, even of a cell that is being read."""
    read = exists(Request, lambda r: holds(s, r, p, g))
    return ways(load=may(load_bad, p, g), store=may(store_bad, p, g) & read)


@witness("P-31", given=DISK)
def disks_fail(s: Allocator, p: Prefix, g: Group) -> Ways:
    """Any write to disk, and any read from it, may end badly."""
    return ways(
        write=may(demote_bad, p, g),
        read=may(fetch_bad, p, g) & (s.disk[p, g] == Copy.STORED),
    )


@witness("P-32", given=DISK & LAYOUTS)
def old_disks_fail(s: Allocator, p: Prefix, g: Group) -> Term:
    """A disk copy in an old layout may fail as any other."""
    return may(fetch_bad, p, g) & (s.disk[p, g] == Copy.OLD)


@witness("P-33", given=WEIGHTS)
def weights_change(s: Allocator, r: Request, p: Prefix) -> Term:
    """Weights may change while prefixes are known and requests wait for them."""
    return may(change_weights) & s.known[p] & waiting(s, r) & (s.want[r] == p)


@witness("P-34", given=LAYOUTS)
def kernels_change(s: Allocator, r: Request, p: Prefix) -> Term:
    """Kernels may change while prefixes are known and requests wait for them."""
    return may(change_kernels) & s.known[p] & waiting(s, r) & (s.want[r] == p)


@witness("P-35", given=CRASHES)
def crashes(s: Allocator, r: Request, p: Prefix, g: Group) -> Ways:
    """The process may crash at any time: idle, in the middle of a transfer, in a step."""
    return ways(
        idle=may(crash) & (s.phase[r] == Phase.IDLE) & ready(s, p, g) & ~recovering(s, p),
        writing=may(crash) & (s.device[p, g] == Device.WRITING),
        running=may(crash) & (s.phase[r] == Phase.RUNNING),
    )


CHANGES = (
    transfers_fail,
    disks_fail,
    old_disks_fail,
    weights_change,
    kernels_change,
    crashes,
)
