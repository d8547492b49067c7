"""Pools: the blocks of one cache group, who owns each, and what was in it before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

import numpy as np
import torch
from numpy.typing import NDArray

from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import CacheGroup

Blocks = NDArray[np.int64]
"""Ids of blocks of one pool, shape (n,): arrays, so that 8,192 of them change hands at once."""

NO_BLOCKS: Blocks = np.zeros(0, np.int64)


class Owner(IntEnum):
    """Who has a block: exactly one of these, at any time."""

    FREE = 0
    """Nobody."""

    CELL = 1
    """A cell of some prefix."""

    PRIVATE = 2
    """A request in use, for itself alone."""

    DOOMED = 3
    """Nobody yet: a transfer may still touch it."""

    NULL = 4
    """Block 0, for padding: it is never handed out."""


FREE, CELL, PRIVATE, DOOMED, NULL = Owner

_NOTED = tuple(bytes([owner]) for owner in Owner)
"""What ``Pool.owner`` has for each of them."""

FEW = 8
"""Up to so many blocks a loop takes less time than operations on arrays."""


class Pool:
    """The blocks of one cache group in one piece of memory.

    A pool never evicts: it hands out what is free, and who needs more asks the allocator. Block 0
    is the null block, for padding; it is kept zero. Who reads a block is known by its cell, so
    there is no second count of readers here.

    A block that is given back is *stale*: it holds what its last owner wrote. Before anybody may
    read it, it is zeroed (``clean``) or written from end to end (``write``, ``overwritten``).

    Attributes:
        group: the cache group.
        storage: shape (num_blocks + 1, page_bytes), dtype uint8.
        page_bytes: bytes of one block in all layers.
        num_blocks: blocks that can be handed out: the null block is not counted.
        generation: shape (num_blocks + 1,); goes up each time a block is given back.
        stale: shape (num_blocks + 1,); whether a block still holds what its last owner wrote.
        owner: shape (num_blocks + 1,), values of ``Owner``.
    """

    def __init__(
        self,
        group: CacheGroup,
        num_blocks: int,
        page_bytes: int,
        device: torch.device,
    ) -> None:
        for name, value in (("num_blocks", num_blocks), ("page_bytes", page_bytes)):
            if value < 1:
                message = f"pool {group.name}: {name} = {value}: 1 or more is allowed"
                raise ValueError(message)
        self.group, self.num_blocks, self.page_bytes = group, num_blocks, page_bytes
        self.storage = torch.zeros((num_blocks + 1, page_bytes), dtype=torch.uint8, device=device)
        self.generation = np.zeros(num_blocks + 1, np.int64)
        self.stale = np.zeros(num_blocks + 1, np.bool_)
        self.owner = np.zeros(num_blocks + 1, np.uint8)
        self._stack = np.zeros(num_blocks, np.int64)
        self._marked = np.zeros(num_blocks + 1, np.bool_)  # scratch: all false between calls
        # The same arrays, for few blocks.
        self._owners, self._stales = self.owner.data, self.stale.data
        self._generations = self.generation.data
        self._free = 0
        self._refill()

    def _refill(self) -> None:
        self._stack[:] = np.arange(self.num_blocks, 0, -1)
        self._free = self.num_blocks
        self.owner[:] = FREE
        self.owner[0] = NULL

    @property
    def free(self) -> int:
        """How many blocks nobody has."""
        return self._free

    def take(self, count: int, owner: Owner) -> Blocks:
        """Hand out ``count`` free blocks to ``owner``; they may be stale.

        Returns:
            Shape (count,).

        Raises:
            ValueError: the count is negative or more than are free; nothing is handed out.
        """
        if not 0 <= count <= self._free:
            message = f"pool {self.group.name}: take {count} of {self._free} free blocks"
            raise ValueError(message)
        if not count:
            return NO_BLOCKS
        left = self._free - count
        blocks = self._stack[left : self._free][::-1].copy()
        self._free = left
        if count <= FEW:
            owners = self._owners
            for block in blocks.tolist():
                owners[block] = owner
        else:
            self.owner[blocks] = owner
        return blocks

    def give(self, blocks: Blocks, owner: Owner) -> None:
        """Take back blocks from ``owner``: each is of a new generation, and stale.

        Raises:
            ValueError: one is not this owner's; nothing is taken back.
        """
        if not blocks.size:
            return
        self._require_owner(blocks, owner)
        if blocks.size <= FEW:
            owners, generations, stales = self._owners, self._generations, self._stales
            for block in blocks.tolist():
                owners[block] = FREE
                generations[block] += 1
                stales[block] = True
        else:
            self.owner[blocks] = FREE
            self.generation[blocks] += 1
            self.stale[blocks] = True
        free = self._free + blocks.size
        self._stack[self._free : free] = blocks[::-1]
        self._free = free

    def hand_over(self, blocks: Blocks, owner: Owner, to: Owner) -> None:
        """Hand blocks from one owner to another; what is in them stays.

        Raises:
            ValueError: one is not this owner's; nothing is handed over.
        """
        self._require_owner(blocks, owner)
        self.owner[blocks] = to

    def _require_owner(self, blocks: Blocks, owner: Owner) -> None:
        if blocks.size <= FEW:
            owners = self._owners
            for block in blocks.tolist():
                if owners[block] != owner:
                    break
            else:
                return
        if self.owner[blocks].tobytes().strip(_NOTED[owner]):  # the fastest of several ways
            wrong = blocks[self.owner[blocks] != owner]
            has = Owner(int(self.owner[wrong[0]]))
            message = f"pool {self.group.name}: block {wrong[0]} is {has.name}, not {owner.name}"
            raise ValueError(message)

    def without(self, blocks: Blocks, chosen: Blocks) -> Blocks | None:
        """Return blocks without the chosen ones, which are among them, each once; else nothing."""
        if blocks.size <= FEW:
            some = chosen.tolist()
            left = [block for block in blocks.tolist() if block not in some]
            found = len(left) == blocks.size - chosen.size
            return np.array(left, np.int64) if found else None
        marked = self._marked
        marked[blocks] = True
        among = b"\0" not in marked[chosen].tobytes()
        marked[chosen] = False
        rest = blocks[marked[blocks]]
        marked[blocks] = False
        return rest if among and rest.size == blocks.size - chosen.size else None

    def clean(self, blocks: Blocks) -> None:
        """Zero those blocks that are stale: whoever writes them next need not fill them."""
        stale = blocks[self.stale[blocks]]
        if stale.size:
            self.storage[self.index(stale)] = 0
            self.stale[stale] = False

    def overwritten(self, blocks: Blocks) -> None:
        """Note that every byte of these blocks has been written by their owner."""
        if blocks.size <= FEW:
            stales = self._stales
            for block in blocks.tolist():
                stales[block] = False
        else:
            self.stale[blocks] = False

    def spoil(self, blocks: Blocks) -> None:
        """Note that what is in these blocks is of no use: a transfer into them failed."""
        self.stale[blocks] = True

    def index(self, blocks: Blocks) -> torch.Tensor:
        """Return block ids as torch takes them, shape (n,), dtype int64, on the pool's device."""
        return torch.from_numpy(blocks).to(self.storage.device)

    def read(self, blocks: Blocks) -> torch.Tensor:
        """Return a copy of the pages of some blocks.

        Returns:
            Shape (n, page_bytes), dtype uint8.

        Raises:
            Refused: a block still holds what its last owner wrote (I-2).
        """
        stale = blocks[self.stale[blocks]]
        if stale.size:
            given = {"group": self.group.name, "block": int(stale[0])}
            raise Refused("I-2", "read", "overwritten", given)
        return self.storage[self.index(blocks)]

    def write(self, blocks: Blocks, pages: torch.Tensor) -> None:
        """Write whole pages.

        Args:
            blocks: shape (n,).
            pages: shape (n, page_bytes), dtype uint8, on the pool's device.

        Raises:
            ValueError: the pages are of another shape, type or device; nothing is written.
        """
        expected = (blocks.size, self.page_bytes), torch.uint8, self.storage.device
        if (tuple(pages.shape), pages.dtype, pages.device) != expected:
            shown = tuple(pages.shape), pages.dtype, pages.device
            message = f"pool {self.group.name}: pages are {shown}: {expected} is allowed"
            raise ValueError(message)
        self.storage[self.index(blocks)] = pages
        self.stale[blocks] = False

    def addresses(self, blocks: Blocks) -> NDArray[np.int64]:
        """Return where each block starts, shape (n,): what a kernel or a graph is given."""
        return self.storage.data_ptr() + blocks * self.page_bytes

    def null_is_clean(self) -> bool:
        """Say whether the null block is zero; this reads the device."""
        return not bool(self.storage[0].any())

    def scrub_null(self) -> None:
        """Zero the null block."""
        self.storage[0] = 0

    def reset(self) -> None:
        """Forget every owner, as a new process does: all blocks are free, zero and renewed."""
        self.storage.zero_()
        self.generation += 1
        self.stale[:] = False
        self._refill()

    def check(self, owned: Mapping[Owner, Iterable[Blocks]]) -> None:
        """Check that every block has exactly one owner, counted from the owners themselves.

        Args:
            owned: what each owner says it has; what is free, the pool knows.

        Raises:
            AssertionError: a block has two owners or none, or is not where its owner is noted.
        """
        claims = {owner: list(blocks) for owner, blocks in owned.items()}
        claims[FREE] = [self._stack[: self._free]]
        claims[NULL] = [np.zeros(1, np.int64)]
        times = np.zeros(self.num_blocks + 1, np.int64)
        for owner, pieces in claims.items():
            for blocks in pieces:
                np.add.at(times, blocks, 1)
                if not (self.owner[blocks] == owner).all():
                    message = f"pool {self.group.name}: a block of {owner.name} is noted elsewhere"
                    raise AssertionError(message)
        wrong = np.flatnonzero(times != 1)
        if wrong.size:
            block = int(wrong[0])
            message = f"pool {self.group.name}: block {block} has {times[block]} owners (I-2)"
            raise AssertionError(message)
