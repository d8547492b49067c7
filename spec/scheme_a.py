"""Scheme A: prefix reuse as it was, for a model whose layers all keep one kind of cache (方案A).

One block a prefix, one place it can be. Here, and only here, a hash hit may simply be used.
"""

from __future__ import annotations

from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.allocator.derived import holds
from fivestate.spec.allocator.state import Allocator, Group, Prefix, Request
from fivestate.spec.language import (
    BOOL,
    NOTHING,
    Array,
    Fairness,
    Machine,
    Refinement,
    State,
    Term,
    action,
    changes,
    each,
    escape,
    exists,
    forall,
    implies,
    invariant,
    ite,
    maybe,
    require,
    step,
    witness,
)
from fivestate.spec.vocabulary import COMPRESSED


class SchemeA(State):
    """A block table."""

    cached = Array("the block is in the table, and in memory", Prefix, of=BOOL, initial=False)
    reading = Array("the block the request reads", Request, of=maybe(Prefix), initial=NOTHING)


@action("A-91", state=COMPRESSED)
def compute(s: SchemeA, p: Prefix) -> None:
    """Compute a prefix and put its block into the table."""
    require(absent=~s.cached[p])
    s.cached[p] = True


@action("A-92", state=COMPRESSED)
def reuse(s: SchemeA, r: Request, p: Prefix) -> None:
    """Read a block that the table has: found is usable (查到即可接着算)."""
    require(idle=s.reading[r] == NOTHING, found=s.cached[p])
    s.reading[r] = p


@action("A-93", state=COMPRESSED)
def done(s: SchemeA, r: Request) -> None:
    """Stop reading."""
    require(reading=s.reading[r] != NOTHING)
    s.reading[r] = NOTHING


@action("A-94", state=COMPRESSED)
def drop(s: SchemeA, p: Prefix) -> None:
    """Evict a block that nobody reads, and its entry in the table with it."""
    require(cached=s.cached[p], unread=forall(Request, lambda r: s.reading[r] != p))
    s.cached[p] = False


@invariant("I-0")
def sound(s: SchemeA, r: Request, p: Prefix) -> Term:
    """Whoever reads a block reads one that is in memory."""
    return implies(s.reading[r] == p, s.cached[p])


@step("I-2")
def one_block_at_a_time(before: SchemeA, after: SchemeA, r: Request) -> Term:
    """Whoever reads a block reads it until it is done."""
    was, now = before.reading[r], after.reading[r]
    return (was == NOTHING) | (now == was) | (now == NOTHING)


@step("I-2")
def nothing_stutters(before: SchemeA, after: SchemeA) -> Term:
    """Every action changes something."""
    return changes(before, after)


@witness("W-5")
def shared(s: SchemeA, r: Request, q: Request, p: Prefix) -> Term:
    """Two requests read one block at the same time."""
    return (r != q) & (s.reading[r] == p) & (s.reading[q] == p)


@escape("L-1")
def reads(s: SchemeA, r: Request) -> Term:
    """A request that reads can stop."""
    return s.reading[r] != NOTHING


@escape("L-3")
def kept(s: SchemeA, p: Prefix) -> Term:
    """A block can be evicted."""
    return s.cached[p]


PROPERTIES = (sound, one_block_at_a_time, nothing_stutters, reads, kept, shared)
FAIRNESS = Fairness(weak=(done, drop), finite=(reuse,))
"""Readers stop, and a block that nobody asks for any more is evicted."""

NEXT = (compute, reuse, done, drop)
SCHEME_A = Machine("scheme-a", SchemeA, NEXT, PROPERTIES, fairness=FAIRNESS)


def as_scheme_a(s: Allocator, a: SchemeA) -> None:
    """With one group, one tier and one layout, the allocator is scheme A."""
    for p in each(Prefix):
        a.cached[p] = s.known[p]
    for r in each(Request):
        a.reading[r] = ite(held_by(s, r), s.want[r], NOTHING)


def held_by(s: Allocator, r: Request) -> Term:
    """The request holds some cell."""
    return exists(Prefix, lambda p: exists(Group, lambda g: holds(s, r, p, g)))


ONE_GROUP_IS_SCHEME_A = Refinement("R-1", ALLOCATOR, SCHEME_A, as_scheme_a)
