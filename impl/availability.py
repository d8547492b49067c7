"""Availability: what the allocator has of a prefix, in the words of the theory of reuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fivestate.impl.chain import Cell, Copied, Node, content
from fivestate.spec.reuse import (
    Abi,
    Availability,
    CacheGroup,
    Consumer,
    Extent,
    Place,
    Shape,
    Span,
    Tier,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Device

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator

IN_STEP, OUT_OF_STEP = 0, 1
"""Generations are counted by node; the theory counts by prefix, so it is told only these."""


def availability(allocator: Allocator, node: Node, end_tokens: int) -> Availability:
    """Return every complete copy of the first ``end_tokens`` tokens of the prefix of a node.

    What is reserved, being written or under way counts as nothing. What a longer segment keeps for
    its own end is not of this prefix.
    """
    copies: dict[str, list[Extent]] = {}
    for step in node.path():
        for state, cell in step.cells.items():
            for group in allocator.groups_of[state]:
                if group.name in cell.sizes:
                    found = _extents(allocator, cell, group, end_tokens)
                    copies.setdefault(group.name, []).extend(found)
    return Availability.on_one_rank(**{name: tuple(found) for name, found in copies.items()})


def consumer(allocator: Allocator, available: Availability) -> Consumer:
    """Return what today's kernels assume; whatever else there is can be converted."""
    now = str(allocator.layout)
    made = {copy.abi.layout for of in available.ranks for some in of.values() for copy in some}
    return Consumer(Abi(layout=now), frozenset((layout, now) for layout in made - {now}))


def _extents(allocator: Allocator, cell: Cell, group: CacheGroup, end_tokens: int) -> list[Extent]:
    span = _span(cell.node, group, end_tokens)
    if span is None:
        return []
    found: list[Extent] = []
    if cell.device is Device.READY:
        abi, place = _written(group, cell)
        found.append(Extent(span, Tier.DEVICE, abi, place, _generation(cell)))
    disk = allocator.settings.disk is not None
    kept: tuple[tuple[Tier, Copied | None], ...] = ((Tier.HOST, cell.copy), (Tier.DISK, cell.disk))
    for tier, copied in kept if disk else kept[:1]:
        if copied is not None and copied.complete:
            found.append(Extent(span, tier, Abi(layout=str(copied.layout))))
    return found


def _span(node: Node, group: CacheGroup, end_tokens: int) -> Span | None:
    if group.shape is Shape.POINT:
        return Span(0, node.end_tokens) if node.end_tokens <= end_tokens else None
    whole = content(group, node.start_tokens, node.end_tokens)
    span = whole.cut(Span(0, end_tokens))
    return span if span.tokens else None


def _generation(cell: Cell) -> int:
    """Return whether an index speaks of the entries that are there, or will be once loaded."""
    node = cell.node
    entries = node.cells.get(COMPRESSED)
    there = entries is None or entries.device is Device.READY
    in_step = there and cell.generation == node.entries_generation
    return IN_STEP if cell.state is not INDEXER or in_step else OUT_OF_STEP


def _written(group: CacheGroup, cell: Cell) -> tuple[Abi, Place | None]:
    """Return in which layout a cell was written, and where it lies if that is not where it should.

    An offset that breaks no alignment is still one: the rule of placement is part of a layout.
    """
    offset, size = cell.offset_bytes, group.page_size_bytes
    if not offset:
        return Abi(layout=str(cell.layout)), None
    if offset % group.page_alignment == 0:
        return Abi(layout=f"{cell.layout}+{offset}"), None
    place = Place(offset, size, size, 1, 0, offset + size)
    return Abi(layout=str(cell.layout)), place
