"""Effects that several actions share: each is written once, and each writes whole cells."""

from __future__ import annotations

from fivestate.spec.allocator.derived import waiting
from fivestate.spec.allocator.state import PRIVATE, STORES, Allocator, Group, Prefix, Request
from fivestate.spec.language import NOTHING, Term, each, ite
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Bytes, Device, Fit, Phase


def stop_waiting(s: Allocator, r: Request) -> None:
    """The request leaves the queue, and its verdict goes with it."""
    s.fresh[r] = False
    for q in each(Request):
        for t in each(Request):
            s.ahead[q, t] = s.ahead[q, t] & (q != r) & (t != r)


def claim_private(s: Allocator) -> None:
    """One request more gets its private frames of every group."""
    for g in each(Group):
        s.free[g] = s.free[g] - PRIVATE[g]


def give_back(s: Allocator, r: Request) -> None:
    """The request ends: its lease and its private frames are given back."""
    s.phase[r] = Phase.IDLE
    s.want[r] = NOTHING
    for g in each(Group):
        s.free[g] = s.free[g] + PRIVATE[g]


def leave(s: Allocator, r: Request) -> None:
    """A request that has run ends, and with it what it has let go and made its own."""
    give_back(s, r)
    s.slid[r] = False
    s.copied[r] = False
    s.grown[r] = False


def outdate(s: Allocator, p: Prefix, lost: Term | None = None) -> None:
    """If something of the prefix is lost, the verdicts that waiters hold stand no longer."""
    for r in each(Request):
        affected = waiting(s, r) & (s.want[r] == p)
        s.fresh[r] = s.fresh[r] & ~(affected if lost is None else affected & lost)


def take_frame(s: Allocator, p: Prefix, g: Group, known: Term) -> None:
    """Take the frame of a cell; ``known`` says whether the prefix can still be found."""
    s.device[p, g] = Device.ABSENT
    s.fit[p, g] = Fit.OK
    s.bytes[p, g] = Bytes.WRONG
    s.free[g] = s.free[g] + 1
    s.known[p] = known
    s.same[p] = False
    outdate(s, p)


def arrive_in_cell(s: Allocator, p: Prefix, g: Group, fit: Fit | Term, seen: Term) -> None:
    """The cell becomes complete, as ``fit``, with bytes as ``seen``.

    Entries that arrive under an index that is already there make that index stale: its rows
    speak of the entries before.
    """
    s.device[p, g] = Device.READY
    for h in each(Group):
        replaced = STORES & (g == COMPRESSED)  # only with a copy can entries come back
        stale = replaced & (h == INDEXER) & (s.device[p, h] == Device.READY)
        s.fit[p, h] = ite(h == g, fit, ite(stale, Fit.OUT_OF_STEP, s.fit[p, h]))
        s.bytes[p, h] = ite(h == g, seen, ite(stale, Bytes.WRONG, s.bytes[p, h]))
