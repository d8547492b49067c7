"""Tables: which private block has which rows of one request, group by group."""

from __future__ import annotations

from fivestate.spec.need import blocks, round_down
from fivestate.spec.reuse import CacheGroup, Shape
from fivestate.spec.reuse.admission import admission_cap


def private_demand(
    group: CacheGroup,
    resume_tokens: int,
    longest_tokens: int,
    in_flight_tokens: int,
) -> int:
    """Return how many blocks of its own a request needs at most, from where it resumes on.

    What is in flight, and what was written since the last boundary, is kept beside what the next
    query reads: at that boundary the sequence may still be committed.
    """
    total = blocks(longest_tokens, group.block_size) - resume_tokens // group.block_size
    if total * group.block_size <= in_flight_tokens or group.shape is Shape.PREFIX:
        return total  # all of it may be in flight at once, or all of it stays
    if group.shape is Shape.POINT:
        return min(total, blocks(in_flight_tokens, group.block_size) + 1)
    return min(total, admission_cap(group, in_flight_tokens, longest_tokens))


def kept_from(group: CacheGroup, base_tokens: int, verified: int, step_tokens: int) -> int:
    """Return the first row that has to stay, for the next query and for the last boundary.

    Args:
        group: the group.
        base_tokens: where the prefix ends that the request leases.
        verified: tokens that are accepted: drafts let nothing go.
        step_tokens: the distance of boundaries.
    """
    boundary = max(round_down(verified, step_tokens), base_tokens)
    if group.shape is Shape.PREFIX:
        return base_tokens
    if group.shape is Shape.POINT:
        return max(boundary - 1, base_tokens)
    return min(group.need(verified).start, group.need(boundary).start)


class Table:
    """The private blocks of one group that one request has rows in, in order of position.

    Block ``number`` has tokens ``number * block_size`` and on. Blocks that nothing has to be read
    from any more go back to ``spare``: a window and a tail live in a ring.

    Attributes:
        group: the group.
        size: tokens of a block.
        first: number of the first block in ``ids``.
        limit: the token behind its last block: further on there is no room.
        ids: block ids, one for each number from ``first`` on.
        spare: block ids that the request has claimed and not written.
    """

    __slots__ = ("first", "group", "ids", "limit", "size", "spare")

    def __init__(self, group: CacheGroup, first: int, spare: list[int]) -> None:
        self.group, self.size = group, group.block_size
        self.first, self.ids, self.spare = first, list[int](), spare
        self.limit = first * self.size

    def grow(self, count: int) -> None:
        """Have ``count`` blocks more at the end, one or more; there are spare ones enough."""
        self.ids += self.spare[: -count - 1 : -1]
        del self.spare[-count:]
        self.limit += count * self.size

    def cut(self, written: int) -> None:
        """Give up the blocks behind ``written`` tokens."""
        count = min((self.limit - written) // self.size, len(self.ids))
        if count > 0:
            self.spare += self.ids[-count:]
            del self.ids[-count:]
            self.limit -= count * self.size

    def drop(self, row: int) -> None:
        """Give up the blocks whose rows are all before ``row``."""
        count = min(row // self.size - self.first, len(self.ids))
        if count > 0:
            self.spare += self.ids[:count]
            del self.ids[:count]
            self.first += count

    def last(self, end: int, count: int) -> list[int] | None:
        """Return the ids of the last ``count`` blocks before token ``end``, if it has them all."""
        last = end // self.size - self.first
        return self.ids[last - count : last] if count <= last <= len(self.ids) else None

    def move(self, end: int, count: int) -> None:
        """Let the last ``count`` blocks before token ``end`` go to a cell, and drop all before."""
        last = end // self.size - self.first
        self.spare += self.ids[: last - count]
        del self.ids[:last]
        self.first += last
