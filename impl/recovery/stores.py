"""Stores: the moves that nobody waits for, from the device to host memory and on to disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from fivestate.impl.allocator import Allocator, Pages
from fivestate.impl.chain import Cell, Copied, CopyKey
from fivestate.impl.recovery import room
from fivestate.impl.recovery.chains import Place
from fivestate.impl.recovery.copies import pages_of, vouched
from fivestate.impl.recovery.disk import DiskCopies
from fivestate.impl.recovery.moves import Move
from fivestate.impl.refusals import Refused
from fivestate.impl.tiers import Kind, Outcome, Vouched

LACKING = ("room", "clean", "yields", "in_budget")
"""The guards of a store that open when host memory has a place again."""


class Store(Move):
    """From the device into the tier next to it (下沉).

    Attributes:
        lacks_room: it could not begin, and may once others have ended.
    """

    kind = Kind.STORE

    def __init__(self, allocator: Allocator, cell: Cell, stays: Callable[[Cell], bool]) -> None:
        super().__init__(allocator, cell)
        self._copied: Copied | None = None
        self._stays = stays
        self.lacks_room = False

    def _begin(self) -> bool:
        try:
            room.in_host(self.allocator, self.cell, self._stays)
            self.allocator.store_begin(self.cell.node, self.cell.state)
        except Refused as refused:
            self.lacks_room = refused.guard in LACKING
            return False
        self._blocks, self._copied = self.cell.blocks, self.cell.copy
        return True

    def carry(self) -> Outcome:
        """Read the blocks, which nobody changes while they are stored, and put them."""
        assert self._copied is not None  # noqa: S101 -- it has begun
        allocator, host = self.allocator, self.allocator.settings.host
        pages: Pages = {
            group: allocator.pools[group].read(blocks) for group, blocks in self._blocks.items()
        }
        host.put(self._copied.key, pages)
        return Outcome.GOOD

    def settle(self, outcome: Outcome) -> None:
        """There is a copy now, or none; or the cell was given up in the middle."""
        cell, copied = self.cell, self._copied
        assert copied is not None  # noqa: S101 -- it has begun
        if cell.copy is not copied or cell.blocks is not self._blocks:
            self.allocator.settings.host.drop(copied.key)
            self._land()
        elif outcome is Outcome.GOOD:
            self.allocator.store_good(cell.node, cell.state)
        else:
            self.allocator.store_bad(cell.node, cell.state)


class Demote(Move):
    """From host memory to disk (降级)."""

    kind = Kind.STORE

    def __init__(self, allocator: Allocator, cell: Cell) -> None:
        super().__init__(allocator, cell)
        self._copied: Copied | None = None
        self._place: Place | None = None
        self._unread = False

    def _begin(self) -> bool:
        try:
            self.allocator.demote_begin(self.cell.node, self.cell.state)
        except Refused:
            return False
        self._copied = self.cell.disk
        self._place = self._placed()
        return True

    def _placed(self) -> Place:
        cell, node = self.cell, self.cell.node
        assert cell.disk is not None  # noqa: S101 -- it is being written
        before = node.parent.digests[-1] if node.parent and node.parent.digests else b""
        return Place(
            state=cell.state,
            layout=cell.disk.layout,
            start_tokens=node.start_tokens,
            parent=before,
            digests=tuple(node.digests),
            size_bytes=self.size_bytes,
        )

    def carry(self) -> Outcome:
        """Read the host's copy, checked, and write it durably."""
        disk = self.allocator.settings.disk
        assert self._copied is not None  # noqa: S101 -- it has begun
        assert disk is not None  # noqa: S101 -- it began to write there
        self._unread = True
        with vouched(self.allocator.settings.host, self._copied.key) as found:
            self._unread = False
            if isinstance(disk, DiskCopies):
                return self._write(disk, self._copied.key, found)
            disk.put(self._copied.key, dict(pages_of(found)))
        return Outcome.GOOD

    def _write(self, disk: DiskCopies, key: CopyKey, found: Vouched | Pages) -> Outcome:
        if disk.weights != self.allocator.weights:
            return Outcome.BAD  # nobody has told it of the change
        size_bytes = sum(page.nbytes for page in pages_of(found).values())
        with room.on_disk(self.allocator, disk, key, size_bytes) as fits:
            if not fits:
                return Outcome.BAD
            disk.flush()
            disk.put(key, found, self._place)
        return Outcome.GOOD

    def settle(self, outcome: Outcome) -> None:
        """The disk has a copy now, or none; or the prefix was given up in the middle."""
        cell, copied, disk = self.cell, self._copied, self.allocator.settings.disk
        assert copied is not None  # noqa: S101 -- it has begun
        if cell.disk is not copied:
            if disk is not None:
                disk.drop(copied.key)
        elif outcome is Outcome.GOOD:
            self.allocator.demote_good(cell.node, cell.state)
        else:
            self.allocator.demote_bad(cell.node, cell.state)
            if self._unread:
                self._drop_copy()

    def _drop_copy(self) -> None:
        """The host's copy does not check: it goes, unless a load is about to find that out."""
        with suppress(Refused):
            self.allocator.drop(self.cell.node, self.cell.state)
