"""What must hold of a sequence, and that it all does happen."""

from __future__ import annotations

from fivestate.spec.language import (
    Term,
    changes,
    escape,
    forall,
    implies,
    invariant,
    step,
    took,
    witness,
)
from fivestate.spec.need import entries, tail_start
from fivestate.spec.sequence.actions import fold, index, write
from fivestate.spec.sequence.state import (
    LOOKBACK,
    RATIO,
    SPAN,
    TOKENS,
    Entry,
    Sequence,
    tail_serves,
    window_serves,
)


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


INVARIANTS = (
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
)

WITNESSES = (
    tail_on_a_boundary,
    no_tail_on_a_boundary,
    window_gone,
    tail_gone,
    resumable_inside_a_group,
    index_behind,
)
