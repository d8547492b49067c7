"""Publishing: what a sequence has written becomes nodes that others find."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from fivestate.impl.chain import Node
from fivestate.impl.index import Index
from fivestate.impl.pools import Blocks
from fivestate.impl.refusals import Refused
from fivestate.impl.retention import Retention
from fivestate.impl.sequences import Sequence
from fivestate.spec.reuse import Shape
from fivestate.spec.vocabulary import WINDOW, CacheState, Device

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator

TRIED_FOR_ROOM = 64
"""How many cells of a state are asked to go before a commit is given up for want of room."""

Contents = dict[CacheState, dict[str, Blocks]]
"""By state and group, the blocks that become a cell's."""


class Publisher:
    """Turns private blocks into nodes, and lets go of windows that are not to be kept."""

    def __init__(
        self, allocator: Allocator, index: Index, retention: Retention, held_tokens: int
    ) -> None:
        self._allocator, self._index, self._retention = allocator, index, retention
        self._held = held_tokens
        geometry = allocator.settings.geometry
        self._step = geometry.scheduler_block_size
        self._rows = any(group.shape is not Shape.PREFIX for group in geometry.voting)

    def publish(self, sequence: Sequence) -> None:
        """Publish the verified whole blocks of a running sequence, as far as that can be done."""
        sequence.published = self._still_known(sequence)
        start, asked = sequence.published.end_tokens, sequence.asked if self._rows else 0
        for end in self._retention.ends(start, sequence.verified, self._step, asked):
            self._publish_to(sequence, end)

    def _still_known(self, sequence: Sequence) -> Node:
        """Return how far what a sequence has published along others' nodes is still known.

        It holds its own prefix only; of what others have published behind it, something may have
        been evicted and taken away since.
        """
        known = at = sequence.published
        while at is not sequence.request.want and at.parent is not None:
            parent = at.parent
            if not at.known or parent.children.get(at.digests[0]) is not at:
                known = parent
            at = parent
        return known

    def forget(self, sequence: Sequence) -> None:
        """A sequence ends: unless windows are kept, those that it published are let go."""
        if self._retention.keeps_windows:
            return
        for node in sequence.ends:
            if node.cells.get(WINDOW) is not None:
                try:
                    self._allocator.evict(node, WINDOW)
                except Refused:
                    continue  # somebody else has come to use it

    def _publish_to(self, sequence: Sequence, end: int) -> None:
        """Publish up to ``end``: first along what others have published, then by itself."""
        allocator = self._allocator
        while (node := sequence.published).end_tokens < end:
            first, last = node.end_tokens // self._step, end // self._step
            digests = sequence.prompt.digests()[first:last]
            child = node.children.get(digests[0])
            if child is None:
                self._adopt(sequence, allocator.grow(node, digests), new=True)
                return
            same = _same(child.digests, digests)
            if same < len(child.digests):
                at_tokens = node.end_tokens + same * self._step
                inside = child.known and same == len(digests)
                if inside or not allocator.can_split(child, at_tokens):
                    return
                child = allocator.split(child, at_tokens)
            if child.known:
                sequence.published = child
            elif child.recoverers or not self._adopt(sequence, child, new=False):
                return

    def _adopt(self, sequence: Sequence, node: Node, *, new: bool) -> bool:
        """Fill an unknown node with a sequence's blocks; say whether that could be done."""
        allocator = self._allocator
        contents = self._contents(sequence, node) if self._rooted(sequence, node) else None
        if contents is None or not self._provide(sequence, node):
            if new:
                allocator.prune(node)
            return False
        allocator.adopt(sequence.request, node, contents)
        for groups in contents.values():
            for name, blocks in groups.items():
                sequence.tables[name].move(node.end_tokens, blocks.size)
        sequence.prefix.clear()
        self._index.put(node)
        sequence.published = node
        sequence.ends.append(node)
        return True

    def _contents(self, sequence: Sequence, node: Node) -> Contents | None:
        """Return the blocks of a node, or nothing if rows that a resume needs are gone."""
        contents: Contents = {}
        for state, cell in node.cells.items():
            if cell.device is not Device.ABSENT or cell.copy or cell.disk:
                return None
            contents[state] = {}
            for name, count in cell.sizes.items():
                ids = sequence.tables[name].last(node.end_tokens, count)
                if ids is None:
                    return None
                contents[state][name] = np.array(ids, np.int64)
        return contents

    def _rooted(self, sequence: Sequence, node: Node) -> bool:
        """Say whether what a resume at the end of a node needs before the node is there."""
        request = sequence.request
        held = request.want is node.parent  # what is asked for is then a part of what it holds
        if held and (not request.slid or self._allocator.has_rows(node)):
            return True
        layout = self._allocator.layout
        before = (cell for cell in self._allocator.need(node) if cell.node is not node)
        return all(cell.readers or cell.usable(layout) for cell in before)

    def _provide(self, sequence: Sequence, node: Node) -> bool:
        """Have blocks for what the sequence writes next; say whether there are enough."""
        allocator = self._allocator
        moved = {name: n for cell in node.cells.values() for name, n in cell.sizes.items()}
        lacking = sequence.lacks(node.end_tokens, self._held, moved)
        if not lacking:
            return True
        for name, count in lacking.items():
            self._make_way(name, count)
        if not allocator.room(lacking) or not self._rooted(sequence, node):
            return False  # what made way may have been needed here
        sequence.take(allocator, lacking)
        return True

    def _make_way(self, name: str, count: int) -> None:
        """Evict windows and tails that were not used for longest, until a pool has room."""
        allocator = self._allocator
        pool = allocator.pools[name]
        if pool.free >= count or pool.group not in allocator.settings.geometry.voting:
            return
        for cell in list(islice(allocator.oldest(pool.group.state), TRIED_FOR_ROOM)):
            try:
                allocator.evict(cell.node, cell.state)
            except Refused:
                continue
            if pool.free >= count:
                return


def _same(one: list[bytes], other: list[bytes]) -> int:
    """Return how many digests two lists share at their start."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
