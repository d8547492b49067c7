"""An engine for the tests: it computes, for every token, rows that tell which prefix they are of.

What a kernel would write for token ``t`` of some group is here a number that depends on all tokens
up to ``t``, on the group, and on the kernels' layout. So memory itself says what it holds, and
every claim of the cache can be checked against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fivestate.impl.allocator import Allocator, Memory, Settings
from fivestate.impl.cache import Cache
from fivestate.impl.leases import Lease
from fivestate.impl.metrics import Metrics
from fivestate.impl.recoveries import Recovery, Task
from fivestate.impl.retention import Retention
from fivestate.spec.reuse import CacheGroup, Geometry, Means, Policy, Role, Shape, Span
from fivestate.spec.reuse.files import preset
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, CacheState

Numbers = NDArray[np.uint64]
Tables = Mapping[str, tuple[int, list[int]]]
ROW_BYTES = 8
GARBAGE = np.uint64(0xBAD)
"""What a load brings that does not check."""

MISPLACED_BYTES = 1
"""How far the tests misplace pages: no row is so short that it could be another."""


def mask(layout: int) -> np.uint64:
    """Return what masks every row in the layout of a kernel epoch."""
    return np.uint64(layout * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)


def group(name: str, state: CacheState, block_size: int, **more: Any) -> CacheGroup:
    return CacheGroup(name=name, state=state, block_size=block_size, **more)


AGAIN = Role.REBUILDABLE
HYBRID = Geometry(
    "hybrid",
    (
        group("c2", COMPRESSED, 8, ratio=2),
        group("c4", COMPRESSED, 16, ratio=4),
        group("index", INDEXER, 4, ratio=2, role=AGAIN),
        group("window", WINDOW, 2, window=6, role=AGAIN),
        group("tail2", TAIL, 1, ratio=2, lookback=2, role=AGAIN),
        group("draft", WINDOW, 3, window=4, role=Role.VOLATILE),
    ),
)
"""Every block size is another; the index and the windows can be made again."""

SNAPSHOTS = Geometry(
    "snapshots",
    (
        group("full", COMPRESSED, 4),
        group("state", COMPRESSED, 8, recurrent=True),
        group("chunk", WINDOW, 2, window=12, chunked=True),
    ),
)
"""A recurrent state, and attention inside chunks that are no multiple of a hit."""


PRESETS = ("dsv4-flash", "gpt-oss-120b", "homogeneous", "toy")
GEOMETRIES = {**{name: preset(name) for name in PRESETS}, "hybrid": HYBRID, "snapshots": SNAPSHOTS}


def relayout(_group: str, pages: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """Return pages in another epoch's layout: every number is masked by its epoch."""
    numbers = pages.cpu().numpy().view(np.uint64) ^ mask(old) ^ mask(new)
    return torch.from_numpy(numbers.view(np.uint8))


@dataclass(eq=False)
class Held:
    """One request of the engine.

    Attributes:
        tokens: its tokens, drafts included.
        lease: its lease.
        verified: tokens that are accepted.
        written: tokens that have rows.
    """

    tokens: list[int]
    lease: Lease
    verified: int
    written: int


def _powers(odd: int) -> Numbers:
    """Return the first powers of an odd number, modulo 2^64."""
    found = [1]
    for _ in range(LONGEST_TOKENS):
        found.append(found[-1] * odd % (1 << 64))
    return np.array(found, np.uint64)


LONGEST_TOKENS = 4_096
ODD = 0x9E3779B97F4A7C15
POWERS, INVERSES = _powers(ODD), _powers(pow(ODD, -1, 1 << 64))


