"""Faults of the verdict: a hit is told, leased or resumed from where there is none."""

from __future__ import annotations

from collections.abc import Callable

from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.named.amend import amended, fault, without
from fivestate.spec.allocator.derived import AnyGroup, kept, ready, usable
from fivestate.spec.allocator.state import Allocator, Group, Prefix, Request
from fivestate.spec.language import Term, each, exists, forall, implies, ite, require
from fivestate.spec.language.tracing import Action
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW, Device, Fit, Phase

Check = Callable[[Allocator, Prefix], Term]


def told(hit: Check) -> tuple[Action, Action]:
    """Return the actions that tell a verdict, with another idea of a hit."""

    def tell(s: Allocator, r: Request, p: Prefix) -> None:
        partial = s.known[p] & (ready(s, p, COMPRESSED) | kept(s, p, COMPRESSED))
        otherwise = ite(partial, Phase.PARTIAL, Phase.MISS)
        s.phase[r] = ite(s.known[p] & hit(s, p), Phase.HIT, otherwise)

    return amended("arrive", tell), amended("reclassify", tell)


def every(check: Callable[[Allocator, Prefix, Group], Term]) -> Check:
    """Say that a check is passed by every group."""
    return lambda s, p: forall(Group, lambda g: check(s, p, g))


def fits_or(s: Allocator, p: Prefix, g: AnyGroup, fit: Fit) -> Term:
    """The cell is usable, but for one thing that is overlooked."""
    return ready(s, p, g) & s.fit[p, g].is_in(Fit.OK, fit)


def _resume_from_any(s: Allocator, r: Request, p: Prefix) -> None:
    del r
    require(complete=exists(Group, lambda g: usable(s, p, g)))


def _resume_while_loading(s: Allocator, r: Request, p: Prefix) -> None:
    del r
    require(complete=forall(Group, lambda g: usable(s, p, g) | (s.device[p, g] == Device.LOADING)))


def _resume_from_unfit(s: Allocator, r: Request, p: Prefix) -> None:
    del r
    require(complete=forall(Group, lambda g: ready(s, p, g)))


def _publish_half(s: Allocator, p: Prefix) -> None:
    require(complete=forall(Group, lambda g: s.device[p, g].is_in(Device.WRITING, Device.READY)))


def _tail_filed_as_window(s: Allocator, p: Prefix, g: Group) -> None:
    for h in each(Group):
        mine = ite(g == TAIL, h == WINDOW, h == g)
        s.device[p, h] = ite(mine, Device.READY, s.device[p, h])


VERDICTS: tuple[Mutant, ...] = (
    fault(
        "misclassified segment",
        "A tail that is complete is filed as a window.",
        "seed 001 §4.3(2); seed 003 §5.2",
        amended("made", _tail_filed_as_window, unwritten="device"),
    ),
    fault(
        "missing tail",
        "A hit does not ask for the tail.",
        "seed 000 §4, §7; seed 003 §3.2",
        *told(every(lambda s, p, g: implies(g != TAIL, usable(s, p, g)))),
    ),
    fault(
        "window out of range",
        "A hit does not ask for the window.",
        "seed 000 §3(3), §7; seed 003 §3.3",
        *told(every(lambda s, p, g: implies(g != WINDOW, usable(s, p, g)))),
    ),
    fault(
        "index out of step",
        "A hit takes an index whose entries have been replaced.",
        "seed 000 §3(4), §7; seed 003 §3.4",
        *told(every(lambda s, p, g: fits_or(s, p, g, Fit.OUT_OF_STEP))),
    ),
    fault(
        "old kernel layout is a hit",
        "A hit takes cells that older kernels wrote.",
        "seed 000 §5(2); seed 003 §4.2",
        *told(every(lambda s, p, g: fits_or(s, p, g, Fit.OLD_LAYOUT))),
    ),
    fault(
        "misaligned cell is a hit",
        "A hit takes cells that lie where no kernel looks: zero copy, and wrong.",
        "seed 000 §5(4); seed 003 §4.4",
        *told(every(lambda s, p, g: fits_or(s, p, g, Fit.MISALIGNED))),
    ),
    fault(
        "hit but not resident",
        "A hit takes a copy off the device for the cell itself: resident, or can be fetched.",
        "seed 000 §3(5), §4, the listing",
        *told(every(lambda s, p, g: usable(s, p, g) | kept(s, p, g))),
    ),
    fault(
        "load under way is a hit",
        "A hit takes a cell whose load has not landed.",
        "seed 003 §3.5",
        *told(every(lambda s, p, g: usable(s, p, g) | (s.device[p, g] == Device.LOADING))),
    ),
    fault(
        "half a block is a hit",
        "A hit takes a cell that is still being written.",
        "seed 000 §5(1); seed 003 §4.1",
        *told(every(lambda s, p, g: s.device[p, g].is_in(Device.WRITING, Device.READY))),
    ),
    fault(
        "union instead of intersection",
        "A hit asks for any group, not for all of them.",
        "seed 000 §5(3); seed 003 §4.3",
        *told(lambda s, p: exists(Group, lambda g: usable(s, p, g))),
    ),
    fault(
        "hash hit is a hit",
        "A hit asks only whether the hash is known, as scheme A does.",
        "seed 000 §2; seed 002 §4.2",
        *told(lambda s, p: s.known[p]),
    ),
    fault(
        "resume from any group",
        "A recovery ends as soon as one group is there.",
        "seed 000 §5(3)",
        amended("resume", _resume_from_any),
    ),
    fault(
        "use before the load has landed",
        "A recovery ends while a load is still under way.",
        "seed 003 §3.5",
        amended("resume", _resume_while_loading),
    ),
    fault(
        "resume from what does not fit",
        "A recovery ends once everything is on the device, whether or not it fits.",
        "seed 000 §5(2), §5(4)",
        amended("resume", _resume_from_unfit),
    ),
    fault(
        "publish half a block",
        "A prefix becomes known while a cell of it is still being written.",
        "seed 000 §5(1); seed 003 §4.1",
        amended("publish", _publish_half),
    ),
    fault(
        "changed between check and use",
        "A hit is leased though its verdict no longer stands.",
        "seed 000 §6(3); seed 003 §5.3",
        without("lease", "fresh"),
    ),
)
