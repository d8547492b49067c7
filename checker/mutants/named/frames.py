"""Faults of frames: who may have one, when it is free, and what is evicted."""

from __future__ import annotations

from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.named.amend import YES, amended, fault, without
from fivestate.spec.allocator.aborts import cancel
from fivestate.spec.allocator.derived import (
    demand,
    first,
    holds,
    missing,
    others_recover,
    ready,
    recovering,
    waiting,
)
from fivestate.spec.allocator.state import PRIVATE, Allocator, Group, Prefix, Request
from fivestate.spec.language import NOTHING, action, each, exists, forall, ite, require, total
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, Device, Phase


def _admit_without_private(s: Allocator, r: Request, p: Prefix) -> None:
    del r
    require(room=forall(Group, lambda g: s.free[g] >= missing(s, p, g)))
    for g in each(Group):
        s.free[g] = s.free[g] - missing(s, p, g)


def _admit_by_all_pools(s: Allocator, r: Request, p: Prefix) -> None:
    del r
    everywhere = total(Group, lambda g: s.free[g])
    require(room=everywhere >= total(Group, lambda g: demand(s, p, g)))


def _admit_one_by_one(s: Allocator, r: Request, p: Prefix) -> None:
    del r
    require(room=forall(Group, lambda g: s.free[g] >= PRIVATE[g]))
    for g in each(Group):
        s.free[g] = s.free[g] - PRIVATE[g]
        s.device[p, g] = s.device[p, g]


@action("A-0", state="g")
def claim(s: Allocator, p: Prefix, g: Group) -> None:
    """Claim one missing cell of a recovery that has begun."""
    require(
        wanted=recovering(s, p),
        missing=s.device[p, g] == Device.ABSENT,
        room=s.free[g] > 0,
    )
    s.device[p, g] = Device.RESERVED
    s.free[g] = s.free[g] - 1


def _prefetch_into_reserve(s: Allocator, p: Prefix) -> None:
    require(reserve=forall(Group, lambda g: s.free[g] >= missing(s, p, g)))


def _demand_when_empty(s: Allocator, p: Prefix, g: Group) -> None:
    require(
        demanded=exists(
            Request,
            lambda r: (
                waiting(s, r)
                & first(s, r)
                & exists(Prefix, lambda q: (q != p) & (s.want[r] == q) & (s.free[g] == 0))
            ),
        )
    )


def _demand_on_itself(s: Allocator, p: Prefix, g: Group) -> None:
    del p
    require(
        demanded=exists(
            Request,
            lambda r: (
                waiting(s, r)
                & first(s, r)
                & exists(Prefix, lambda q: (s.want[r] == q) & (s.free[g] < demand(s, q, g)))
            ),
        )
    )


def _evict_as_window(s: Allocator, p: Prefix, g: Group) -> None:
    require(unleased=forall(Request, lambda r: ~holds(s, r, p, g) | s.slid[r]))


def _evict_and_remember(s: Allocator, p: Prefix, g: Group) -> None:
    del g
    s.known[p] = s.known[p]


def _free_into_window_pool(s: Allocator, p: Prefix, g: Group) -> None:
    del p
    for h in each(Group):
        s.free[h] = s.free[h] + ite(ite(g == COMPRESSED, h == WINDOW, h == g), 1, 0)


def _evict_and_keep_verdicts(s: Allocator, p: Prefix, g: Group) -> None:
    del p, g
    for r in each(Request):
        s.fresh[r] = s.fresh[r]


def _reindex_and_keep_verdicts(s: Allocator, p: Prefix) -> None:
    del p
    for r in each(Request):
        s.fresh[r] = s.fresh[r]


def _reclaim_in_flight(s: Allocator, g: Group) -> None:
    require(landed=s.doomed[g] > 0)


def _free_in_flight(s: Allocator, r: Request, p: Prefix) -> None:
    last = ~others_recover(s, r, p)
    for g in each(Group):
        unseen = ready(s, p, g) & ~s.known[p]
        begun = s.device[p, g].is_in(Device.RESERVED, Device.WRITING, Device.LOADING)
        s.free[g] = s.free[g] + PRIVATE[g] + ite(last & (begun | unseen), 1, 0)
        s.doomed[g] = s.doomed[g]


