"""How many blocks one request can come to hold: one formula for sizing and for the gate."""

from __future__ import annotations

from math import gcd

from fivestate.spec.language import min_
from fivestate.spec.need import blocks
from fivestate.spec.reuse.groups import CacheGroup, Shape


def admission_cap(group: CacheGroup, in_flight_tokens: int, longest_tokens: int) -> int:
    """A request never holds more blocks of a group than what it needs while tokens are in flight.

    A window or tail is recycled, so it is not charged for the whole sequence (B58); while a chunk
    is in flight its rows come on top. The first row may lie ``offset`` rows inside its block. Two
    formulas, one for the pool and one for the gate, have deadlocked an engine.
    Where a window's rows in flight are whole blocks and one row, and where the whole sequence fits
    into fewer blocks, vLLM counts a block more. It is the same elsewhere.
    Source: domain §1.3; vLLM #39734. Seed 003 §5.1.
    """
    whole = blocks(longest_tokens, group.block_size)
    if group.shape is Shape.PREFIX:
        return whole
    if group.shape is Shape.POINT:
        return 1
    rows = group.most_rows + in_flight_tokens
    return min_(blocks(offset(group) + rows, group.block_size), whole)


def offset(group: CacheGroup) -> int:
    """How many rows of a block can lie before the first that is needed.

    A window starts anywhere, and so does a tail that is recycled row by row; a chunk of tokens
    only at a multiple of its length.
    """
    if group.shape is Shape.CHUNK:
        return group.block_size - gcd(group.window, group.block_size)
    return group.block_size - 1
