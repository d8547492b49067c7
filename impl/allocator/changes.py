"""What changes under everybody: weights, kernels, and the process itself."""

from __future__ import annotations

from fivestate.impl.allocator.base import action
from fivestate.impl.allocator.graphs import Graphs
from fivestate.impl.chain import Cell
from fivestate.spec.vocabulary import COMPRESSED, Copy, Device


class Changes(Graphs):
    """Epochs end, and with them what was made in them."""

    def quiescent(self) -> bool:
        """Say whether nobody uses or recovers a prefix, and nothing is being written."""
        flying = (Device.WRITING, Device.LOADING)
        return not self._using and not any(
            node.prefetching or any(cell.device in flying for cell in node.cells.values())
            for node in self.nodes()
        )

    def transfers_ended(self) -> bool:
        """Say whether no store is under way."""
        return not any(
            Copy.STORING in (self.copy_of(cell), self.disk_of(cell)) for cell in self.cells()
        )

    def _require_still(self, action: str) -> None:
        self._require(action, "quiescent", self.quiescent(), in_use=len(self._using))
        self._require(action, "transfers_ended", self.transfers_ended())

    def _drop_graphs(self) -> None:
        for node in self.nodes():
            self._drop_graph(node)

    @action("A-81")
    def change_weights(self) -> None:
        """Change the weights: nothing computed before is of any use, on any tier."""
        self._require_still("change_weights")
        self._everywhere += 1
        self.weights += 1
        self._drop_graphs()
        for cell in self.cells():
            self._empty(cell)
            self._drop_copy(cell)
            self._drop_disk(cell)
            cell.node.known = False

    @action("A-82")
    def change_kernels(self) -> None:
        """Change the kernels: what there is, on every tier, is in the old layout (内核ABI)."""
        self._require_still("change_kernels")
        self._everywhere += 1
        self.layout += 1
        self._drop_graphs()

    @action("A-83")
    def crash(self) -> None:
        """The process crashes and starts again: what was complete off the device is all there is.

        It may do so at any time. Host memory goes with the process, if there is a disk behind it.
        A copy that was being stored counts as none, and a copy whose entries are gone is of no use.
        """
        for request in (*self._queue, *self._using):
            self._blank_request(request)
            request.private, request.held = {}, ()
        self._queue.clear()
        self._using.clear()
        self._loading.clear()
        self._everywhere += 1
        self.null_dirty = False
        for pool in self.pools.values():
            pool.reset()
        for state in self.groups_of:
            self.doubts[state].clear()
            self._order[state].clear()
        self._drop_graphs()
        for node in self.nodes():
            entries = node.cells.get(COMPRESSED)
            node.known = entries is not None and self._survives(entries)
            node.prefetching = False
            node.recoverers.clear()
            for cell in node.cells.values():
                self._restart(cell)

    def _restart(self, cell: Cell) -> None:
        cell.readers = 0
        self._absent(cell)
        left = cell.node.known and self._survives(cell)
        if not left or self.settings.disk is not None:
            self._drop_copy(cell)
        if not left:
            self._drop_disk(cell)

    def _survives(self, cell: Cell) -> bool:
        """Say whether the cell has a complete copy on the tier that outlives the process."""
        return self.stored(cell) if self.settings.disk is None else self.archived(cell)
