"""Blocks: how many a hit needs, and how many a request can come to hold (S-2, S-3, I-1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.numbers import Numbers, on_terms, symbolic
from fivestate.checker.prove.signature import Expression
from fivestate.checker.prove.theorem import Question, theorem
from fivestate.spec.reuse import admission
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Shape
from fivestate.spec.vocabulary import TAIL, WINDOW

PRESETS = "all positions; every group of every preset"
IN_FLIGHT = f"{PRESETS}, any tokens in flight, any longest sequence"
ROWS = (Shape.RUN, Shape.OPEN_GROUP, Shape.CHUNK)
"""Shapes that need some rows before the position."""


@theorem("S-3", PRESETS)
def hit_blocks_hold_what_a_hit_needs(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """On a block boundary, the blocks counted for a hit hold every row that is needed."""
    for where, group in _groups(geometries, *ROWS):
        n = Numbers()
        position = n.new("times") * group.block_size
        start, end = n.span(group.need(position))
        held = blocks_of(start, end, group.block_size)
        shown = {"position": end, "first row": start, "blocks": held}
        yield Question(where, tuple(n.given), held <= n.z3(group.hit_blocks), shown)


@theorem("S-3", PRESETS)
def hit_blocks_are_the_least(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A window behind its start needs all the blocks counted for a hit."""
    for where, group in _groups(geometries, Shape.RUN):
        n = Numbers()
        position = n.new("times") * group.block_size
        start, end = n.span(group.need(position))
        held = blocks_of(start, end, group.block_size)
        given = (*n.given, end >= n.z3(group.most_rows))
        yield Question(where, given, held == n.z3(group.hit_blocks), {"position": end})