def _cancel_for_all(s: Allocator, r: Request, p: Prefix) -> None:
    s.phase[r] = Phase.IDLE
    for g in each(Group):
        cancel(s, p, YES, PRIVATE[g], g)


def _finish_into_window_pool(s: Allocator, r: Request) -> None:
    s.want[r] = NOTHING
    for g in each(Group):
        other = exists(Group, lambda h: h == WINDOW)
        s.free[g] = s.free[g] + ite((g == COMPRESSED) & other, 0, PRIVATE[g])


FRAMES: tuple[Mutant, ...] = (
    fault(
        "private frames not claimed",
        "Admission claims the missing cells, and forgets what the request will need to run.",
        "seed 000 §6(1): recovery that starves running requests",
        amended("admit", _admit_without_private),
    ),
    fault(
        "cap checked outside the allocation",
        "Room is looked at earlier; the claim itself does not ask for it.",
        "seed 003 §5.1",
        without("admit", "room"),
    ),
    fault(
        "one cap for all pools",
        "Room is counted over all pools together.",
        "seed 003 §5.1: one kind takes the room of the others",
        amended("admit", _admit_by_all_pools),
    ),
    fault(
        "admission in two steps",
        "A recovery begins, and claims its cells one by one.",
        "seed 003 §5.1; hold and wait",
        amended("admit", _admit_one_by_one),
        claim.trace(Allocator),
    ),
    fault(
        "overtaking",
        "A request is admitted though another has waited longer.",
        "vLLM #57841",
        without("admit", "first"),
    ),
    fault(
        "prefetch into the reserve",
        "A prefetch takes the frames that are kept for requests.",
        "seed 000 §6(1): recovery that starves running requests",
        amended("prefetch", _prefetch_into_reserve),
    ),
    fault(
        "two formulas for room",
        "Room is made only once a pool is empty, though admission asks for more than one frame.",
        "vLLM #39734",
        amended("make_room", _demand_when_empty),
    ),
    fault(
        "room made of what is wanted",
        "Room is made for a waiter out of the prefix that it waits for.",
        "vLLM #33775",
        amended("make_room", _demand_on_itself),
    ),
    fault(
        "compressed entries evicted as a window",
        "Once a request's window has slid, its entries may be evicted too.",
        "seed 000 §6(2): the wrong state's eviction policy",
        amended("evict", _evict_as_window),
    ),
    fault(
        "compressed entries evicted first",
        "Entries are evicted while cells are left that were made from them.",
        "seed 000 §6(2): the wrong state's eviction policy",
        without("evict", "last"),
    ),
    fault(
        "compressed frame into the window's pool",
        "The frame of evicted entries is handed out as a window's.",
        "seed 003 §3.1: a compressed block handed out as a plain one",
        amended("evict", _free_into_window_pool, unwritten="free"),
    ),
    fault(
        "stale hash",
        "The entries are evicted, and their hash is still known.",
        "imp #1050",
        amended("evict", _evict_and_remember),
    ),
    fault(
        "eviction unnoticed",
        "A cell is evicted, and who was told HIT is not told otherwise.",
        "seed 000 §6(3); seed 003 §5.3",
        amended("evict", _evict_and_keep_verdicts),
    ),
    fault(
        "new index unnoticed",
        "An index is made anew, and who was told HIT is not told otherwise.",
        "seed 003 §3.4, §5.3",
        amended("reindex", _reindex_and_keep_verdicts),
    ),
    fault(
        "frame reclaimed in flight",
        "A withheld frame is given back before its transfer has landed.",
        "domain §9(5), in doubt",
        amended("reclaim", _reclaim_in_flight),
    ),
    fault(
        "abort frees at once",
        "An abort frees the frames that a transfer may still write.",
        "domain §9(5), in doubt",
        amended("abort_recovery", _free_in_flight),
    ),
    fault(
        "one abort cancels all",
        "An abort cancels a recovery that others wait for.",
        "machine: recovery belongs to the prefix",
        amended("abort_recovery", _cancel_for_all),
    ),
    fault(
        "evicted while stored",
        "A cell is evicted while a store reads it.",
        "seed 003 §5.3",
        without("evict", "not_storing"),
    ),
    fault(
        "private frames lost",
        "A request that ends does not give back its frames of compressed KV.",
        "vLLM #39734, what is left over is never enough",
        amended("finish", _finish_into_window_pool),
    ),
)
