"""Resume points: of each group a set, never a length; the usable ones are an intersection.

``min`` of lengths is right only where every set is downward closed, and neither windows nor
snapshots are (B10). The definition by sets stands first; the descent that engines use finds the
same largest element without counting through a long prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import lcm

from fivestate.spec.need import blocks, entries_end, round_down
from fivestate.spec.reuse.groups import CacheGroup, Shape
from fivestate.spec.reuse.spans import Span, covered, merge

Operator = Callable[[int], int]
"""Gives the largest resume point of one group that is not above a position."""


def serves(group: CacheGroup, spans: tuple[Span, ...], position: int) -> bool:
    """Rows in merged ``spans`` serve a position iff they have everything the group needs there.

    A snapshot serves exactly the position it was taken at.
    """
    need = group.need(position)
    if group.shape is Shape.POINT:
        return not need.tokens or need in spans
    return covered(need, spans)


def points_by_definition(
    group: CacheGroup,
    spans: Iterable[Span],
    limit: int,
    step: int = 1,
) -> frozenset[int]:
    """A group's resume points are the multiples of ``step`` up to ``limit`` that it serves."""
    merged = whole_spans(group, spans)
    return frozenset(p for p in range(0, limit + 1, step) if serves(group, merged, p))


def usable_by_definition(sets: Iterable[frozenset[int]]) -> int:
    """The longest usable prefix is the largest position that is in every group's set."""
    return max(frozenset.intersection(*sets))


def whole_spans(group: CacheGroup, spans: Iterable[Span]) -> tuple[Span, ...]:
    """A copy counts as the whole blocks inside it: a half block is not content-addressed (B01).

    Snapshots have no blocks.
    """
    if group.shape is Shape.POINT:
        return tuple(spans)
    size = group.block_size
    whole = (Span(blocks(start, size) * size, round_down(end, size)) for start, end in merge(spans))
    return merge(span for span in whole if span.tokens > 0)


@dataclass(frozen=True, slots=True)
class Points:
    """A set of resume points in closed form.

    Attributes:
        ranges: positions from the first to the last, both included.
        every: all multiples of this are in the set too; 0 where there are none but position 0.
    """

    ranges: tuple[tuple[int, int], ...]
    every: int = 0

    def largest(self, limit: int, step: int) -> int:
        """Return the largest multiple of ``step`` up to ``limit`` in the set; 0 always is."""
        best = 0
        if self.every:
            best = round_down(limit, lcm(self.every, step))
        for first, last in self.ranges:
            point = round_down(min(last, limit), step)
            if point >= first:
                best = max(best, point)
        return best

    def has(self, position: int) -> bool:
        """Say whether a position is in the set."""
        return (
            position == 0
            or bool(self.every and position % self.every == 0)
            or any(first <= position <= last for first, last in self.ranges)
        )


def points(group: CacheGroup, spans: Iterable[Span]) -> Points:
    """Return a group's resume points, from its whole blocks, in closed form."""
    merged = whole_spans(group, spans)
    match group.shape:
        case Shape.PREFIX:
            end = next((span.end for span in merged if span.start == 0), 0)
            return Points(((0, entries_end(end, group.ratio) + group.ratio - 1),))
        case Shape.RUN:
            ranges = [(_first(start, group.window - 1), end) for start, end in merged]
            return Points(_real(ranges), 1 if group.window == 1 else 0)
        case Shape.OPEN_GROUP:
            ranges = [
                (
                    0 if start == 0 else blocks(start + group.lookback, group.ratio) * group.ratio,
                    end,
                )
                for start, end in merged
            ]
            return Points(_real(ranges), 0 if group.lookback else group.ratio)
        case Shape.CHUNK:
            ranges = [(blocks(start, group.window) * group.window, end) for start, end in merged]
            return Points(_real(ranges), group.window)
        case Shape.POINT:
            return Points(tuple((end, end) for start, end in merged if start == 0))


def descend(operators: Iterable[Operator], start: int) -> int:
    """Ask every group for its largest point not above the candidate until none lowers it.

    The answer is the largest element of the intersection, for any sets that contain 0: each
    operator is ``max`` of its set below the candidate, so no common element is ever passed.
    Source: domain §1.4.
    """
    asked = tuple(operators)
    candidate, agreed = start, 0
    while agreed < len(asked):
        for operator in asked:
            lowered = operator(candidate)
            agreed = agreed + 1 if lowered == candidate else 1
            candidate = lowered
            if agreed >= len(asked):
                break
    return candidate


def _first(start: int, rows: int) -> int:
    """First position whose ``rows`` rows before it lie behind ``start``."""
    return 0 if start == 0 else start + rows


def _real(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((first, last) for first, last in ranges if first <= last)
