"""What one sequence has, and what serves a position."""

from __future__ import annotations

from fivestate.spec.language import BOOL, Array, Scalar, Size, Sort, State, Term, within
from fivestate.spec.need import tail_start, window_start

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
