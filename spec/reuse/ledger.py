"""The ledger: of each token of each group which form it has, where, and what comes before use.

Source: seed 002 §4.3 (形态记账).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fivestate.spec.reuse.availability import Tier
from fivestate.spec.reuse.groups import CacheGroup, Shape
from fivestate.spec.reuse.holdings import Held, Lot
from fivestate.spec.reuse.recovery import Holdings, Means
from fivestate.spec.reuse.spans import Span
from fivestate.spec.vocabulary import ON_DISK, CacheState


@dataclass(frozen=True, slots=True)
class Line:
    """Some tokens of one group that are in the same form.

    Attributes:
        group: the group.
        span: the tokens.
        form: the state they are in: the group's own, ON_DISK where the bytes are off the device,
            nothing where they are gone or not needed.
        tier: where the bytes are, if anywhere.
        needed: whether they are read when the position is resumed.
        before: what has to be done before they are used.
        rank: the rank.
    """

    group: str
    span: Span
    form: CacheState | None
    tier: Tier | None
    needed: bool
    before: tuple[Means, ...]
    rank: int = 0


def ledger(holdings: Holdings, resume: int) -> tuple[Line, ...]:
    """The forms of every group partition the tokens before the resume point.

    Entries first and the tail behind them; before a window or tail, tokens that are not needed.
    """
    return tuple(
        line
        for rank, of in enumerate(holdings)
        for held in of.values()
        for line in _lines(held, resume, rank)
    )


def _lines(held: Held, resume: int, rank: int) -> Iterator[Line]:
    group, need = held.group, held.group.need(resume)
    need = need if need.tokens else Span(resume, resume)
    if need.start:
        yield _not_needed(group, Span(0, need.start), rank)
    given, absent = held.parts(need)
    lines = [_kept(group, lot, span, rank) for lot, span in given]
    lines += [Line(group.name, s, None, None, True, (_again(held, s),), rank) for s in absent]
    yield from sorted(lines, key=lambda line: line.span)
    if need.end < resume:
        yield _not_needed(group, Span(need.end, resume), rank)


def _kept(group: CacheGroup, lot: Lot, span: Span, rank: int) -> Line:
    on_device = lot.tier is Tier.DEVICE
    load = () if on_device else (Means.LOAD_BACK,)
    repack = (Means.REPACK,) if lot.repack else ()
    form = group.state if on_device else ON_DISK
    return Line(group.name, span, form, lot.tier, True, (*load, *repack), rank)


def _again(held: Held, span: Span) -> Means:
    """How tokens that no copy has come back; by a smaller resume point where nothing else does."""
    if held.group.shape is Shape.PREFIX and any(
        start <= span.start and span.end <= end for start, end in held.refolded
    ):
        return Means.REFOLD
    if held.recoverable_points(replay=True).every != 1:
        return Means.RECOMPUTE
    return Means.REBUILD_INDEX if held.group.shape is Shape.PREFIX else Means.REPLAY


def _not_needed(group: CacheGroup, span: Span, rank: int) -> Line:
    return Line(group.name, span, None, None, False, (), rank)
