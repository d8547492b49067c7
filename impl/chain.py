"""Chains: prefixes as a tree of segments, and the cells that each segment has on the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from fivestate.impl.pools import Blocks
from fivestate.spec.need import blocks, round_down
from fivestate.spec.reuse import CacheGroup, Shape, Span
from fivestate.spec.vocabulary import INDEXER, CacheState, Copy, Device, Fit

if TYPE_CHECKING:
    from fivestate.impl.requests import Request

REMEMBERED_SIZES = 1_024
"""How many kinds of segments are remembered with the blocks that they take."""


class CopyKey(NamedTuple):
    """What a tier keeps a copy under: a key is never used for two copies.

    Attributes:
        digest: digest of the chain up to the node's end.
        state: the cell's state.
        serial: which copy it is.
    """

    digest: bytes
    state: CacheState
    serial: int


class Copied:
    """One copy of a cell off the device.

    Attributes:
        key: what the tier keeps it under.
        layout: the epoch of the kernels that wrote it.
        complete: whether it has arrived; before, a transfer is under way.
    """

    __slots__ = ("complete", "key", "layout")

    def __init__(self, key: CopyKey, layout: int, *, complete: bool = False) -> None:
        self.key, self.layout, self.complete = key, layout, complete


class Cell:
    """What one node has of one cache state: the blocks of all groups of that state.

    The compressed groups of a node go together, so that a node stops being known when its entries
    go, and not when half of them do.

    Attributes:
        node: whose cell it is.
        state: which of the four states that live on the device.
        sizes: by group, how many blocks it takes.
        device: where it is in its life.
        blocks: by group, its blocks; empty while it is absent.
        layout: the epoch of the kernels that wrote what is in it.
        offset_bytes: how far its bytes lie from where the kernels look.
        generation: of an index, the generation of the entries that it was made from.
        copy: the copy in the tier next to the device.
        disk: the copy on disk behind it.
        readers: how many requests pin it.
        last_used: when it was last let go or completed; the smallest is evicted first.
    """

    __slots__ = (
        "blocks",
        "copy",
        "device",
        "disk",
        "generation",
        "last_used",
        "layout",
        "node",
        "offset_bytes",
        "readers",
        "sizes",
        "state",
    )

    def __init__(self, node: Node, state: CacheState, sizes: dict[str, int]) -> None:
        self.node, self.state, self.sizes = node, state, sizes
        self.device = Device.ABSENT
        self.blocks: dict[str, Blocks] = {}
        self.layout = self.offset_bytes = self.generation = 0
        self.copy: Copied | None = None
        self.disk: Copied | None = None
        self.readers = 0
        self.last_used = 0

    def fit(self, layout: int) -> Fit:
        """Return what keeps it from being read as it is by kernels of epoch ``layout``.

        The later value takes precedence: a repack must not make a stale index look right.
        """
        if self.device is not Device.READY:
            return Fit.OK
        if self.state is INDEXER and self.generation != self.node.entries_generation:
            return Fit.OUT_OF_STEP
        if self.layout != layout:
            return Fit.OLD_LAYOUT
        return Fit.MISALIGNED if self.offset_bytes else Fit.OK

    def usable(self, layout: int) -> bool:
        """Say whether it is complete and kernels of epoch ``layout`` can read it as it is."""
        return (
            self.device is Device.READY
            and self.layout == layout
            and not self.offset_bytes
            and (self.state is not INDEXER or self.generation == self.node.entries_generation)
        )

    def __repr__(self) -> str:
        return f"{self.node!r}/{self.state.name}"


def copy_state(copied: Copied | None, layout: int) -> Copy:
    """Return what a tier has, as kernels of epoch ``layout`` see it."""
    if copied is None:
        return Copy.NONE
    if not copied.complete:
        return Copy.STORING
    return Copy.STORED if copied.layout == layout else Copy.OLD


class Node:
    """A segment of a hash chain, as long as no prompt has parted from it inside.

    Attributes:
        home: the allocator that it belongs to.
        parent: the segment before it; nothing for the root, which has no tokens.
        start_tokens: its first token, a multiple of the scheduler's block.
        end_tokens: the token after its last, too.
        digests: for each scheduler block inside, the digest of the whole chain up to its end.
        children: the segments behind it, by their first digest.
        cells: what it has, by state; a state of which a resume at its end needs nothing inside
            it has no cell.
        known: it is in the hash index, if all before it is.
        losses: goes up whenever something of it is lost.
        entries_generation: goes up whenever its entries arrive anew.
        prefetching: somebody recovers it for nobody.
        recoverers: whose recovery it is part of: requests, and nodes that are prefetched.
        graph: the step that was captured at its end.
        graphs: the captured steps that read its cells: its own, and those of nodes behind it.
    """

    __slots__ = (
        "_need",
        "cells",
        "children",
        "digests",
        "end_tokens",
        "entries_generation",
        "graph",
        "graphs",
        "home",
        "known",
        "losses",
        "parent",
        "prefetching",
        "recoverers",
        "start_tokens",
    )

    def __init__(
        self,
        home: object,
        parent: Node | None,
        start_tokens: int,
        end_tokens: int,
        digests: list[bytes],
    ) -> None:
        self.home, self.parent = home, parent
        self.start_tokens, self.end_tokens, self.digests = start_tokens, end_tokens, digests
        self.children: dict[bytes, Node] = {}
        self.cells: dict[CacheState, Cell] = {}
        self.known = parent is None
        self.losses = self.entries_generation = 0
        self.prefetching = False
        self.recoverers: set[Request | Node] = set()
        self.graph: object = None
        self.graphs: set[object] = set()
        self._need: tuple[int, tuple[Cell, ...]] = (-1, ())

    @property
    def tokens(self) -> int:
        """How many tokens it has."""
        return self.end_tokens - self.start_tokens

    def path(self) -> list[Node]:
        """Return the nodes from the first behind the root to this one; none for the root."""
        found: list[Node] = []
        node = self
        while node.parent is not None:
            found.append(node)
            node = node.parent
        found.reverse()
        return found

    def within(self, other: Node) -> bool:
        """Say whether this node is ``other`` or before it."""
        node: Node | None = other
        while node is not None and node.end_tokens >= self.end_tokens:
            if node is self:
                return True
            node = node.parent
        return False

    def descendants(self) -> Iterator[Node]:
        """Yield the nodes behind it, each after its parent."""
        left = list(self.children.values())
        while left:  # no recursion: a long conversation is a deep tree
            node = left.pop()
            yield node
            left += node.children.values()

    def __repr__(self) -> str:
        return f"[{self.start_tokens}, {self.end_tokens})"


def content(group: CacheGroup, start_tokens: int, end_tokens: int) -> Span:
    """Return the tokens of a segment that a cell of this group has, in whole blocks.

    Entries and an index: all of them. A window, a tail, a chunk: what the query behind the segment
    reads of it. That is also all that a query further on reads of it.
    """
    if group.shape is Shape.PREFIX:
        return Span(start_tokens, end_tokens)
    need = group.need(end_tokens).cut(Span(start_tokens, end_tokens))
    if not need.tokens:
        return Span(end_tokens, end_tokens)
    if group.shape is Shape.POINT:
        return Span(end_tokens - 1, end_tokens)
    return Span(round_down(need.start, group.block_size), end_tokens)


def sizes(groups: Iterable[CacheGroup], start_tokens: int, end_tokens: int) -> dict[str, int]:
    """Return, by group, how many blocks the cell of a segment takes; groups without any are out."""
    found = {
        g.name: blocks(content(g, start_tokens, end_tokens).tokens, g.block_size) for g in groups
    }
    return {name: count for name, count in found.items() if count}


class CellSizes:
    """How many blocks the cells of segments take.

    That follows from how long a segment is, and from where its end lies in the periods and blocks
    of the groups: segments that agree in both are reckoned once.
    """

    def __init__(self, groups_of: Mapping[CacheState, Iterable[CacheGroup]]) -> None:
        self._groups_of = groups_of
        every = (group for groups in groups_of.values() for group in groups)
        self._period = lcm(*(lcm(group.period, group.block_size) for group in every))
        self._found: dict[tuple[int, int], dict[CacheState, dict[str, int]]] = {}

    def of(self, start_tokens: int, end_tokens: int) -> dict[CacheState, dict[str, int]]:
        """Return, by state and group, the blocks of a segment; what takes none is out."""
        alike = end_tokens - start_tokens, end_tokens % self._period
        found = self._found.get(alike)
        if found is None:
            if len(self._found) == REMEMBERED_SIZES:
                self._found.clear()
            every = {s: sizes(g, start_tokens, end_tokens) for s, g in self._groups_of.items()}
            found = {state: taken for state, taken in every.items() if taken}
            self._found[alike] = found
        return found
