"""What makes safety provable at any size: laws of the settings, and lemmas about every state.

Searching a model needs none of this. A proof for any number of prefixes and requests has to say
why a step from *any* state that looks right leads to one that looks right; what a state has to
look like for that is said here, and it is part of the specification: an engine that breaks one of
these is about to break soundness, if not yet.
"""

from __future__ import annotations

from fivestate.spec.allocator.derived import kept, usable
from fivestate.spec.allocator.state import (
    DISK,
    FEEDS,
    GRAPHS,
    LAYOUTS,
    STORABLE,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import NOTHING, Term, forall, implies, invariant
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Bytes, Copy, Device, Fit, Phase


@invariant("I-6")
def disk_is_behind_host(s: Allocator) -> Term:
    """A disk is there only behind a host tier."""
    del s
    return implies(DISK, STORES)


@invariant("I-6", given=STORES)
def index_is_not_storable(s: Allocator) -> Term:
    """An index is not stored: fetched whole, it could be of another generation.

    Decision: D-13.
    """
    del s
    return ~STORABLE[INDEXER]


@invariant("I-6")
def index_feeds_nothing(s: Allocator, g: Group) -> Term:
    """Nothing is made from an index.

    An index can go out of step while what was made from it stays; nobody would notice.
    """
    del s
    return ~FEEDS[INDEXER, g]


@invariant("I-5")
def busy_wants_something(s: Allocator, r: Request) -> Term:
    """A request has a prefix from its arrival until it ends."""
    return implies(s.phase[r] != Phase.IDLE, s.want[r] != NOTHING)


@invariant("I-5")
def held_is_known(s: Allocator, r: Request, p: Prefix) -> Term:
    """A prefix that somebody holds or reads is known."""
    held = s.phase[r].is_in(Phase.LEASED, Phase.RUNNING, Phase.REPLAYING, Phase.DRAINING)
    return implies(held & (s.want[r] == p), s.known[p])


@invariant("I-5")
def made_from_right(s: Allocator, p: Prefix, g: Group) -> Term:
    """While a cell is written, what it is made from stays usable, and no wrong byte is written."""
    sources = forall(Group, lambda h: implies(FEEDS[h, g], usable(s, p, h)))
    return implies(s.device[p, g] == Device.WRITING, sources & (s.bytes[p, g] == Bytes.FIXABLE))


@invariant("I-5", given=STORES | LAYOUTS)
def unfit_is_fixable(s: Allocator, p: Prefix, g: Group) -> Term:
    """Bytes that lie wrong or in an old layout are the prefix: a repack makes them right."""
    unfit = s.fit[p, g].is_in(Fit.MISALIGNED, Fit.OLD_LAYOUT)
    return implies(unfit, s.bytes[p, g] == Bytes.FIXABLE)


@invariant("I-5", given=STORES)
def copies_are_right(s: Allocator, p: Prefix, g: Group) -> Term:
    """A stored copy is right; one that older kernels wrote can be made right."""
    host = implies(s.copy[p, g] == Copy.STORED, s.stored[p, g] == Bytes.RIGHT)
    old = implies(s.copy[p, g] == Copy.OLD, s.stored[p, g] == Bytes.FIXABLE)
    disk = implies(s.disk[p, g] == Copy.STORED, s.archived[p, g] == Bytes.RIGHT)
    old_disk = implies(s.disk[p, g] == Copy.OLD, s.archived[p, g] == Bytes.FIXABLE)
    return host & old & disk & old_disk


@invariant("I-5", given=STORES)
def stored_entries_are_known(s: Allocator, p: Prefix) -> Term:
    """A prefix whose compressed KV has a complete copy is known: a crash brings nothing back."""
    return implies(kept(s, p, COMPRESSED), s.known[p])


@invariant("I-5", given=STORES)
def index_has_no_copy(s: Allocator, p: Prefix) -> Term:
    """An index is on the device or nowhere."""
    return (s.copy[p, INDEXER] == Copy.NONE) & (s.disk[p, INDEXER] == Copy.NONE)


@invariant("I-5", given=GRAPHS)
def graph_reads_usable(s: Allocator, p: Prefix, g: Group) -> Term:
    """What a captured graph reads is usable, not only complete, and its prefix is known."""
    return implies(s.graph[p], s.known[p] & usable(s, p, g))


@invariant("I-5", given=STORES)
def stored_from_usable(s: Allocator, p: Prefix, g: Group) -> Term:
    """What is being stored stays usable until it has been."""
    return implies(s.copy[p, g] == Copy.STORING, usable(s, p, g))


LAWS = (disk_is_behind_host, index_is_not_storable, index_feeds_nothing)
"""What settings must satisfy to mean anything; a proof takes them for granted."""

LEMMAS = (
    *(busy_wants_something, held_is_known, made_from_right, unfit_is_fixable),
    *(copies_are_right, stored_entries_are_known, index_has_no_copy),
    *(graph_reads_usable, stored_from_usable),
)
"""What is proved together with I-0 to I-4, and makes them provable."""
