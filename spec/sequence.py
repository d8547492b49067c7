"""One sequence: tokens are written, verified, folded and indexed; rows behind them are let go.

The split of a sequence into entries, tail and window depends on positions alone, never on the
chunks in which it was written. What is decided on is the *verified* length (D-6).
"""

from __future__ import annotations

from fivestate.spec.language import (
    BOOL,
    EVERY,
    Array,
    Fairness,
    Machine,
    Scalar,
    Size,
    Sort,
    State,
    Term,
    action,
    changes,
    each,
    escape,
    forall,
    implies,
    invariant,
    ite,
    min_,
    require,
    step,
    took,
    within,
    witness,
)
from fivestate.spec.need import entries, tail_start, window_start
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

TOKENS = Size("tokens", "the longest sequence, in tokens", 1, 64)
RATIO = Size("ratio", "tokens that are folded into one entry", 1, 64)
LOOKBACK = Size("lookback", "raw rows an entry reads before its own group", 0, 64)
SPAN = Size("window", "tokens a sliding-window query reads, itself included", 1, 64)


class Entry(Sort, letter="i", low=0, high=TOKENS // RATIO - 1):
    """A compressed entry, by its number."""


class Chunk(Sort, letter="n", low=1, high=TOKENS):
    """A number of tokens handled at once."""


class Sequence(State):
    """What one sequence has on the device."""

    written = Scalar("tokens that have rows", of=within(0, TOKENS), initial=0)
    verified = Scalar("tokens that are accepted", of=within(0, TOKENS), initial=0)
    folded = Scalar("entries that exist", of=within(0, TOKENS // RATIO), initial=0)
    indexed = Scalar("entries with an index row", of=within(0, TOKENS // RATIO), initial=0)
    tail = Scalar("first raw row that is kept", of=within(0, TOKENS), initial=0)
    window = Scalar("first window row that is kept", of=within(0, TOKENS), initial=0)
    snapshot = Scalar("position that may be resumed", of=within(0, TOKENS), initial=0)
    right = Array("the entry is what accepted rows give", Entry, of=BOOL, initial=True, ghost=True)
    routed = Scalar("every token read what it needed", of=BOOL, initial=True, ghost=True)


def covers(first: Term, low: Term, end: Term | int) -> Term:
    """Say that rows ``low .. end - 1`` are there when rows from ``first`` on are kept."""
    return (low >= end) | (first <= low)


def tail_serves(s: Sequence, folded: Term, end: Term) -> Term:
    """Say that the tail joins ``folded`` entries and reaches ``end``."""
    return covers(s.tail, tail_start(folded, RATIO, LOOKBACK), end)


def window_serves(s: Sequence, position: Term) -> Term:
    """Say that the window has every row a query at ``position`` reads."""
    return covers(s.window, window_start(position, SPAN), position)


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


NEXT = (write, verify, fold, index, trim, slide, roll_back, snapshot, resume)


@invariant("S-1")
def entries_are_right(s: Sequence) -> Term:
    """An entry is what its own accepted rows give, with the rows before it that it overlaps."""
    return forall(Entry, lambda i: implies(i < s.folded, s.right[i]))


@invariant("S-2")
def tail_joins(s: Sequence) -> Term:
    """The tail joins the entries without a gap, look-back included, and reaches the end."""
    return tail_serves(s, s.folded, s.verified)


@invariant("S-3")
def window_covers(s: Sequence) -> Term:
    """The window has every row that the query at the verified position reads."""
    return window_serves(s, s.verified)


@invariant("S-4")
def index_in_step(s: Sequence) -> Term:
    """The index has rows for entries that exist, and never for another."""
    return s.indexed <= s.folded


@invariant("S-0")
def sound(s: Sequence) -> Term:
    """Every token was computed from all that it needed."""
    return s.routed


@invariant("S-0")
def lengths_in_order(s: Sequence) -> Term:
    """No more is verified than is written, and no more is folded than is verified."""
    return (s.verified <= s.written) & (s.folded * RATIO <= s.written)


@step("S-0")
def split_by_position(before: Sequence, after: Sequence) -> Term:
    """When a token is written, the number of entries follows from the position alone."""
    del after
    return implies(took(write), before.folded == entries(before.verified, RATIO))


@step("S-0")
def nothing_comes_back(before: Sequence, after: Sequence) -> Term:
    """Rows that were let go stay gone; only what is empty may start anew."""
    tail = (before.tail <= after.tail) | (after.tail == after.written)
    return tail & ((before.window <= after.window) | (after.window == after.written))


@step("S-0")
def nothing_from_nothing(before: Sequence, after: Sequence) -> Term:
    """Entries come from folding, and index rows from indexing, and from nowhere else."""
    folded = (after.folded <= before.folded) | took(fold)
    return folded & ((after.indexed <= before.indexed) | took(index))


@step("S-0")
def nothing_stutters(before: Sequence, after: Sequence) -> Term:
    """Every action changes something."""
    return changes(before, after)


@escape("S-0")
def unfinished(s: Sequence) -> Term:
    """A sequence that is not at its end can still get there."""
    return s.verified < TOKENS


@witness("S-2", given=LOOKBACK > 0)
def tail_on_a_boundary(s: Sequence) -> Term:
    """On a group boundary the tail is not empty, though nothing can be let go."""
    trimmed = s.tail == tail_start(s.folded, RATIO, LOOKBACK)
    return (s.verified > 0) & (s.folded * RATIO == s.written) & trimmed & (s.tail < s.written)


@witness("S-2", given=LOOKBACK == 0)
def no_tail_on_a_boundary(s: Sequence) -> Term:
    """On a group boundary the tail can be empty, for nothing overlaps."""
    return (s.verified > 0) & (s.folded * RATIO == s.written) & (s.tail == s.written)


@witness("S-3", given=SPAN > 1)
def window_gone(s: Sequence) -> Term:
    """A snapshot can no longer be resumed, because its window has slid away."""
    return (s.snapshot > 0) & ~window_serves(s, s.snapshot)


@witness("S-2", given=RATIO > 1)
def tail_gone(s: Sequence) -> Term:
    """A snapshot can no longer be resumed, because its raw rows were let go."""
    return (s.snapshot > 0) & ~tail_serves(s, entries(s.snapshot, RATIO), s.snapshot)


@witness("S-0", given=RATIO > 1)
def resumable_inside_a_group(s: Sequence) -> Term:
    """A snapshot inside a group can be resumed from entries and tail together."""
    position, whole = s.snapshot, entries(s.snapshot, RATIO)
    served = tail_serves(s, whole, position) & window_serves(s, position)
    return (whole * RATIO < position) & (position < s.written) & (s.indexed >= whole) & served


@witness("S-4")
def index_behind(s: Sequence) -> Term:
    """An entry exists that the index does not know yet."""
    return s.indexed < s.folded


PROPERTIES = (
    sound,
    entries_are_right,
    tail_joins,
    window_covers,
    index_in_step,
    lengths_in_order,
    split_by_position,
    nothing_comes_back,
    nothing_from_nothing,
    nothing_stutters,
    unfinished,
    tail_on_a_boundary,
    no_tail_on_a_boundary,
    window_gone,
    tail_gone,
    resumable_inside_a_group,
    index_behind,
)

FAIRNESS = Fairness(weak=(write, verify, fold, index), finite=(roll_back, resume))
"""The engine goes on; drafts are rejected, and others resume here, only finitely often."""

SEQUENCE = Machine("sequence", Sequence, NEXT, PROPERTIES, fairness=FAIRNESS)
