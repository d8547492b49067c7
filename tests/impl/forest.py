"""A forest: an allocator at token level, with two ratios, a tail, a window and an index."""

from __future__ import annotations

import numpy as np

from fivestate.impl.allocator import Allocator, Settings
from fivestate.impl.chain import Cell, Node
from fivestate.impl.pools import Blocks
from fivestate.impl.requests import Request
from fivestate.spec.reuse import CacheGroup, Geometry
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, CacheState, Device, Phase

STEP = 8
"""The scheduler's block, in tokens."""

GEOMETRY = Geometry(
    "forest",
    (
        CacheGroup(name="c2", state=COMPRESSED, block_size=4, ratio=2, bytes_per_entry=2),
        CacheGroup(name="c4", state=COMPRESSED, block_size=8, ratio=4, bytes_per_entry=2),
        CacheGroup(name="tail", state=TAIL, block_size=4, ratio=2, lookback=2, bytes_per_entry=2),
        CacheGroup(name="swa", state=WINDOW, block_size=4, window=14, bytes_per_entry=2),
        CacheGroup(name="index", state=INDEXER, block_size=4, ratio=2, bytes_per_entry=2),
    ),
)
"""A resume at a multiple of 8 reads 13 window rows and 2 tail rows before it."""

MAKING = (COMPRESSED, WINDOW, TAIL, INDEXER)


class Forest:
    """An allocator over that geometry, and what a test does with it."""

    def __init__(self, num_blocks: int = 64, **settings: object) -> None:
        blocks = dict.fromkeys((group.name for group in GEOMETRY.groups), num_blocks)
        options = {"geometry": GEOMETRY, "num_blocks": blocks, **settings}
        self.allocator = Allocator(Settings(**options))  # type: ignore[arg-type]  # by name
        self._named = 0

    @staticmethod
    def groups_of(geometry: Geometry) -> dict[CacheState, tuple[CacheGroup, ...]]:
        """Return the voting groups of a geometry, by state."""
        states = {group.state for group in geometry.voting}
        return {s: tuple(g for g in geometry.voting if g.state is s) for s in states}

    def request(self, **private: int) -> Request:
        """Return a new request, with a name of its own."""
        self._named += 1
        return self.allocator.new_request(f"r{self._named}", **private)

    def grow(self, parent: Node | None, text: str) -> Node:
        """Add a node: a block of the scheduler for each character."""
        parent = parent or self.allocator.root
        before = parent.digests[-1] if parent.digests else b""
        digests = [before + text[: at + 1].encode() for at in range(len(text))]
        return self.allocator.grow(parent, digests)

    def recover(self, node: Node, request: Request | None = None) -> Request:
        """Recover a node with all before it, and return a request that has leased it."""
        request = request or self.request()
        allocator = self.allocator
        allocator.arrive(request, node)
        allocator.admit(request, node)
        for step in node.path():
            for state in MAKING:
                cell = step.cells.get(state)
                if cell is not None and cell.device is Device.RESERVED:
                    self.make(cell)
            if not step.known:
                allocator.publish(step)
        allocator.resume(request, node)
        return request

    def make(self, cell: Cell) -> None:
        """Make a cell, with bytes that say whose it is."""
        blocks = self.allocator.make(cell.node, cell.state)
        for group, ids in blocks.items():
            self.allocator.pools[group].storage[self.allocator.pools[group].index(ids)] = mark(cell)
        self.allocator.made(cell.node, cell.state)

    def known(self, parent: Node | None, text: str) -> Node:
        """Add a node, recover it and let it go."""
        node = self.grow(parent, text)
        self.release(self.recover(node))
        return node

    def release(self, request: Request) -> None:
        """End a request that has leased its prefix."""
        if request.phase is Phase.LEASED:
            self.allocator.run(request)
        self.allocator.finish(request)

    def verdict(self, node: Node) -> Phase:
        """Return what somebody who asks for a node is told."""
        request = self.request()
        told = self.allocator.arrive(request, node)
        self.allocator.abort_waiting(request)
        return told

    def private(self, request: Request, node: Node) -> dict[CacheState, dict[str, Blocks]]:
        """Return private blocks of a request for each cell of a node, marked as theirs."""
        found: dict[CacheState, dict[str, Blocks]] = {}
        used = dict.fromkeys(request.private, 0)
        for state, cell in node.cells.items():
            found[state] = {}
            for group, count in cell.sizes.items():
                ids = request.private[group][used[group] : used[group] + count]
                used[group] += count
                pool = self.allocator.pools[group]
                pool.storage[pool.index(ids)] = mark(cell)
                found[state][group] = ids
        return found


def mark(cell: Cell) -> int:
    """Return the byte that fills a cell's pages."""
    return (hash((cell.node.digests[-1], cell.state.name)) % 255) + 1


def held(forest: Forest, cell: Cell) -> set[int]:
    """Return the bytes that are in a cell's pages."""
    pools = forest.allocator.pools
    pages = [pools[group].read(ids).numpy() for group, ids in cell.blocks.items()]
    return set(np.concatenate([page.reshape(-1) for page in pages]).tolist())
