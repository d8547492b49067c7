"""Moves: one transfer of one cell each, from its begin in the allocator to its good or bad end.

``start`` and ``settle`` are called with the allocator's lock held, ``carry`` without it, on a
thread of the transfers. A recovery may be given up in between: then the blocks are withheld, and
``settle`` is what lets them land. That it was given up is seen by the blocks themselves: a cell
that was claimed anew has others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, CopyKey
from fivestate.impl.recovery.copies import Copies, pages_of, vouched
from fivestate.impl.refusals import Refused
from fivestate.impl.tiers import Kind, Outcome
from fivestate.spec.vocabulary import Device

Offset = Callable[[Cell], int]
"""By how many bytes each page of a cell ends up behind where it belongs, when it is loaded."""


def in_place(_cell: Cell) -> int:
    """Every page ends up where it belongs."""
    return 0


class Move(ABC):
    """One transfer.

    Attributes:
        kind: whether somebody waits for it.
        allocator: whose cell it moves.
        cell: the cell.
        begun: whether the allocator knows of it.
        refused_at: how many others had ended when it could not begin.
    """

    kind: ClassVar[Kind] = Kind.LOAD

    def __init__(self, allocator: Allocator, cell: Cell) -> None:
        self.allocator, self.cell = allocator, cell
        self.begun = False
        self.refused_at = 0
        self._blocks = cell.blocks

    @property
    def size_bytes(self) -> int:
        """What it moves."""
        pools = self.allocator.pools
        return sum(count * pools[group].page_bytes for group, count in self.cell.sizes.items())

    def start(self) -> bool:
        """Begin, if that is still called for; say whether it was."""
        self.begun = self._begin()
        return self.begun

    @abstractmethod
    def _begin(self) -> bool:
        """Begin in the allocator."""

    @abstractmethod
    def carry(self) -> Outcome:
        """Move the bytes. What it raises counts as BAD."""

    @abstractmethod
    def settle(self, outcome: Outcome) -> None:
        """Tell the allocator how it ended."""

    def _claimed(self) -> bool:
        """Say whether the cell waits with the blocks that it had when this was planned."""
        return self.cell.blocks is self._blocks and self.cell.device is Device.RESERVED

    def _land(self) -> None:
        """Let blocks that were withheld for this transfer come back."""
        self.allocator.release_withheld(self.cell.state, self._blocks)


class Load(Move):
    """From the tier next to the device into the blocks that were claimed (回迁)."""

    def __init__(self, allocator: Allocator, cell: Cell, offset: Offset) -> None:
        super().__init__(allocator, cell)
        self._key: CopyKey | None = None
        self._offset, self._off_bytes = offset, 0

    def _begin(self) -> bool:
        if not self._claimed():
            return False
        try:
            self._key = self.allocator.load_begin(self.cell.node, self.cell.state)
        except Refused:
            return False  # by now it has no copy, or others fill the budget
        return True

    def carry(self) -> Outcome:
        """Read the copy, checked, and write it to the blocks."""
        assert self._key is not None  # noqa: S101 -- it has begun
        with vouched(self.allocator.settings.host, self._key) as found:
            pages = pages_of(found)
            self._off_bytes = self._offset(self.cell)
            for group, blocks in self._blocks.items():
                pool = self.allocator.pools[group]
                page = pages[group].to(pool.storage.device)
                pool.write(blocks, page.roll(self._off_bytes, 1) if self._off_bytes else page)
        return Outcome.MISALIGNED if self._off_bytes else Outcome.GOOD

    def _theirs(self) -> bool:
        """Say whether the cell still waits for this load, and not for a later one."""
        return self.cell.blocks is self._blocks and self.cell.device is Device.LOADING

    def settle(self, outcome: Outcome) -> None:
        """The load ends well, or misaligned, or bad; or its blocks are nobody's by now."""
        allocator, node, state = self.allocator, self.cell.node, self.cell.state
        if not self._theirs():
            self._land()
        elif outcome is Outcome.GOOD:
            allocator.load_good(node, state)
        elif outcome is Outcome.MISALIGNED:
            allocator.load_misaligned(node, state, offset_bytes=self._off_bytes)
        else:
            allocator.load_bad(node, state)


class Fetch(Move):
    """From disk into host memory, for a cell that waits for it (升级)."""

    def __init__(self, allocator: Allocator, cell: Cell) -> None:
        super().__init__(allocator, cell)
        self._key: CopyKey | None = None

    def _waits(self) -> bool:
        cell = self.cell
        return self._claimed() and self.allocator.archived(cell) and cell.copy is None

    def _begin(self) -> bool:
        if not self._waits() or self.cell.disk is None or not self._placed():
            return False
        self._key = self.cell.disk.key
        return True

    def _placed(self) -> bool:
        """Say whether host memory has a place for the copy, or one could be made."""
        return self.allocator.relieve_host(self.cell.node, self.cell.state)

    def carry(self) -> Outcome:
        """Read the object, checked, and put it into host memory, with the digests it came with."""
        host, disk = self.allocator.settings.host, self.allocator.settings.disk
        assert self._key is not None  # noqa: S101 -- it has begun
        assert disk is not None  # noqa: S101 -- the cell is archived there
        with vouched(disk, self._key) as found:
            if isinstance(host, Copies):
                host.put(self._key, found)
            else:
                host.put(self._key, pages_of(found))
        return Outcome.GOOD

    def settle(self, outcome: Outcome) -> None:
        """The host has the copy now, or there is none; or nobody waits for it any more.

        Where others have taken its place in the meantime, it is as if it had not begun.
        """
        cell, key = self.cell, self._key
        assert key is not None  # noqa: S101 -- it has begun
        waits = self._waits() and cell.disk is not None and cell.disk.key == key
        if waits and outcome is Outcome.BAD:
            self.allocator.fetch_bad(cell.node, cell.state)
        elif waits and self._placed():
            self.allocator.fetch(cell.node, cell.state)
        else:
            self.begun = not waits
            if cell.copy is None or cell.copy.key != key:
                self.allocator.settings.host.drop(key)
            if outcome is Outcome.BAD and cell.disk is not None and cell.disk.key == key:
                with suppress(Refused):  # what does not check is no copy, also if nobody waits
                    self.allocator.erase(cell.node, cell.state)


class Repack(Move):
    """Within the device, into the place and layout that the kernels want (重排)."""

    def _begin(self) -> bool:
        return self.allocator.recovering(self.cell.node)

    def carry(self) -> Outcome:
        """Repack, if that is still called for."""
        try:
            self.allocator.repack(self.cell.node, self.cell.state)
        except Refused:
            return Outcome.BAD
        return Outcome.GOOD

    def settle(self, outcome: Outcome) -> None:
        """Nothing is left to tell: the allocator has done it."""
