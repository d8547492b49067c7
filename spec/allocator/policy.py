"""What actions are for: rules that soundness would not miss, and that cost or owe something.

A step that breaks one of these reads no wrong byte. It does work that nobody wants, promises what
is not so, or forgets what it has to wait for.
"""

from __future__ import annotations

from fivestate.spec.allocator.changes import crash
from fivestate.spec.allocator.derived import ready, recovering, verdict, waiting
from fivestate.spec.allocator.requests import arrive, reclassify
from fivestate.spec.allocator.state import (
    DISK,
    FORKS,
    PREFETCHES,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.allocator.tiers import fetch
from fivestate.spec.language import Term, exists, forall, implies, invariant, step, took
from fivestate.spec.vocabulary import COMPRESSED, Copy, Device, Fit, Phase


@step("I-3")
def told_what_is_so(before: Allocator, after: Allocator, r: Request, p: Prefix) -> Term:
    """Who looks at a prefix is told what it is worth now, and that stands until it is lost."""
    looked = took(arrive, reclassify) & after.fresh[r] & (after.want[r] == p) & ~before.fresh[r]
    told = after.phase[r] == verdict(before, p)
    arrives = (before.phase[r] == Phase.IDLE) & waiting(after, r)
    return implies(looked, told) & implies(arrives, after.fresh[r])


@invariant("I-3")
def partial_that_stands_is_true(s: Allocator, r: Request, p: Prefix) -> Term:
    """A PARTIAL that still stands has something to resume from."""
    told = (s.phase[r] == Phase.PARTIAL) & (s.want[r] == p) & s.fresh[r]
    return implies(told, verdict(s, p) != Phase.MISS)


@step("I-1")
def doubt_is_whole(before: Allocator, after: Allocator, g: Group) -> Term:
    """Whoever withholds a frame knows of the transfer that it waits for."""
    withheld = after.doomed[g] - before.doomed[g]
    return implies(withheld > 0, after.late[g] - before.late[g] == withheld)


@step("I-1", given=STORES)
def read_frames_are_withheld(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """A frame that is being stored from is withheld, not freed, when its cell is given up."""
    given_up = (before.copy[p, g] == Copy.STORING) & (after.device[p, g] == Device.ABSENT)
    return implies(given_up & ~took(crash), after.doomed[g] > before.doomed[g])


@step("I-1")
def known_entries_are_not_computed(before: Allocator, after: Allocator, p: Prefix) -> Term:
    """Compressed KV of a known prefix is loaded back, not computed again."""
    computed = after.device[p, COMPRESSED] == Device.WRITING
    return implies(computed & (before.device[p, COMPRESSED] != Device.WRITING), ~before.known[p])


@step("I-1", given=STORES)
def repacked_on_demand(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """A cell is moved or laid out anew only for somebody who recovers it."""
    unfit = before.fit[p, g].is_in(Fit.MISALIGNED, Fit.OLD_LAYOUT)
    mended = unfit & ready(after, p, g) & (after.fit[p, g] == Fit.OK)
    return implies(mended, recovering(before, p))


@step("I-2", given=STORES)
def known_is_stored(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """Storing begins only for a prefix that can be found."""
    begins = (before.copy[p, g] == Copy.NONE) & (after.copy[p, g] == Copy.STORING)
    return implies(begins, before.known[p])


@step("I-1", given=DISK)
def fetched_on_demand(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """A disk copy is read only for a cell that waits for it."""
    fetched = took(fetch) & (before.copy[p, g] != after.copy[p, g])
    return implies(fetched, before.device[p, g] == Device.RESERVED)


@step("I-1", given=PREFETCHES)
def prefetched_for_nobody_yet(before: Allocator, after: Allocator, p: Prefix) -> Term:
    """A prefetch is of a known prefix that no request has asked for."""
    begins = ~before.prefetching[p] & after.prefetching[p]
    unasked = forall(Request, lambda r: before.want[r] != p)
    return implies(begins, before.known[p] & unasked)


@step("I-3", given=FORKS)
def forked_from_a_runner(before: Allocator, after: Allocator, r: Request) -> Term:
    """Who leases without having waited goes on from a request that runs on the same prefix."""
    forked = (before.phase[r] == Phase.IDLE) & (after.phase[r] == Phase.LEASED)
    beside = exists(
        Request,
        lambda q: (
            (before.phase[q] == Phase.RUNNING)
            & exists(Prefix, lambda p: (before.want[q] == p) & (after.want[r] == p))
        ),
    )
    return implies(forked, beside)


@step("I-2", given=FORKS)
def grows_in_its_own_tail(before: Allocator, after: Allocator, r: Request) -> Term:
    """Only a running request writes on, and only into a tail of its own."""
    grows = ~before.grown[r] & after.grown[r]
    return implies(grows, (before.phase[r] == Phase.RUNNING) & before.copied[r])


POLICY = (
    *(told_what_is_so, partial_that_stands_is_true, doubt_is_whole, read_frames_are_withheld),
    *(known_entries_are_not_computed, repacked_on_demand, known_is_stored, fetched_on_demand),
    *(prefetched_for_nobody_yet, forked_from_a_runner, grows_in_its_own_tail),
)
