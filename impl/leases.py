"""Leases: what was taken of a prefix, as it was when it was taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from fivestate.impl.chain import Node, content
from fivestate.impl.pools import NO_BLOCKS, Blocks
from fivestate.spec.need import round_down
from fivestate.spec.reuse import CacheGroup, Kind, Plan, Shape
from fivestate.spec.vocabulary import CacheState

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator
    from fivestate.impl.held import Held


@dataclass(frozen=True)
class Snapshot:
    """The prefix of a lease: where its bytes are, and of which generation (快照).

    Nobody changes any of it while the lease is held, so it is true as long as it may be used.

    Attributes:
        state_data_ptrs: by state, the address of the memory of each of its groups.
        first_blocks: by group, the number of its first block: the tokens before are not needed.
        block_ids: by group, shape (n,), the blocks from there to the resume point.
        generations: by group, shape (n,), how often each of these blocks had been given back.
        layout: the epoch of the kernels that may read it.
        weights: the epoch of the weights that it was computed with.
    """

    state_data_ptrs: Mapping[CacheState, tuple[int, ...]]
    first_blocks: Mapping[str, int]
    block_ids: Mapping[str, Blocks]
    generations: Mapping[str, Blocks]
    layout: int
    weights: int

    @classmethod
    def of(cls, allocator: Allocator, node: Node) -> Self:
        """Return what a resume at the end of a node reads now."""
        pointers = {
            state: tuple(allocator.pools[group.name].storage.data_ptr() for group in groups)
            for state, groups in allocator.groups_of.items()
        }
        firsts, ids, generations = dict[str, int](), dict[str, Blocks](), dict[str, Blocks]()
        path = node.path()
        for group in allocator.settings.geometry.voting:
            first, parts = prefix_blocks(group, path)
            blocks = np.concatenate(parts) if parts else NO_BLOCKS
            firsts[group.name], ids[group.name] = first, _frozen(blocks)
            generations[group.name] = _frozen(allocator.pools[group.name].generation[blocks])
        return cls(
            MappingProxyType(pointers),
            MappingProxyType(firsts),
            MappingProxyType(ids),
            MappingProxyType(generations),
            allocator.layout,
            allocator.weights,
        )

    def stands(self, allocator: Allocator) -> bool:
        """Say whether every block is still of the generation that was seen."""
        return (self.layout, self.weights) == (allocator.layout, allocator.weights) and all(
            np.array_equal(allocator.pools[name].generation[blocks], self.generations[name])
            for name, blocks in self.block_ids.items()
        )


class Lease:
    """A prefix that one request holds, and the right to write behind it (租约).

    It ends with ``release``, at the latest at the end of a ``with`` block. What it says of itself
    never changes; what the request writes behind the prefix is asked of the cache.

    Attributes:
        cache: whose it is.
        name: the request's name.
        kind: what the prefix was worth: HIT, PARTIAL or MISS.
        resume: the position to go on from.
        plan: what had to be done first; of it, recomputing tokens is left to the request.
    """

    def __init__(self, cache: Held, name: str, kind: Kind, plan: Plan) -> None:
        self.cache, self.name, self.kind, self.plan = cache, name, kind, plan
        self.resume = plan.resume

    @cached_property
    def snapshot(self) -> Snapshot:
        """The prefix, as it was when it was taken.

        Raises:
            Refused: it is still being recovered, or it has been released.
        """
        return self.cache.snapshot(self)

    @property
    def recovering(self) -> bool:
        """Whether something has to be recovered before it may be read."""
        return self.cache.recovering(self)

    def release(self) -> None:
        """End it; a second time nothing is left to do."""
        self.cache.release(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"lease of {self.name} at {self.resume}"


def prefix_blocks(group: CacheGroup, path: list[Node]) -> tuple[int, list[Blocks]]:
    """Return the blocks of a group that a resume at the end of a path reads.

    Returns:
        The number of the first block, and the ids from there on, in pieces of shape (n,).
    """
    if not path:
        return 0, []
    name, state, shape, last = group.name, group.state, group.shape, path[-1]
    if shape is Shape.PREFIX:
        return 0, [node.cells[state].blocks[name] for node in path]
    end = last.end_tokens
    if shape is Shape.POINT:
        return (end - 1) // group.block_size, [last.cells[state].blocks[name]]
    if last.tokens >= group.most_rows:  # what the end needs lies in the last segment
        cell = last.cells.get(state)
        blocks = NO_BLOCKS if cell is None else cell.blocks.get(name, NO_BLOCKS)
        return end // group.block_size - blocks.size, [blocks]
    need = group.need(end)
    if not need.tokens:
        return end // group.block_size, []
    start = round_down(need.start, group.block_size)
    parts: list[Blocks] = []
    for node in reversed(path):
        if node.end_tokens <= start:
            break
        has = content(group, node.start_tokens, node.end_tokens)
        skipped = max(start - has.start, 0) // group.block_size
        parts.append(node.cells[state].blocks[name][skipped:])
    return start // group.block_size, parts[::-1]


def _frozen(blocks: Blocks) -> Blocks:
    """Return a copy that cannot be written to."""
    copy = blocks.copy()
    copy.setflags(write=False)
    return copy
