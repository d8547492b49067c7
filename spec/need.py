"""What a query needs: the arithmetic of positions, the same for numbers and traced values.

Positions count tokens from 0; ``position`` is that of the next token, so tokens
``0 .. position - 1`` have been seen.
"""

from __future__ import annotations

from typing import TypeVar, overload

from fivestate.spec.language import Term, max_, min_

Number = TypeVar("Number", int, Term)
"""A number, plain or traced; all arguments of one call are of one kind."""


def entries(position: Number, ratio: Number) -> Number:
    """How many compressed entries the query sees: one for each complete group of ``ratio``."""
    return position // ratio


def tail_start(folded: Number, ratio: Number, lookback: Number) -> Number:
    """First raw row the compressor still reads when ``folded`` entries exist.

    An overlapping compressor reads ``lookback`` rows before the group that it folds next, so
    its tail is not empty on a boundary.
    """
    return max_(folded * ratio - lookback, 0)


def window_start(position: Number, window: Number) -> Number:
    """First row a sliding window of ``window`` tokens, the query included, reads."""
    return max_(position - window + 1, 0)


def chunk_start(position: Number, chunk: Number) -> Number:
    """First row a query reads whose attention stays inside its own chunk of tokens."""
    return round_down(position, chunk)


def entries_end(position: Number, ratio: Number) -> Number:
    """First token that no entry the query sees has folded: there the tail begins."""
    return entries(position, ratio) * ratio


@overload
def visible(entry: int, query: int, ratio: int) -> bool: ...
@overload
def visible(entry: Term, query: Term, ratio: Term) -> Term: ...
def visible(entry: Term | int, query: Term | int, ratio: Term | int) -> Term | bool:
    """An entry is visible to a query iff its last token is not after the query.

    The query's own group is not: it would let the token see its future (B22).
    """
    return (entry + 1) * ratio - 1 <= query


def visible_entries(query: Number, ratio: Number) -> Number:
    """How many entries are visible to a query: those whose last token is not after it."""
    return (query + 1) // ratio


def round_down(position: Number, step: Number) -> Number:
    """Largest multiple of ``step`` that is not above ``position``."""
    return position // step * step


def round_up(position: Number, step: Number) -> Number:
    """Smallest multiple of ``step`` that is not below ``position``."""
    return (position + step - 1) // step * step


def blocks(rows: Number, block: Number) -> Number:
    """How many blocks of ``block`` rows hold ``rows`` consecutive rows that end on a boundary."""
    return (rows + block - 1) // block


def resume_limit(fork: Number, prompt: Number, lookback: Number) -> Number:
    """Largest position that may be resumed, before any granularity.

    A drafter that looks back gives up ``lookback`` tokens *before* rounding, or a whole block is
    lost twice (B03). A prompt that matches to its end is resumed one token earlier: the last
    token's logits have to be computed.
    """
    return max_(min_(fork - lookback, prompt - 1), 0)


def replay_start(first: Number, window: Number, layers: Number) -> Number:
    """First token to replay so that the rows from ``first`` on are exact in every layer.

    Each of ``layers`` window layers but the first lets a wrong row spread ``window - 1`` tokens
    further; for a window that starts at ``position - window + 1`` this is
    ``layers * (window - 1)`` tokens before the position.
    """
    return max_(first - (layers - 1) * (window - 1), 0)
