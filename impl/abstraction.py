"""Abstraction: the state of the machine that an allocator is in, read from real memory.

Most of the machine's variables are what the allocator has. Its ghosts are not: what a kernel would
see in a cell, what a copy would give, which transfers still fly, whether a graph's addresses are
still its cells'. They are found by looking: at the bytes in the pools and tiers, and at whoever
moves bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, Copied, Node
from fivestate.impl.pools import Pool
from fivestate.impl.requests import Request
from fivestate.spec.allocator.state import Group
from fivestate.spec.language import Model
from fivestate.spec.language.model import Codes
from fivestate.spec.vocabulary import Bytes, CacheState, Device

Raw = Mapping[str, NDArray[np.uint8]]
"""The bytes of a cell: by group, shape (blocks, page_bytes)."""


class Eyes(Protocol):
    """What an allocator does not know: what bytes mean, and what is still under way."""

    def see(self, cell: Cell, pages: Raw) -> Bytes:
        """Say what a kernel that read these pages as this cell's now would see."""
        ...

    def flying(self, state: CacheState) -> int:
        """Return how many blocks transfers may still reach that nobody waits for."""
        ...


class Abstraction:
    """The view of an allocator as a state of a model.

    Args:
        model: a model of ``spec.allocator``.
        allocator: the allocator.
        prefixes: the node that each prefix of the model is.
        requests: the request that each request of the model is.
        eyes: what bytes mean, and what is under way.
    """

    def __init__(
        self,
        model: Model,
        allocator: Allocator,
        prefixes: Sequence[Node],
        requests: Sequence[Request],
        eyes: Eyes,
    ) -> None:
        self._allocator, self._eyes = allocator, eyes
        self._prefixes, self._requests = tuple(prefixes), tuple(requests)
        states = list(CacheState)
        self._states = [states[code] for code in model.elements(Group)]
        # A member's ``_value_`` is its ``value`` without the detour that makes that read-only.
        self._cells = [node.cells[state] for node in self._prefixes for state in self._states]
        self._memory = {name: _Memory(pool) for name, pool in allocator.pools.items()}
        self._variables: list[Callable[[], list[int]]] = [
            getattr(self, f"_{name}") for name in model.variables
        ]

    def state(self) -> Codes:
        """Return the codes of every cell of the model's state, in the model's order."""
        codes: list[int] = []
        for variable in self._variables:
            codes += variable()
        return tuple(codes)

    def _known(self) -> list[int]:
        return [int(node.known) for node in self._prefixes]

    def _device(self) -> list[int]:
        return [cell.device._value_ for cell in self._cells]

    def _fit(self) -> list[int]:
        return [cell.fit(self._allocator.layout)._value_ for cell in self._cells]

    def _copy(self) -> list[int]:
        return [self._allocator.copy_of(cell)._value_ for cell in self._cells]

    def _disk(self) -> list[int]:
        return [self._allocator.disk_of(cell)._value_ for cell in self._cells]

    def _prefetching(self) -> list[int]:
        return [int(node.prefetching) for node in self._prefixes]

    def _graph(self) -> list[int]:
        return [int(node.graph is not None) for node in self._prefixes]

    def _dirty(self) -> list[int]:
        dirty = any(memory.rows()[0].any() for memory in self._memory.values())
        if dirty and not self._allocator.null_dirty:
            raise AssertionError("a null block is not zero, and the allocator does not know")
        return [int(dirty)]

    def _free(self) -> list[int]:
        pools, groups_of = self._allocator.pools, self._allocator.groups_of
        return [sum(pools[g.name].free for g in groups_of[state]) for state in self._states]

    def _doomed(self) -> list[int]:
        return [
            sum(int(blocks.size) for doubt in lots for blocks in doubt.blocks.values())
            for lots in (self._allocator.doubts[state] for state in self._states)
        ]

    def _late(self) -> list[int]:
        return [self._eyes.flying(state) for state in self._states]

    def _phase(self) -> list[int]:
        return [request.phase._value_ for request in self._requests]

    def _want(self) -> list[int]:
        return [
            0 if request.want is None else self._prefixes.index(request.want) + 1
            for request in self._requests
        ]

    def _fresh(self) -> list[int]:
        return [int(self._allocator.fresh(request)) for request in self._requests]

    def _ahead(self) -> list[int]:
        return [
            int(q.waiting and r.waiting and q.arrival < r.arrival)
            for q in self._requests
            for r in self._requests
        ]

    def _slid(self) -> list[int]:
        return [int(request.slid) for request in self._requests]

    def _copied(self) -> list[int]:
        return [int(request.copied) for request in self._requests]

    def _grown(self) -> list[int]:
        return [int(request.grown) for request in self._requests]

    def _bytes(self) -> list[int]:
        return [self._look(cell)._value_ for cell in self._cells]

    def _stored(self) -> list[int]:
        return [self._recall(cell, cell.copy, disk=False)._value_ for cell in self._cells]

    def _archived(self) -> list[int]:
        return [self._recall(cell, cell.disk, disk=True)._value_ for cell in self._cells]

    def _same(self) -> list[int]:
        return [int(self._allocator.stands(node.graph)) for node in self._prefixes]

    def _look(self, cell: Cell) -> Bytes:
        """See what is in the blocks of a cell now, whatever the allocator says about it.

        What the last owner of a block wrote nobody sees: a read of it is refused.
        """
        if cell.device is Device.ABSENT:
            return Bytes.WRONG
        pages: dict[str, NDArray[np.uint8]] = {}
        for group, blocks in cell.blocks.items():
            if self._allocator.pools[group].stale[blocks].any():
                return Bytes.WRONG
            pages[group] = self._memory[group].rows()[blocks]
        return self._eyes.see(cell, pages)

    def _recall(self, cell: Cell, copied: Copied | None, *, disk: bool) -> Bytes:
        """See what a complete copy would give."""
        settings = self._allocator.settings
        tier = settings.disk if disk else settings.host
        if copied is None or not copied.complete or tier is None:
            return Bytes.WRONG
        try:
            pages = tier.get(copied.key)
        except KeyError:
            return Bytes.WRONG
        return self._eyes.see(cell, {name: page.numpy() for name, page in pages.items()})


class _Memory:
    """The storage of a pool, as it is now."""

    def __init__(self, pool: Pool) -> None:
        self._storage = pool.storage
        self._shared = pool.storage.numpy() if pool.storage.device.type == "cpu" else None

    def rows(self) -> NDArray[np.uint8]:
        """Return the pages of all blocks, shape (num_blocks + 1, page_bytes)."""
        return self._storage.cpu().numpy() if self._shared is None else self._shared