@dataclass
class Ghost:
    """What memory should hold."""

    geometry: Geometry
    ids: dict[str, np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = {
            g.name: np.uint64(0x100000001B3 * (n + 1)) for n, g in enumerate(self.geometry.groups)
        }

    def chain(self, tokens: Sequence[int]) -> Numbers:
        """Return, for each token, a number that tells all tokens up to it."""
        count = len(tokens)
        marked = (np.array(tokens, np.uint64) + np.uint64(1)) * INVERSES[:count]
        return np.cumsum(marked, dtype=np.uint64) * POWERS[:count]

    def rows(
        self, group: CacheGroup, chain: Numbers, last: NDArray[np.int64], layout: int
    ) -> Numbers:
        """Return the rows whose last token is given, shape (n,)."""
        return chain[last] * np.uint64(2654435761) ^ self.ids[group.name] ^ mask(layout)

    def page(self, group: CacheGroup, chain: Numbers, number: int, layout: int) -> Numbers:
        """Return a whole block, shape (entries,)."""
        start, size = number * group.block_size, group.block_size
        if group.shape is Shape.POINT:
            last = np.array([start + size - 1])
        elif group.shape is Shape.PREFIX:
            last = np.arange(start + group.ratio - 1, start + size, group.ratio)
        else:
            last = np.arange(start, start + size)
        return self.rows(group, chain, last, layout)


class Engine:
    """Serves requests on a cache, with ghost rows for attention, and checks what it is told."""

    def __init__(  # noqa: PLR0913 -- a test names what it wants to be otherwise
        self,
        geometry: Geometry,
        num_blocks: Mapping[str, int] | int,
        *,
        storable: frozenset[CacheState] = frozenset({COMPRESSED, WINDOW, TAIL}),
        disk: bool = False,
        policy: Policy | None = None,
        retention: Retention | None = None,
        in_flight_tokens: int = 64,
        slots: int = 8,
        metrics: Metrics | None = None,
    ) -> None:
        names = [g.name for g in geometry.groups]
        sizes = dict.fromkeys(names, num_blocks) if isinstance(num_blocks, int) else num_blocks
        self.host, self.disk = Memory(), Memory() if disk else None
        settings = Settings(
            geometry=geometry,
            num_blocks=sizes,
            page_bytes={g.name: g.entries_per_block * ROW_BYTES for g in geometry.groups},
            storable=storable & {g.state for g in geometry.groups},
            host=self.host,
            disk=self.disk,
            convert=relayout,
            slots=slots,
        )
        self.allocator = Allocator(settings)
        self.cache = Cache(
            self.allocator,
            policy=policy,
            retention=retention,
            in_flight_tokens=in_flight_tokens,
            metrics=metrics,
        )
        self.geometry, self.ghost = geometry, Ghost(geometry)
        self.memory: dict[str, Numbers] = {
            name: pool.storage.numpy().view(np.uint64)
            for name, pool in self.allocator.pools.items()
        }
        self.sequences: list[Held] = []

    def start(self, tokens: list[int], new_tokens: int = 0, **more: Any) -> Held:
        """Match a prompt and lease its prefix; it may have to be recovered."""
        lease = self.cache.lease(self.cache.match(tokens), new_tokens=new_tokens, **more)
        sequence = Held(list(tokens), lease, lease.resume, lease.resume)
        self.sequences.append(sequence)
        if not lease.recovering:
            self.check_lease(sequence)
        return sequence

    def recover(self, sequence: Held, fate: Callable[[Task], str] = lambda _task: "good") -> bool:
        """Do what a lease needs first; ``fate`` says of each load: good, bad, or misplaced."""
        recovery = self.cache.recover(sequence.lease)
        while not recovery.finish():
            tasks = recovery.pending()
            if not tasks:
                return False
            for task in tasks:
                self.do(recovery, task, sequence, fate(task))
        self.check_lease(sequence)
        return True

    def do(self, recovery: Recovery, task: Task, sequence: Held, fate: str = "good") -> None:
        """Begin a task, do it, and report it."""
        recovery.begin(task)
        self.end(recovery, task, sequence, fate)

    def end(self, recovery: Recovery, task: Task, sequence: Held, fate: str = "good") -> None:
        """Do a task that has begun, and report it."""
        if task.means is Means.REPACK:
            recovery.done(task)
        elif task.means is not Means.LOAD_BACK:
            self.compute(task, sequence.tokens)
            recovery.done(task)
        elif fate == "bad":
            for name, blocks in task.blocks.items():
                self.memory[name][blocks] = GARBAGE
            recovery.failed(task)
        else:
            try:
                recovery.load(task)
            except KeyError:  # nobody waits for it any more, and its copy went with the weights
                recovery.failed(task)
                return
            offset = MISPLACED_BYTES if fate == "misplaced" else 0
            if offset:
                for name, blocks in task.blocks.items():
                    pool = self.allocator.pools[name]
                    pool.write(blocks, pool.storage[pool.index(blocks)].roll(offset, 1))
            recovery.done(task, offset)

    def compute(self, task: Task, tokens: list[int]) -> None:
        """Write what a replay or a rebuild of an index gives."""
        chain = self.ghost.chain(tokens)
        for name, blocks in task.blocks.items():
            group, first = self.geometry.group(name), task.spans[name].start
            for place, block in enumerate(blocks):
                number = first // group.block_size + place
                self.memory[name][block] = self.ghost.page(
                    group, chain, number, self.allocator.layout
                )
            self.allocator.pools[name].overwritten(blocks)

    def fill(self, sequence: Held, count: int) -> None:
        """Compute the next tokens of the prompt."""
        self.cache.fill(sequence.lease, count)
        self._compute(sequence, count, 0)

    def append(self, sequence: Held, tokens: Sequence[int], drafts: int = 0) -> None:
        """Compute tokens behind the prompt."""
        self.cache.append(sequence.lease, tokens, drafts)
        sequence.tokens += tokens
        self._compute(sequence, len(tokens), drafts)

    def verify(self, sequence: Held, accepted: int) -> None:
        """Accept drafts, and take the others back."""
        self.cache.verify(sequence.lease, accepted)
        before, sequence.verified = sequence.verified, sequence.verified + accepted
        self._fold(sequence, before)
        if sequence.written > sequence.verified:
            del sequence.tokens[sequence.verified :]
            sequence.written = sequence.verified
        self.check_reads(sequence)

    def commit(self, sequence: Held) -> int:
        """Name what was written for others."""
        known = self.cache.commit(sequence.lease)
        assert known <= sequence.verified, "drafts are known"
        self.check_reads(sequence)
        return known

    def fork(self, sequence: Held, new_tokens: int = 0) -> Held:
        """Let another request go on from where one stands."""
        lease = self.cache.fork(sequence.lease, new_tokens=new_tokens)
        other = Held(list(sequence.tokens), lease, sequence.verified, sequence.written)
        self.sequences.append(other)
        self.check_reads(other)
        return other

    def release(self, sequence: Held, **more: Any) -> None:
        """End a request."""
        sequence.lease.release() if not more else self.cache.release(sequence.lease, **more)
        if not more:
            self.sequences.remove(sequence)

    def store(self, node: Any, state: CacheState, fate: str = "good") -> None:
        """Copy a cell to the tier next to the device."""
        key = self.allocator.store_begin(node, state)
        pools, cell = self.allocator.pools, node.cells[state]
        self.host.put(key, {name: pools[name].read(b) for name, b in cell.blocks.items()})
        if fate == "good":
            self.allocator.store_good(node, state)
        else:
            self.allocator.store_bad(node, state)

    def check_lease(self, sequence: Held) -> None:
        """Check that every row that a resume reads is really in the blocks of the snapshot."""
        snapshot, resume = sequence.lease.snapshot, sequence.lease.resume
        assert snapshot.stands(self.allocator)
        chain = self.ghost.chain(sequence.tokens[:resume])
        for group in self.geometry.voting:
            first, ids = snapshot.first_blocks[group.name], snapshot.block_ids[group.name]
            self._check(group, chain, first, ids.tolist())

    def check_reads(self, sequence: Held) -> None:
        """Check that every row that the next token reads is there, wherever it is by now."""
        tables = self.cache.blocks(sequence.lease)
        chain = self.ghost.chain(sequence.tokens[: sequence.verified])
        for group in self.geometry.voting:
            self._check(group, chain, *tables[group.name])

    def check(self) -> None:
        """Check conservation, and that what runs still finds what it needs."""
        self.allocator.check()
        for sequence in self.sequences:
            if not sequence.lease.recovering:
                self.check_reads(sequence)
                if sequence.verified == sequence.lease.resume:
                    assert sequence.lease.snapshot.stands(self.allocator), "it was changed"

    def _check(self, group: CacheGroup, chain: Numbers, first: int, ids: list[int]) -> None:
        position = len(chain)
        if group.shape is Shape.POINT:
            if not position or position % group.block_size:
                return  # inside a block the state is the engine's own, not the cache's
            need, last = Span(position - 1, position), np.array([position - 1])
        else:
            need = group.need(position)
            ratio = group.ratio if group.shape is Shape.PREFIX else 1
            last = np.arange(need.start + ratio - 1, need.end, ratio)
        if not need.tokens:
            return
        expected = self.ghost.rows(group, chain, last, self.allocator.layout)
        found = self._rows(group, last, first, ids)
        wrong = last[found != expected]
        assert not wrong.size, f"{group.name} at {position}: the row of token {wrong[0]} is wrong"

    def _places(
        self, group: CacheGroup, last: NDArray[np.int64], first: int, ids: list[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return block and slot of the rows whose last token is given."""
        numbers = last // group.block_size - first
        assert numbers.size == 0 or 0 <= numbers.min() <= numbers.max() < len(ids), (
            f"{group.name}: blocks from {first} on are {ids}; tokens are {last.tolist()}"
        )
        ratio = group.ratio if group.shape is Shape.PREFIX else 1
        slots = last % group.block_size // ratio
        return np.array(ids, np.int64)[numbers], slots * (group.shape is not Shape.POINT)

    def _rows(
        self, group: CacheGroup, last: NDArray[np.int64], first: int, ids: list[int]
    ) -> Numbers:
        return self.memory[group.name][self._places(group, last, first, ids)]

    def _write(
        self, group: CacheGroup, held: Held, last: NDArray[np.int64], tables: Tables
    ) -> None:
        if last.size:
            chain = self.ghost.chain(held.tokens)
            rows = self.ghost.rows(group, chain, last, self.allocator.layout)
            self.memory[group.name][self._places(group, last, *tables[group.name])] = rows

    def _compute(self, sequence: Held, count: int, drafts: int) -> None:
        """Write the rows of new tokens, and the entries of those that are verified."""
        start, settled = sequence.written, sequence.verified == sequence.written
        before = sequence.verified
        sequence.written += count
        if settled:
            sequence.verified = sequence.written - drafts
        tables = self.cache.blocks(sequence.lease)
        for group in self.geometry.groups:
            if group.shape is not Shape.PREFIX:
                self._write(group, sequence, np.arange(start, sequence.written), tables)
        self._fold(sequence, before)
        self.check_reads(sequence)

    def _fold(self, sequence: Held, before: int) -> None:
        tables = self.cache.blocks(sequence.lease)
        for group in self.geometry.groups:
            if group.shape is Shape.PREFIX:
                first, end = before // group.ratio, sequence.verified // group.ratio
                last = np.arange(first, end) * group.ratio + group.ratio - 1
                self._write(group, sequence, last, tables)
