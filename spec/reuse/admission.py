"""How many blocks one request can come to hold: one formula for sizing and for the gate."""

from __future__ import annotations

from fivestate.spec.need import blocks
from fivestate.spec.reuse.groups import CacheGroup, Shape


def admission_cap(group: CacheGroup, in_flight_tokens: int, longest_tokens: int) -> int:
    """A request never holds more blocks of a group than what it needs while tokens are in flight.

    A window or tail is recycled, so it is not charged for the whole sequence (B58); while a chunk
    is in flight its rows come on top, and a run that starts inside a block takes one block more.
    Two formulas, one for the pool and one for the gate, have deadlocked an engine.
    Source: domain §1.3; vLLM #39734. Seed 003 §5.1.
    """
    match group.shape:
        case Shape.PREFIX:
            return blocks(longest_tokens, group.block_size)
        case Shape.POINT:
            return 1
        case Shape.CHUNK:
            rows = min(group.window + in_flight_tokens, longest_tokens)
            return blocks(rows, group.block_size)
        case Shape.RUN | Shape.OPEN_GROUP:
            rows = min(group.most_rows + in_flight_tokens, longest_tokens)
            return blocks(rows, group.block_size) + 1
