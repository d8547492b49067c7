"""What happens to a sequence: tokens come, are accepted, folded, indexed; rows are let go."""

from __future__ import annotations

from fivestate.spec.language import EVERY, action, each, implies, ite, min_, require
from fivestate.spec.need import entries, tail_start, window_start
from fivestate.spec.sequence.state import (
    LOOKBACK,
    RATIO,
    SPAN,
    TOKENS,
    Chunk,
    Entry,
    Sequence,
    tail_serves,
    window_serves,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW


@action("A-1", state=EVERY)
def write(s: Sequence, n: Chunk) -> None:
    """Compute the next tokens, as one chunk of any size, and write their rows.

    They read every entry up to the verified position, so those exist and are indexed first:
    an entry without an index row would silently not be chosen.
    Source: seed 000 §3(4); seed 003 §3.4. Decision: D-6.
    """
    require(
        fits=s.written + n <= TOKENS,
        folded_up=s.folded == entries(s.verified, RATIO),
        indexed_up=s.indexed == s.folded,
    )
    complete = (s.folded == entries(s.verified, RATIO)) & (s.indexed == s.folded)
    s.routed = (
        s.routed & complete & tail_serves(s, s.folded, s.written) & window_serves(s, s.written)
    )
    s.written = s.written + n


@action("A-2", state=EVERY)
def verify(s: Sequence, n: Chunk) -> None:
    """Accept the oldest drafts.

    Without speculation every token is accepted as soon as it is written.
    """
    require(drafted=s.verified + n <= s.written)
    s.verified = s.verified + n


@action("A-3", state=COMPRESSED)
def fold(s: Sequence, i: Entry) -> None:
    """Fold the next whole group of verified rows into an entry (压缩).

    Drafts are never folded: a rejected token would stay in the entry.
    Source: seed 003 §3.1; domain §4.1. Decision: D-6.
    """
    require(
        next=i == s.folded,
        whole=(i + 1) * RATIO <= s.verified,
    )
    s.folded = s.folded + 1
    s.right[i] = tail_serves(s, s.folded, (i + 1) * RATIO)


@action("A-4", state=INDEXER)
def index(s: Sequence, i: Entry) -> None:
    """Give the next entry its index row (索引).

    Source: seed 000 §3(4).
    """
    require(next=i == s.indexed, folded=i < s.folded)
    s.indexed = s.indexed + 1


@action("A-5", state=TAIL)
def trim(s: Sequence) -> None:
    """Let go of raw rows that no later fold reads.

    The look-back stays: with an overlapping compressor the tail is not empty on a boundary.
    Source: domain §0(2).
    """
    require(spare=s.tail < tail_start(s.folded, RATIO, LOOKBACK))
    s.tail = tail_start(s.folded, RATIO, LOOKBACK)


@action("A-6", state=WINDOW)
def slide(s: Sequence) -> None:
    """Let go of window rows that no later query reads (滑窗).

    By verified length: by written length a rejected draft would have cost rows for good.
    Source: seed 000 §3(3). Decision: D-6.
    """
    require(passed=s.window < window_start(s.verified, SPAN))
    s.window = window_start(s.verified, SPAN)


@action("A-7", state=EVERY)
def roll_back(s: Sequence) -> None:
    """Reject the drafts.

    Whatever was made from them is wrong from now on.
    """
    require(drafted=s.verified < s.written)
    s.written = s.verified
    for i in each(Entry):
        s.right[i] = s.right[i] & implies(i < s.folded, (i + 1) * RATIO <= s.verified)


@action("A-8", state=EVERY)
def snapshot(s: Sequence) -> None:
    """Name the verified position as one that may be resumed.

    Nothing is copied and nothing is held: the rows may go before anybody resumes.
    """
    require(new=s.snapshot != s.verified)
    s.snapshot = s.verified


@action("A-9", state=EVERY)
def resume(s: Sequence) -> None:
    """Go on from the snapshot, as another sequence with the same prefix does (接着算).

    Every form is asked, each in its own way; this is the all-groups check (H-3) of one prefix.
    Index rows are for entries that exist, so asking for the rows asks for both.
    A tail that is empty here starts here, not where its donor's had got to (D-10).
    Source: seed 000 §3, §5(3).
    """
    require(
        named=s.snapshot > 0,
        behind=s.snapshot < s.written,
        index=s.indexed >= entries(s.snapshot, RATIO),
        tail=tail_serves(s, entries(s.snapshot, RATIO), s.snapshot),
        window=window_serves(s, s.snapshot),
    )
    s.written = s.snapshot
    s.verified = s.snapshot
    s.folded = entries(s.snapshot, RATIO)
    s.indexed = entries(s.snapshot, RATIO)
    s.tail = min_(s.tail, s.snapshot)
    for i in each(Entry):
        s.right[i] = ite(i < entries(s.snapshot, RATIO), s.right[i], True)
