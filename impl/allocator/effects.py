"""Effects that several actions share: each is written once, and each moves whole cells."""

from __future__ import annotations

from collections.abc import Sequence

from fivestate.impl.allocator.base import Doubt
from fivestate.impl.allocator.derived import Derived
from fivestate.impl.chain import Cell, Copied, CopyKey, Node
from fivestate.impl.pools import CELL, DOOMED, PRIVATE
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import COMPRESSED, CacheState, Device, Phase


class Effects(Derived):
    """What changes hands, and what is noted when it does."""

    def _stop_waiting(self, request: Request) -> None:
        """The request leaves the queue, and its verdict goes with it."""
        del self._queue[request]

    def _blank_request(self, request: Request) -> None:
        request.phase, request.want = Phase.IDLE, None
        request.slid = request.copied = request.grown = False

    def _claim_private(self, request: Request) -> None:
        """One request more gets its private blocks of every group, and a slot."""
        request.private = {
            group: self.pools[group].take(count, PRIVATE)
            for group, count in request.private_demand.items()
        }
        self._using[request] = None

    def _return_private(self, request: Request) -> None:
        for group, blocks in request.private.items():
            self.pools[group].give(blocks, PRIVATE)
        request.private = {}
        del self._using[request]

    def _pin(self, request: Request, node: Node) -> None:
        """The request's lease pins all that a resume at the end of ``node`` requires."""
        request.held = self.need(node)
        for cell in request.held:
            cell.readers += 1

    def _unpin(self, request: Request, state: CacheState) -> None:
        """The request lets go of the cells of a state."""
        held = request.held
        request.held = tuple([cell for cell in held if cell.state is not state])
        self._let_go([cell for cell in held if cell.state is state])

    def _let_go(self, cells: Sequence[Cell]) -> None:
        """A lease lets go of cells: what is at the end of a prefix will be evicted first."""
        orders = self._order
        for cell in reversed(cells):
            cell.readers -= 1
            if cell.device is Device.READY:
                order = orders[cell.state]
                order[cell] = None
                order.move_to_end(cell)

    def _leave(self, request: Request) -> None:
        """The request ends: its lease and its private blocks are given back."""
        self._let_go(request.held)
        request.held = ()
        self._return_private(request)
        self._blank_request(request)

    def _claim_missing(self, node: Node, interest: Request | Node) -> None:
        """Claim every missing cell of a recovery; the work belongs to the nodes it is part of."""
        for cell in self.claims(node):
            if cell.device is Device.ABSENT:
                cell.blocks = {
                    group: self.pools[group].take(count, CELL)
                    for group, count in cell.sizes.items()
                }
                cell.device = Device.RESERVED
                self._reserved.add(cell)
        for step in node.path():
            step.recoverers.add(interest)

    def _arrive_in_cell(self, cell: Cell, layout: int, offset_bytes: int = 0) -> None:
        """The cell becomes complete.

        Entries that arrive under an index that is already there make that index stale: its rows
        speak of the entries before.
        """
        cell.device, cell.layout, cell.offset_bytes = Device.READY, layout, offset_bytes
        if cell.state is COMPRESSED:
            cell.node.entries_generation += 1
        for group, blocks in cell.blocks.items():
            self.pools[group].overwritten(blocks)
        self._touch(cell)

    def _touch(self, cell: Cell) -> None:
        """The cell has been of use just now: of its state, it is evicted last."""
        if cell.device is Device.READY:
            order = self._order[cell.state]
            order[cell] = None
            order.move_to_end(cell)

    def _take_frame(self, cell: Cell) -> None:
        """Take the blocks of a cell; the verdicts of who waits for its node stand no longer."""
        if cell.state is COMPRESSED and not self.kept(cell):
            cell.node.known = False
        cell.node.losses += 1
        self._empty(cell)

    def _empty(self, cell: Cell) -> None:
        """Free the blocks of a cell."""
        for group, blocks in cell.blocks.items():
            self.pools[group].give(blocks, CELL)
        self._absent(cell)

    def _withhold(self, cell: Cell) -> Doubt:
        """Withhold the blocks of a cell that a transfer may still touch."""
        for group, blocks in cell.blocks.items():
            self.pools[group].hand_over(blocks, CELL, DOOMED)
        doubt = Doubt(cell.state, cell.blocks)
        self.doubts[cell.state].append(doubt)
        self._absent(cell)
        return doubt

    def _absent(self, cell: Cell) -> None:
        cell.device, cell.blocks = Device.ABSENT, {}
        cell.layout = cell.offset_bytes = cell.generation = 0
        self._order[cell.state].pop(cell, None)
        self._loading.discard(cell)
        self._reserved.discard(cell)

    def _new_copy(self, cell: Cell) -> Copied:
        self._serial += 1
        node = cell.node
        return Copied(CopyKey(node.digests[-1], cell.state, self._serial), cell.layout)

    def _set_copy(self, cell: Cell, copied: Copied) -> None:
        """The cell has a copy in the tier next to the device, or is getting one."""
        cell.copy = copied
        self._copied[cell.state][cell] = None
        for group, count in cell.sizes.items():
            self._largest[group] = max(self._largest.get(group, 0), count)

    def _arrived(self, copied: Copied) -> None:
        """The transfer of a copy has ended well."""
        copied.complete = True
        self._copying.discard(copied)

    def _drop_copy(self, cell: Cell) -> None:
        if cell.copy is not None:
            self._copying.discard(cell.copy)
            self.settings.host.drop(cell.copy.key)
            cell.copy = None
            del self._copied[cell.state][cell]

    def _drop_disk(self, cell: Cell) -> None:
        if cell.disk is not None:
            self._copying.discard(cell.disk)
            if self.settings.disk is not None:
                self.settings.disk.drop(cell.disk.key)
            cell.disk = None

    def _forget_entries(self, cell: Cell) -> None:
        """The last of a node's entries is gone: it is not known now, and who waits looks again."""
        if cell.state is CacheState.COMPRESSED:
            cell.node.known = False
            cell.node.losses += 1