@theorem("S-2", PRESETS)
def most_rows_are_the_most(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """No position needs more rows than are counted as the most, and some position needs as many."""
    for where, group in _groups(geometries, *ROWS):
        n = Numbers()
        position, times = n.new("position"), n.new("times", 1)
        start, end = n.span(group.need(position))
        most = n.z3(group.most_rows)
        yield Question(where, tuple(n.given), end - start <= most, {"position": end})
        fullest = times * group.period * (group.most_rows + 1) + group.most_rows
        if group.shape is Shape.OPEN_GROUP:
            fullest = times * group.period * (group.lookback + 1) + group.ratio - 1
        start, end = n.span(group.need(fullest))
        yield Question(f"{where}, reached", tuple(n.given), end - start == most, {"position": end})


@theorem("S-2", "all positions, all sizes")
def most_rows_of_any_size(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """The most rows of a window, a tail or a chunk are never exceeded, whatever their sizes."""
    del geometries
    for shape in ROWS:
        n = Numbers()
        group = symbolic(n, shape)
        start, end = n.span(group.need(n.new("position")))
        given = tuple(n.given)
        yield Question(shape.value, given, end - start <= n.z3(group.most_rows), {"position": end})


@theorem("I-1", IN_FLIGHT)
def cap_covers_the_peak(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """No request ever holds more blocks than its cap, wherever it is and with what is in flight."""
    for where, group in _groups(geometries, *ROWS, Shape.PREFIX):
        peak = Peak(group)
        yield Question(where, peak.given, peak.held <= peak.cap, peak.shown)


@theorem("I-1", IN_FLIGHT)
def cap_is_at_most_one_above_the_peak(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A sequence that is long enough comes to hold its cap, or all of it but one block."""
    for where, group in _groups(geometries, *ROWS):
        peak = Peak(group)
        given = (*peak.given, *peak.at_its_worst())
        yield Question(where, given, peak.held >= peak.cap - 1, peak.shown)


@theorem("I-1", "all positions; every window and chunk of every preset, any tokens in flight")
def cap_is_the_least(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A window or chunk comes to hold its whole cap, if the sequence is long enough."""
    for where, group in _groups(geometries, Shape.RUN, Shape.CHUNK):
        peak = Peak(group)
        given = (*peak.given, *peak.at_its_worst(), peak.rows >= 1)
        yield Question(where, given, peak.held == peak.cap, peak.shown)


@theorem("I-1", "all positions; windows and chunks of up to 7 rows, in blocks of up to 4")
def cap_of_any_size(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A cap is never exceeded and is reached, whether or not blocks divide a window or chunk."""
    del geometries
    for window in range(2, 9):
        for block_size in range(1, 5):
            for chunked in (False, True):
                shape = "chunk" if chunked else "window"
                group = CacheGroup(
                    name=shape,
                    state=WINDOW,
                    block_size=block_size,
                    window=window,
                    chunked=chunked,
                )
                peak = Peak(group)
                where = f"{shape} of {window} in blocks of {block_size}"
                yield Question(where, peak.given, peak.held <= peak.cap, peak.shown)
                given = (*peak.given, *peak.at_its_worst(), peak.rows >= 1)
                reached = peak.held == peak.cap
                yield Question(f"{where}, reached", given, reached, peak.shown)


@theorem("I-1", "a tail of ratio 4 in blocks of 4", fails=True)
def cap_of_a_tail_is_the_least(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A tail that starts on block boundaries only never holds its whole cap: a window may."""
    del geometries
    tail = CacheGroup(name="tail", state=TAIL, block_size=4, ratio=4, lookback=4)
    peak = Peak(tail)
    given = (*peak.given, *peak.at_its_worst())
    yield Question("", given, peak.held == peak.cap, peak.shown)


class Peak:
    """What a request holds of a group while tokens are in flight."""

    def __init__(self, group: CacheGroup) -> None:
        self.group, self.numbers = group, Numbers()
        n = self.numbers
        position, flight, longest = n.new("position"), n.new("in flight"), n.new("longest", 1)
        self.position, self.flight, self.longest = (n.z3(x) for x in (position, flight, longest))
        start, _ = n.span(group.need(position))
        self.start = z3.IntVal(0) if group.shape is Shape.PREFIX else start
        after = self.position + self.flight
        self.end = z3.If(after <= self.longest, after, self.longest)
        cap: Any = on_terms(admission.admission_cap)(group, flight, longest)
        self.cap = n.z3(cap)
        self.held = blocks_of(self.start, self.end, group.block_size)
        self.rows = n.z3(group.most_rows) + self.flight
        self.given = (*n.given, self.position <= self.longest)
        self.shown = {
            "position": self.position,
            "in flight": self.flight,
            "longest": self.longest,
            "blocks held": self.held,
            "cap": self.cap,
        }

    def at_its_worst(self) -> Iterator[Expression]:
        """Yield that the rows are the most, and start as late in a block as they can."""
        yield self.longest >= self.position + self.flight
        yield self.position - self.start == self.numbers.z3(self.group.most_rows)
        if self.group.shape is not Shape.OPEN_GROUP:  # a tail starts where it must
            yield self.start % self.group.block_size == admission.offset(self.group)


def blocks_of(start: Expression, end: Expression, size: int) -> Expression:
    """Return how many blocks hold rows ``start .. end - 1``: written independently."""
    return z3.If(start < end, (end - 1) / size - start / size + 1, 0)


def _groups(
    geometries: tuple[Geometry, ...],
    *shapes: Shape,
) -> Iterator[tuple[str, CacheGroup]]:
    for geometry in geometries:
        for group in geometry.groups:
            if group.shape in shapes:
                yield f"{geometry.name}, {group.name}", group


THEOREMS = (
    hit_blocks_hold_what_a_hit_needs,
    hit_blocks_are_the_least,
    most_rows_are_the_most,
    most_rows_of_any_size,
    cap_covers_the_peak,
    cap_is_at_most_one_above_the_peak,
    cap_is_the_least,
    cap_of_any_size,
    cap_of_a_tail_is_the_least,
)
