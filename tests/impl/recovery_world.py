"""A small world for the recovery tests: one model, its bytes, and an engine that uses them.

What a block should hold follows from its place alone: the digest of the chain up to the scheduler
block in which it ends, its group, its number, and the epochs. So bytes that came by whatever way,
through whatever tier, after whatever split, are compared with what they have to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b, shake_256
from pathlib import Path

import numpy as np
import torch

from fivestate.impl.allocator import Allocator, Settings
from fivestate.impl.chain import Cell, Node, content
from fivestate.impl.pools import Blocks
from fivestate.impl.recovery import DiskCopies, HostCopies, Worker
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.impl.tiers import Store, StoreIdentity
from fivestate.spec.need import blocks
from fivestate.spec.reuse import CacheGroup, Geometry
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Device, Fit, Phase

GEOMETRY = Geometry(
    "recovery",
    (
        CacheGroup(name="c2", state=COMPRESSED, block_size=4, ratio=2, bytes_per_entry=16),
        CacheGroup(name="c4", state=COMPRESSED, block_size=8, ratio=4, bytes_per_entry=24),
        CacheGroup(name="w", state=WINDOW, block_size=4, window=6, bytes_per_entry=8),
        CacheGroup(name="t", state=TAIL, block_size=4, ratio=4, lookback=4, bytes_per_entry=8),
        CacheGroup(name="i", state=INDEXER, block_size=4, ratio=2, bytes_per_entry=8, of="c2"),
    ),
)
STEP = GEOMETRY.scheduler_block_size
PLENTY_BYTES = 1 << 24
STORABLE = frozenset({COMPRESSED, WINDOW})
SOON_SECONDS = 20.0
"""More than anything here takes; who waits so long is stuck."""

KERNELS, WEIGHTS = 0, 0
"""The epochs that a test starts with."""


def digests(*blocks: str, parent: bytes = b"") -> list[bytes]:
    """Return the digests of a chain of scheduler blocks, each named by a word."""
    made: list[bytes] = []
    for block in blocks:
        parent = blake2b(parent + block.encode(), digest_size=32).digest()
        made.append(parent)
    return made


def convert(group: str, pages: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """Return pages in another layout: epoch ``n`` has every byte XORed with ``n``."""
    del group
    return pages ^ (old ^ new)


def open_store(folder: Path, layout: int = KERNELS) -> Store:
    """Open the folder of this model."""
    identity = StoreIdentity.of(GEOMETRY, layout=str(layout), weights=WEIGHTS)
    return Store.open(folder, identity=identity, capacity_bytes=PLENTY_BYTES)


def allocator(  # noqa: PLR0913 -- each is named by the caller, and has a default
    folder: Path | None = None,
    *,
    blocks_each: int = 64,
    host_blocks: Mapping[str, int] | None = None,
    disk_bytes: int = PLENTY_BYTES,
    layout: int = KERNELS,
    reserve: int = 0,
    transfers_at_once: int = 8,
) -> Allocator:
    """Return an allocator whose disk is a folder, if one is given."""
    names = [group.name for group in GEOMETRY.groups]
    return Allocator(
        Settings(
            geometry=GEOMETRY,
            num_blocks=dict.fromkeys(names, blocks_each),
            reserve=dict.fromkeys(names, reserve),
            storable=STORABLE,
            transfers_at_once=transfers_at_once,
            host_blocks=host_blocks or {},
            host=HostCopies(),
            disk=None if folder is None else DiskCopies(open_store(folder, layout), disk_bytes),
            convert=convert,
        )
    )


def expected(cell: Cell, layout: int) -> dict[str, torch.Tensor]:
    """Return what a cell should hold, by group: shape (blocks, page_bytes)."""
    home, node = cell.node.home, cell.node
    assert isinstance(home, Allocator)
    chain = [digest for step in node.path() for digest in step.digests]
    made: dict[str, torch.Tensor] = {}
    for group in home.groups_of[cell.state]:
        if group.name not in cell.sizes:
            continue
        span = content(group, node.start_tokens, node.end_tokens)
        first, size = span.start // group.block_size, home.pools[group.name].page_bytes
        pages = [
            _page(chain[((number + 1) * group.block_size - 1) // STEP], group, number, size)
            for number in range(first, first + blocks(span.tokens, group.block_size))
        ]
        raw = torch.from_numpy(np.frombuffer(b"".join(pages), np.uint8).copy())
        made[group.name] = raw.view(-1, size) ^ layout
    return made


def _page(digest: bytes, group: CacheGroup, number: int, size: int) -> bytes:
    return shake_256(digest + f"{group.name} {number}".encode()).digest(size)


class Engine:
    """Computes, reads and compares: what runs on top of an allocator."""

    def __init__(self, home: Allocator) -> None:
        self.home = home

    def node(self, chain: Sequence[bytes]) -> Node:
        """Return the node at whose end a chain ends, grown or split off where it must be."""
        with self.home.lock:
            at, rest = self.home.root, list(chain)
            while rest:
                child = at.children.get(rest[0])
                if child is None:
                    return self.home.grow(at, rest)
                same = next(
                    (
                        n
                        for n, (a, b) in enumerate(zip(child.digests, rest, strict=False))
                        if a != b
                    ),
                    min(len(child.digests), len(rest)),
                )
                if same < len(child.digests):
                    child = self.home.split(child, child.start_tokens + same * STEP)
                at, rest = child, rest[same:]
            return at

    def write(self, cell: Cell, into: Mapping[str, Blocks]) -> None:
        """Write what a cell should hold."""
        for name, page in expected(cell, self.home.layout).items():
            self.home.pools[name].write(into[name], page)

    def compute(self, node: Node) -> None:
        """Make every cell of a recovery that waits to be made and can be."""
        going = True
        while going:
            going = False
            for cell in self.home.claims(node):
                if self._make(cell):
                    going = True

    def _make(self, cell: Cell) -> bool:
        with self.home.lock:
            if self.home.kept(cell) and cell.device is Device.RESERVED:
                return False
            try:
                into = self.home.make(cell.node, cell.state)
            except Refused:
                return False
        self.write(cell, into)
        with self.home.lock:
            if cell.blocks is not into or cell.device is not Device.WRITING:
                doubts = [d for d in self.home.doubts[cell.state] if d.blocks is into]
                for doubt in doubts:
                    self.home.land(cell.state, doubt=doubt)
                    self.home.reclaim(cell.state)
                return False
            self.home.made(cell.node, cell.state)
            return True

    def publish(self, chain: Sequence[bytes]) -> Node:
        """Compute a chain's last segment, let it be known, and go."""
        with self.home.lock:
            node, request = self.node(chain), self.home.new_request("writer")
            self.home.arrive(request, node)
            self.home.admit(request, node)
        self.compute(node)
        with self.home.lock:
            if not node.known:
                self.home.publish(node)
            self.home.resume(request, node)
            self.home.run(request)
            self.home.finish(request)
        return node

    def ask(self, node: Node, name: str = "reader") -> Request:
        """Let a request arrive and, if it is not a hit, be admitted to recovery."""
        request = self.home.new_request(name)
        with self.home.lock:
            if self.home.arrive(request, node) is Phase.HIT:
                self.home.lease(request)
            else:
                self.home.admit(request, node)
        return request

    def read(self, request: Request) -> None:
        """Run on what is leased: every byte is what it has to be."""
        self.home.run(request)
        self.compare(request.held)
        self.home.finish(request)

    def compare(self, cells: Sequence[Cell]) -> None:
        """Compare cells that are pinned with what they should hold."""
        for cell in cells:
            assert cell.fit(self.home.layout) is Fit.OK
            for name, page in expected(cell, self.home.layout).items():
                assert torch.equal(self.home.pools[name].read(cell.blocks[name]), page), cell

    def evict(self, node: Node) -> None:
        """Evict all that a node has on the device, what hangs on its entries first."""
        for state in sorted(node.cells, key=lambda s: s is COMPRESSED):
            if node.cells[state].device is Device.READY:
                self.home.evict(node, state)


def archived(engine: Engine, worker: Worker, *chain: str) -> Node:
    """Return a prefix that is known and kept off the device, and of which nothing is on it."""
    node = engine.publish(digests(*chain))
    worker.persist()
    assert worker.idle(SOON_SECONDS)
    for step in reversed(node.path()):
        engine.evict(step)
    return node
