"""What must hold of the books: a value that means nothing is blank, and what stands is true.

Soundness would not miss most of these: a stale mark does harm only when somebody relies on it.
An engine is wise to assert them in a debug build, for they fail long before the text is wrong.
"""

from __future__ import annotations

from fivestate.spec.allocator.changes import crash
from fivestate.spec.allocator.derived import archived, stored, verdict, waiting
from fivestate.spec.allocator.state import (
    CRASHES,
    GRAPHS,
    LAYOUTS,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import NOTHING, Term, forall, implies, invariant, step, took
from fivestate.spec.vocabulary import Bytes, Copy, Device, Fit, Phase


@invariant("I-1")
def waiters_are_in_order(s: Allocator, q: Request, r: Request) -> Term:
    """Exactly those that wait are in the queue, each once."""
    both = (q != r) & waiting(s, q) & waiting(s, r)
    one_way = implies(s.ahead[q, r], both & ~s.ahead[r, q])
    return one_way & implies(both, s.ahead[q, r] | s.ahead[r, q])


@invariant("I-2")
def idle_is_blank(s: Allocator, r: Request) -> Term:
    """An idle request wants nothing, and only one that runs has slid, copied or grown."""
    idle = implies(s.phase[r] == Phase.IDLE, s.want[r] == NOTHING)
    runs = s.phase[r].is_in(Phase.RUNNING, Phase.REPLAYING, Phase.DRAINING)
    return idle & implies(s.slid[r] | s.copied[r] | s.grown[r], runs)


@step("I-2", given=STORES)
def only_known_is_stored(before: Allocator, after: Allocator, p: Prefix, g: Group) -> Term:
    """What was stored counts only if its prefix is still known."""
    arrives = (before.copy[p, g] == Copy.STORING) & (after.copy[p, g] == Copy.STORED)
    return implies(arrives, before.known[p])


@invariant("I-3")
def verdict_is_of_a_waiter(s: Allocator, r: Request) -> Term:
    """Only a waiting request has a verdict that stands."""
    return implies(s.fresh[r], waiting(s, r))


@invariant("I-3")
def hit_that_stands_is_true(s: Allocator, r: Request, p: Prefix) -> Term:
    """A HIT that still stands is what the request would be told now."""
    told = (s.phase[r] == Phase.HIT) & (s.want[r] == p) & s.fresh[r]
    return implies(told, verdict(s, p) == Phase.HIT)


@invariant("I-4", given=GRAPHS)
def same_is_of_a_graph(s: Allocator, p: Prefix) -> Term:
    """Only a graph has addresses that are still its own."""
    return implies(s.same[p], s.graph[p])


@invariant("I-0")
def ghosts_are_of_something(s: Allocator, p: Prefix, g: Group) -> Term:
    """There are bytes to speak of only where there is a cell or a complete copy."""
    cell = s.device[p, g].is_in(Device.WRITING, Device.READY)
    return (
        implies(s.bytes[p, g] != Bytes.WRONG, cell)
        & implies(s.stored[p, g] != Bytes.WRONG, stored(s, p, g))
        & implies(s.archived[p, g] != Bytes.WRONG, archived(s, p, g))
    )


@invariant("I-0", given=STORES | LAYOUTS)
def marks_are_deserved(s: Allocator, p: Prefix, g: Group) -> Term:
    """What is marked as misplaced, old or out of step is not right as it is."""
    cell = implies(s.fit[p, g] != Fit.OK, s.bytes[p, g] != Bytes.RIGHT)
    host = implies(s.copy[p, g] == Copy.OLD, s.stored[p, g] != Bytes.RIGHT)
    return cell & host & implies(s.disk[p, g] == Copy.OLD, s.archived[p, g] != Bytes.RIGHT)


@step("I-2", given=CRASHES)
def starts_with_nothing(before: Allocator, after: Allocator, r: Request, p: Prefix) -> Term:
    """A process that starts again has no requests, no cells and no graphs, and clean padding."""
    del before
    cells = forall(Group, lambda g: after.device[p, g] == Device.ABSENT)
    nothing = (after.phase[r] == Phase.IDLE) & cells & ~after.graph[p] & ~after.dirty
    return implies(took(crash), nothing)


BOOKKEEPING = (
    *(waiters_are_in_order, idle_is_blank, only_known_is_stored),
    *(verdict_is_of_a_waiter, hit_that_stands_is_true),
    *(same_is_of_a_graph, ghosts_are_of_something, marks_are_deserved, starts_with_nothing),
)
