"""The tiers off the device: cells are stored, loaded back, dropped, moved to disk and back.

The allocator says what is where and what may be moved; the bytes are moved by whoever calls, with
the key that an operation returns: between ``_begin`` and ``_good`` or ``_bad`` nobody else touches
them. The index has no copy: fetched whole it could be of another generation.
"""

from __future__ import annotations

from fivestate.impl.allocator.base import action
from fivestate.impl.allocator.effects import Effects
from fivestate.impl.chain import Cell, Copied, CopyKey, Node
from fivestate.spec.vocabulary import COMPRESSED, CacheState, Copy, Device


class Tiers(Effects):
    """Copies of cells, in the tier next to the device and on disk."""

    @action("A-41", "state")
    def load_begin(self, node: Node, state: CacheState) -> CopyKey:
        """Start bringing a copy back into the blocks that were claimed for it (回迁).

        Returns:
            What the tier next to the device keeps it under.
        """
        cell = self._cell("load_begin", node, state)
        reserved = cell.device is Device.RESERVED
        self._require("load_begin", "reserved", reserved, device=cell.device)
        self._require("load_begin", "stored", self.stored(cell))
        self._require_budget("load_begin")
        assert cell.copy is not None  # noqa: S101 -- it is stored
        cell.device = Device.LOADING
        self._reserved.discard(cell)
        self._loading.add(cell)
        return cell.copy.key

    def _require_budget(self, action: str) -> None:
        moving = self.transfers_under_way
        in_budget = moving < self.settings.transfers_at_once
        self._require(action, "in_budget", in_budget, transfers=moving)

    def _loading_cell(self, action: str, node: Node, state: CacheState) -> Cell:
        cell = self._cell(action, node, state)
        loading = cell.device is Device.LOADING
        self._require(action, "loading", loading, device=cell.device)
        return cell

    @action("A-42", "state")
    def load_good(self, node: Node, state: CacheState) -> None:
        """The load ends, and what came checks."""
        cell = self._loading_cell("load_good", node, state)
        assert cell.copy is not None  # noqa: S101 -- no copy is dropped under a load
        self._loading.discard(cell)
        self._arrive_in_cell(cell, cell.copy.layout)

    @action("A-43", "state")
    def load_misaligned(self, node: Node, state: CacheState, *, offset_bytes: int = 1) -> None:
        """The load ends, and the bytes lie where no kernel looks for them (未对齐).

        Args:
            node: whose cell it is.
            state: its state.
            offset_bytes: how far each page is rolled forward from where it should be.

        Raises:
            ValueError: the offset is not a positive number of bytes.
        """
        if offset_bytes < 1:
            message = f"load_misaligned: offset_bytes = {offset_bytes}: 1 or more is allowed"
            raise ValueError(message)
        cell = self._loading_cell("load_misaligned", node, state)
        assert cell.copy is not None  # noqa: S101 -- no copy is dropped under a load
        self._loading.discard(cell)
        self._arrive_in_cell(cell, cell.copy.layout, offset_bytes)

    @action("A-44", "state")
    def load_bad(self, node: Node, state: CacheState) -> None:
        """The load ends, and what came does not check: every copy is dropped, the blocks kept.

        A copy that stayed, on whatever tier, would be loaded, and fail, for ever. Without its
        entries the prefix is no longer known.
        """
        cell = self._loading_cell("load_bad", node, state)
        self._loading.discard(cell)
        cell.device = Device.RESERVED
        self._reserved.add(cell)
        for group, blocks in cell.blocks.items():
            self.pools[group].spoil(blocks)
        self._drop_copy(cell)
        self._drop_disk(cell)
        self._forget_entries(cell)

    @action("A-45", "state")
    def store_begin(self, node: Node, state: CacheState) -> CopyKey:
        """Start storing a usable cell of a known prefix, where the tier has room for it (下沉).

        With a disk behind it, the tier keeps one place that it can give up at once, since the disk
        has that copy too.

        Returns:
            What the tier next to the device is to keep it under.
        """
        cell = self._cell("store_begin", node, state)
        self._require("store_begin", "known", node.known, node=node)
        usable = cell.usable(self.layout)
        self._require("store_begin", "usable", usable, device=cell.device)
        self._require("store_begin", "storable", state in self.settings.storable, state=state)
        copy = self.copy_of(cell)
        self._require("store_begin", "none", copy is Copy.NONE, copy=copy)
        self._require("store_begin", "room", self.host_room(cell), state=state)
        spare = self.settings.disk is None or self.archived(cell) or self.host_stays_clean(cell)
        self._require("store_begin", "clean", spare, state=state)
        self._require_budget("store_begin")
        copied = self._new_copy(cell)
        self._set_copy(cell, copied)
        self._copying.add(copied)
        return copied.key

    def _storing_cell(self, action: str, node: Node, state: CacheState) -> Cell:
        cell = self._cell(action, node, state)
        copy = self.copy_of(cell)
        storing = copy is Copy.STORING and cell.device is Device.READY
        self._require(action, "storing", storing, copy=copy, device=cell.device)
        return cell

    @action("A-46", "state")
    def store_good(self, node: Node, state: CacheState) -> None:
        """The store ends well; it counts only if the prefix is still known."""
        cell = self._storing_cell("store_good", node, state)
        assert cell.copy is not None  # noqa: S101 -- it is being stored
        if node.known:
            self._arrived(cell.copy)
        else:
            self._drop_copy(cell)

    @action("A-47", "state")
    def store_bad(self, node: Node, state: CacheState) -> None:
        """The store fails: there is no copy."""
        self._drop_copy(self._storing_cell("store_bad", node, state))

    @staticmethod
    def unclaimed(cell: Cell) -> bool:
        """Say whether no load reads the cell's copy, or is about to."""
        return cell.device not in (Device.RESERVED, Device.LOADING)

    def _alone(self, cell: Cell) -> bool:
        return cell.device is Device.ABSENT and self.dependants_gone(cell)

    @action("A-48", "state")
    def drop(self, node: Node, state: CacheState) -> None:
        """Drop a copy that no load reads or is about to; the last of compressed KV goes last."""
        cell = self._cell("drop", node, state)
        elsewhere = cell.device is Device.READY or self.archived(cell)
        self._require("drop", "stored", self.stored(cell))
        self._require("drop", "unclaimed", self.unclaimed(cell), device=cell.device)
        moving = self.disk_of(cell) is Copy.STORING
        self._require("drop", "not_moving", not moving)
        last = state is not COMPRESSED or elsewhere or self._alone(cell)
        self._require("drop", "last", last)
        self._drop_copy(cell)
        if not elsewhere:
            self._forget_entries(cell)

    @action("A-51", "state")
    def demote_begin(self, node: Node, state: CacheState) -> CopyKey:
        """Start writing a host copy to disk (降级).

        Returns:
            What both tiers keep it under.
        """
        cell = self._cell("demote_begin", node, state)
        copy, disk = self.copy_of(cell), self.disk_of(cell)
        self._require("demote_begin", "stored", copy is Copy.STORED, copy=copy)
        self._require("demote_begin", "none", disk is Copy.NONE, disk=disk)
        self._require_budget("demote_begin")
        assert cell.copy is not None  # noqa: S101 -- it is stored
        cell.disk = Copied(cell.copy.key, cell.copy.layout)
        self._copying.add(cell.disk)
        return cell.copy.key

    def _moving_cell(self, action: str, node: Node, state: CacheState) -> Cell:
        cell = self._cell(action, node, state)
        disk = self.disk_of(cell)
        self._require(action, "moving", disk is Copy.STORING, disk=disk)
        return cell

    @action("A-52", "state")
    def demote_good(self, node: Node, state: CacheState) -> None:
        """The disk copy is complete and synced."""
        cell = self._moving_cell("demote_good", node, state)
        assert cell.disk is not None  # noqa: S101 -- it is being written
        self._arrived(cell.disk)

    @action("A-53", "state")
    def demote_bad(self, node: Node, state: CacheState) -> None:
        """The disk copy fails: there is none."""
        self._drop_disk(self._moving_cell("demote_bad", node, state))

    def _fetched_cell(self, action: str, node: Node, state: CacheState) -> Cell:
        cell = self._cell(action, node, state)
        reserved = cell.device is Device.RESERVED
        self._require(action, "reserved", reserved, device=cell.device)
        self._require(action, "archived", self.archived(cell))
        copy = self.copy_of(cell)
        self._require(action, "none", copy is Copy.NONE, copy=copy)
        return cell

    @action("A-54", "state")
    def fetch(self, node: Node, state: CacheState) -> CopyKey:
        """Read a disk copy into host memory, for a cell that waits for it, and verify it (升级).

        Returns:
            What both tiers keep it under; the host tier has it by now, or gets it from the caller.
        """
        cell = self._fetched_cell("fetch", node, state)
        self._require("fetch", "room", self.host_room(cell), state=state)
        assert cell.disk is not None  # noqa: S101 -- it is archived
        self._set_copy(cell, Copied(cell.disk.key, cell.disk.layout, complete=True))
        return cell.disk.key

    @action("A-55", "state")
    def fetch_bad(self, node: Node, state: CacheState) -> None:
        """A disk copy does not check when it is read: it is dropped."""
        cell = self._fetched_cell("fetch_bad", node, state)
        self._drop_disk(cell)
        self._forget_entries(cell)

    @action("A-56", "state")
    def erase(self, node: Node, state: CacheState) -> None:
        """Erase a disk copy; the last of compressed KV goes last.

        What host memory has of it can then no longer be given up at once, so another place there
        has to be one that can.
        """
        cell = self._cell("erase", node, state)
        elsewhere = cell.device is Device.READY or self.stored(cell)
        self._require("erase", "archived", self.archived(cell))
        last = state is not COMPRESSED or elsewhere or self._alone(cell)
        self._require("erase", "last", last)
        spare = cell.copy is None or self.host_stays_clean(cell)
        self._require("erase", "clean", spare, state=state)
        self._drop_disk(cell)
        if not elsewhere:
            self._forget_entries(cell)
