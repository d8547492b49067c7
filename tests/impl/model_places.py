"""Where the rows of random conversations are kept, and what goes wrong there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Protocol

from tests.impl.model_examples import rng_of
from transformers import PreTrainedModel

from fivestate.impl.allocator.settings import Pages
from fivestate.impl.cache import Cache
from fivestate.impl.chain import Cell, CopyKey
from fivestate.impl.models.by_block import ByBlock, cache_for
from fivestate.impl.models.folder import Folder
from fivestate.impl.models.labels import HostRows
from fivestate.impl.models.layout import layout_of
from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.store import DictStore, Key
from fivestate.impl.refusals import Refused
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Copy, Device

STATES = (TAIL, WINDOW, INDEXER, COMPRESSED)
ROOM = 10
"""Parts that a store has room for, of each group but those of entries."""

ROOM_TOKENS = 560
"""Tokens that each pool of an allocator has room for."""


CRASHES = 6
"""Every so many turns the process is gone, and starts again."""


class Place(Protocol):
    """Keeps rows, badly."""

    prefixes: PrefixCache

    def trouble(self, rng: Random, seen: Counter[str]) -> None:
        """Evict, offload, damage and crash, each now and then."""
        ...


class Parts:
    """Parts in memory, with room for a few."""

    def __init__(self, on: PreTrainedModel) -> None:
        self.on = on
        groups = layout_of(on.config).geometry.groups
        more = (COMPRESSED, INDEXER)
        self.room = {g.name: ROOM * (3 if g.state in more else 1) for g in groups}
        self.restart({})

    def restart(self, kept: dict[Key, bytes]) -> None:
        """Begin with what was off the device; the device is empty."""
        self.store = DictStore(self.room, kept)
        self.prefixes = PrefixCache(self.on, store=self.store)

    def trouble(self, rng: Random, seen: Counter[str]) -> None:
        """Evict, offload, damage and crash, each now and then."""
        for key in sorted(self.store):
            if rng.random() < 0.3:
                self.store.offload(key)
            if rng.random() < 0.1:
                self.store.evict(key)
        for key, blob in sorted(self.store.bytes.items()):
            if rng.random() < 0.03:
                at = rng.randrange(len(blob))
                self.store.bytes[key] = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]
                seen["damage"] += 1
        seen["turn"] += 1
        if seen["turn"] % CRASHES == 0:
            seen["crash"] += 1
            self.restart(self.store.bytes)


class Checked(HostRows):
    """Memory whose copies can be damaged, which is found when they are read."""

    def __init__(self) -> None:
        super().__init__({})
        self.damaged: set[CopyKey] = set()

    def get(self, key: CopyKey) -> Pages:
        """Return the bytes, checked."""
        if key in self.damaged:
            raise ValueError(f"copy {key}: damaged")
        return super().get(key)


class Blocks:
    """Blocks of the reference allocator."""

    def __init__(self, on: PreTrainedModel) -> None:
        self.host = Checked()
        self.cache: Cache = cache_for(layout_of(on.config), ROOM_TOKENS, host=self.host)
        self.prefixes = PrefixCache(on, store=self.cache)

    def offload(self) -> list[CopyKey]:
        """Copy every cell that can be copied; return the keys of the new copies."""
        cells = [cell for node in self.cache.allocator.nodes() for cell in node.cells.values()]
        return [key for cell in cells if (key := self.store(cell)) is not None]

    def store(self, cell: Cell) -> CopyKey | None:
        """Copy a cell to the tier next to the device, if there is something to copy."""
        allocator = self.cache.allocator
        ready = cell.device is Device.READY and cell.node.known
        if not ready or allocator.copy_of(cell) is not Copy.NONE:
            return None
        key = allocator.store_begin(cell.node, cell.state)
        pools = allocator.pools
        self.host.put(key, {name: pools[name].read(ids) for name, ids in cell.blocks.items()})
        allocator.store_good(cell.node, cell.state)
        return key

    def trouble(self, rng: Random, seen: Counter[str]) -> None:
        """Evict, offload, damage and crash, each now and then."""
        allocator = self.cache.allocator
        for cell in [cell for node in allocator.nodes() for cell in node.cells.values()]:
            key = self.store(cell) if rng.random() < 0.3 else None
            if key is not None and rng.random() < 0.05:
                self.host.damaged.add(key)
                seen["damage"] += 1
            if cell.device is Device.READY and rng.random() < 0.05:
                try:
                    allocator.evict(cell.node, cell.state)
                except Refused as refusal:
                    seen[f"not evicted: {refusal.guard}"] += 1
        seen["turn"] += 1
        if seen["turn"] % CRASHES == 0:
            seen["crash"] += 1
            allocator.crash()


class Tiers:
    """A folder, with room for a few blocks on the device and fewer in host memory."""

    def __init__(self, on: PreTrainedModel, path: Path) -> None:
        self.on, self.path, room = on, path, ROOM_TOKENS // 2
        self.folder = Folder(path=path, device_tokens=room, host_tokens=room // 4)
        self.prefixes = PrefixCache(on, store=self.folder)

    @property
    def rows(self) -> ByBlock:
        """What the prefix cache has opened."""
        rows = self.prefixes._rows
        assert isinstance(rows, ByBlock)
        return rows

    def trouble(self, rng: Random, seen: Counter[str]) -> None:
        """Evict, damage, and stop in the middle and open the folder again, each now and then."""
        self.prefixes.settle()
        own = rng_of(rng.randrange(1 << 32))  # how many files there are is up to threads
        allocator = self.rows._cache.allocator
        for cell in list(allocator.cells()):
            if cell.device is Device.READY and own.random() < 0.05:
                try:
                    allocator.evict(cell.node, cell.state)
                except Refused as refusal:
                    seen[f"not evicted: {refusal.guard}"] += 1
        for file in sorted((self.path / "objects").iterdir()):
            if own.random() < 0.01:
                blob = bytearray(file.read_bytes())
                blob[own.randrange(len(blob))] ^= 1
                file.write_bytes(bytes(blob))
                seen["damage"] += 1
        seen["turn"] += 1
        if seen["turn"] % CRASHES == 0:
            seen["crash"] += 1
            self.prefixes.close()
            self.prefixes = PrefixCache(self.on, store=self.folder)
