"""Holdings: what each group really has, once every copy has passed H-2 and H-4 on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from fivestate.spec.need import round_down, round_up
from fivestate.spec.reuse.availability import Extent, Extents, Tier
from fivestate.spec.reuse.checks import Consumer, right_bytes, same_abi
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Role, Shape
from fivestate.spec.reuse.points import Points, points, serves, whole_spans
from fivestate.spec.reuse.reasons import Reason, Why
from fivestate.spec.reuse.spans import Span, merge, missing, overlap
from fivestate.spec.vocabulary import INDEXER

EVERYWHERE = Points((), 1)
"""The set of a group that can be made again wherever the others are there."""


@dataclass(frozen=True)
class Lot:
    """Extents of one group that are brought into use in the same way.

    Attributes:
        tier: where they are.
        repack: whether they have to be rearranged.
        spans: the tokens of their whole blocks, merged.
    """

    tier: Tier
    repack: bool
    spans: tuple[Span, ...]

    @property
    def as_it_stands(self) -> bool:
        """Whether nothing has to be done first."""
        return self.tier is Tier.DEVICE and not self.repack


@dataclass(frozen=True)
class Held:
    """What one group has on one rank.

    Attributes:
        group: the group.
        lots: its usable copies, the nearest first.
        refolded: entries that its tail's raw rows can give again.
        reasons: why other copies are not usable, or not as they stand.
    """

    group: CacheGroup
    lots: tuple[Lot, ...]
    refolded: tuple[Span, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @cached_property
    def resident(self) -> tuple[Span, ...]:
        """The tokens that can be used as they stand."""
        return self._joined(lot for lot in self.lots if lot.as_it_stands)

    @cached_property
    def copied(self) -> tuple[Span, ...]:
        """The tokens of which some usable copy exists."""
        return self._joined(self.lots)

    @cached_property
    def hit_points(self) -> Points:
        """Where the group can be resumed as it stands."""
        return points(self.group, self.resident)

    @cached_property
    def copy_points(self) -> Points:
        """Where the group can be resumed from its copies."""
        return points(self.group, self.copied)

    def recoverable_points(self, *, replay: bool) -> Points:
        """Where the group can be resumed once something has been done."""
        if self.group.role is Role.REBUILDABLE and (self.group.state is INDEXER or replay):
            return EVERYWHERE
        if self.refolded:
            return points(self.group, (*self.copied, *self.refolded))
        return self.copy_points

    def serves(self, position: int) -> bool:
        """Say whether the group can be resumed at a position as it stands."""
        return serves(self.group, self.resident, position)

    def parts(self, need: Span) -> tuple[list[tuple[Lot, Span]], tuple[Span, ...]]:
        """Return which lot gives which part of ``need``, and what no lot has."""
        if self.group.shape is Shape.POINT:
            return self._snapshot(need)
        given: list[tuple[Lot, Span]] = []
        open_parts: tuple[Span, ...] = (need,) if need.tokens else ()
        for lot in self.lots:
            if not open_parts:
                break
            left: list[Span] = []
            for part in open_parts:
                at = part.start
                for cut in overlap(part, lot.spans):
                    given.append((lot, cut))
                    left.append(Span(at, cut.start))
                    at = cut.end
                left.append(Span(at, part.end))
            open_parts = tuple(span for span in left if span.tokens)
        return given, open_parts

    def _snapshot(self, need: Span) -> tuple[list[tuple[Lot, Span]], tuple[Span, ...]]:
        if not need.tokens:
            return [], ()
        lot = next((lot for lot in self.lots if need in lot.spans), None)
        return ([(lot, need)], ()) if lot else ([], (need,))

    def _joined(self, lots: Iterable[Lot]) -> tuple[Span, ...]:
        spans = [span for lot in lots for span in lot.spans]
        return tuple(spans) if self.group.shape is Shape.POINT else merge(spans)


def hold(geometry: Geometry, copies: Extents, consumer: Consumer, rank: int = 0) -> dict[str, Held]:
    """Sort every copy of every voting group by what it takes to use it.

    Raises:
        ModelError: there are copies of a group that the geometry does not have.
    """
    for name in copies:
        geometry.group(name)
    sorted_in: dict[str, Held] = {}
    for group in geometry.voting:
        owner = geometry.owner(group)
        in_step = None if owner is None else {c.generation for c in copies.get(owner.name, ())}
        lots: dict[tuple[Tier, bool], list[Span]] = {}
        reasons: list[Reason] = []
        for copy in copies.get(group.name, ()):
            found, use = judge(group, copy, consumer, in_step)
            reasons += (Reason(r.clause, r.why, r.value, group.name, rank) for r in found)
            if use is not None:
                lots.setdefault((copy.tier, use), []).append(copy.span)
        whole = {way: tuple(whole_spans(group, spans)) for way, spans in lots.items()}
        reasons += (
            Reason("H-1", Why.HALF_BLOCK, str(part), group.name, rank)
            for way, spans in lots.items()
            for span in merge(spans)
            for part in (() if group.shape is Shape.POINT else missing(span, whole[way]))
        )
        sorted_in[group.name] = Held(
            group,
            tuple(Lot(*way, whole[way]) for way in sorted(whole)),
            reasons=tuple(reasons),
        )
    for name, held in sorted_in.items():
        refolded = tuple(_refolded(geometry, held, sorted_in))
        if refolded:
            sorted_in[name] = Held(held.group, held.lots, refolded, held.reasons)
    return sorted_in


def judge(
    group: CacheGroup,
    copy: Extent,
    consumer: Consumer,
    in_step: set[int] | None,
) -> tuple[tuple[Reason, ...], bool | None]:
    """Return what is wrong with a copy, and whether it needs repacking; nothing if unusable.

    Out of step comes before layout and layout before alignment, or a repack would "repair" a
    stale index.
    """
    if group.state is INDEXER and in_step and in_step != {copy.generation}:
        made = ", ".join(map(str, sorted(in_step)))
        value = f"{copy.generation}≠{made}"
        return (Reason("H-3", Why.INDEX_OUT_OF_STEP, value, group.name),), None
    abi = same_abi(group, copy, consumer.abi)
    place = right_bytes(group, copy.place) if copy.place is not None else ()
    convertible = (copy.abi.layout, consumer.abi.layout) in consumer.converters
    for reason in (*abi, *place):
        if reason.why is Why.MISALIGNED or (reason.why is Why.LAYOUT and convertible):
            continue
        return (*abi, *place), None
    return (*abi, *place), bool(abi or place)


def _refolded(geometry: Geometry, held: Held, others: dict[str, Held]) -> Iterator[Span]:
    """Yield the tokens whose entries the tail's resident rows, look-back included, give again."""
    if held.group.shape is not Shape.PREFIX:
        return
    ratio = held.group.ratio
    for tail in list(geometry.tails(held.group))[:1]:
        for start, end in others[tail.name].resident if tail.name in others else ():
            first = start + tail.lookback if start else 0
            span = Span(round_up(first, ratio), round_down(end, ratio))
            if span.tokens:
                yield span
