"""Schedule: which move of which cell is next, and what follows when one has landed.

All of it is under the allocator's lock, so that a plan and the state that it was made from are of
one moment.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import Condition

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, Node
from fivestate.impl.recovery.moves import Fetch, Load, Move, Offset, Repack
from fivestate.impl.recovery.stores import Demote, Store
from fivestate.impl.tiers import Budget, Kind, Outcome, StoreError, Transfer, Transfers
from fivestate.impl.tiers.transfers import QueueFullError
from fivestate.spec.vocabulary import Copy, Device, Fit

LOG = logging.getLogger("fivestate.recovery")

EXPECTED = (StoreError, OSError, KeyError, ValueError)
"""What a tier may answer; whatever else a transfer raises is a fault of the program."""


class Schedule:
    """The moves of one allocator, one of each cell at a time.

    Attributes:
        allocator: whose.
        counts: how many moves of each kind ended how, such as ``"Load good"``.
        moved_bytes: of the moves that ended well, by kind.
    """

    def __init__(
        self,
        allocator: Allocator,
        budget: Budget,
        offset: Offset,
        before: Callable[[Transfer], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.allocator = allocator
        self.counts: Counter[str] = Counter()
        self.moved_bytes: Counter[str] = Counter()
        self._offset = offset
        self._changed = Condition(allocator.lock)
        self._busy: dict[Cell, tuple[Move, Transfer]] = {}
        self._wanted: dict[Node, set[Cell]] = {}
        self._postponed: dict[Cell, None] = {}
        self._unstored: dict[Cell, None] = {}
        self._closed = False
        self._ended = 0  # moves that had begun
        self._tried: set[Cell] = set()  # that found no room since one of those ended
        self._transfers = Transfers(
            budget, landed=lambda transfer: transfer.done(transfer), before=before, clock=clock
        )

    def _keep(self, cell: Cell) -> None:
        """Queue the next move of a cell on its way down the tiers."""
        if cell in self._busy:
            return
        copy, disk = self.allocator.copy_of(cell), self.allocator.disk_of(cell)
        if copy is Copy.NONE and cell.device is Device.READY:
            self._submit(Store(self.allocator, cell, self._going_down))
        elif copy is Copy.STORED and disk is Copy.NONE and self.allocator.settings.disk:
            self._submit(Demote(self.allocator, cell))

    def _going_down(self, cell: Cell) -> bool:
        """Say whether a cell's copy in host memory is on its way to the disk, begun or not."""
        return cell in self._busy and isinstance(self._busy[cell][0], Demote)

    def _owed(self, cell: Cell) -> bool:
        """Say whether a cell can be brought nearer to use by moving bytes."""
        if cell.device is Device.RESERVED:
            return self.allocator.kept(cell)
        if cell.device is Device.LOADING:
            return cell in self._busy
        unfit = cell.fit(self.allocator.layout) in (Fit.MISALIGNED, Fit.OLD_LAYOUT)
        return unfit and self.allocator.recovering(cell.node)

    def _plan(self, cell: Cell) -> None:
        """Queue the next move of a cell that is owed."""
        if cell in self._busy:
            return
        allocator = self.allocator
        if cell.device is Device.READY:
            self._submit(Repack(allocator, cell))
        elif allocator.stored(cell):
            self._submit(Load(allocator, cell, self._offset))
        else:
            self._submit(Fetch(allocator, cell))

    def _submit(self, move: Move) -> None:
        if self._closed:
            return
        try:
            transfer = self._transfers.submit(
                move.kind,
                partial(self._work, move),
                partial(self._landed, move),
                frames=(move.cell,),
                size_bytes=move.size_bytes,
            )
        except QueueFullError:
            later = self._postponed if move.kind is Kind.LOAD else self._unstored
            later[move.cell] = None
            return
        self._busy[move.cell] = move, transfer

    def _work(self, move: Move) -> Outcome:
        with self._changed:
            if not move.start():
                move.refused_at = self._ended
                return Outcome.BAD
        return move.carry()

    def _landed(self, move: Move, transfer: Transfer) -> None:
        with self._changed:
            self._settled(move, transfer)
        if transfer.error is not None:
            LOG.warning("%s of %r failed: %r", type(move).__name__, move.cell, transfer.error)
            if not isinstance(transfer.error, EXPECTED):
                raise transfer.error  # a fault of ours: `close` raises it

    def _settled(self, move: Move, transfer: Transfer) -> None:
        """Take in that a transfer is over, or never began, and go on with its cell."""
        cell = move.cell
        if self._busy.pop(cell, None) is None:
            return
        outcome = transfer.outcome or Outcome.BAD
        if move.begun:
            move.settle(outcome)
            self._ended += 1
            self._tried.clear()
            name = type(move).__name__
            self.counts[f"{name} {outcome.value}"] += 1
            if outcome is not Outcome.BAD:
                self.moved_bytes[name] += move.size_bytes
        if isinstance(move, Store) and outcome is Outcome.GOOD:
            self._keep(cell)
        if move.begun:
            self._again()
        self._go_on(cell, move)
        if isinstance(move, Store) and move.lacks_room:
            self._unstored[cell] = None
            if move.refused_at == self._ended:
                self._tried.add(cell)
        if not self._busy:
            if self._tried.issuperset(self._unstored):
                self._unstored.clear()  # each was tried, and nothing ends that could make room
            self._keep_rest()
        self._changed.notify_all()

    def _go_on(self, cell: Cell, move: Move | None = None) -> None:
        """Queue what a cell needs next, or see which prefixes need nothing more of it.

        What could not begin is postponed. What cannot be repacked stays as it is: whoever wrote
        the conversion hears of it from the recovery that does not end.
        """
        waiting = [node for node, owed in self._wanted.items() if cell in owed]
        stays = isinstance(move, Repack) and move.begun
        if waiting and not self._closed and self._owed(cell) and not stays:
            if move is not None and not move.begun:
                self._postponed[cell] = None
            else:
                self._plan(cell)
            return
        for node in waiting:
            owed = self._wanted[node]
            owed.discard(cell)
            if not owed:
                self._complete(node)

    def _again(self) -> None:
        """Look again at what was postponed."""
        postponed, self._postponed = self._postponed, {}
        for cell in postponed:
            self._go_on(cell)
        self._keep_rest()

    def _keep_rest(self) -> None:
        """Look again at what found no place on its way down."""
        unstored, self._unstored = self._unstored, {}
        for cell in unstored:
            self._keep(cell)

    def _complete(self, node: Node) -> None:
        """Nothing is left to be moved for a prefix: a prefetch of it ends."""
        self._wanted.pop(node, None)
        if node.prefetching:
            if self.allocator.known(node) and self.allocator.complete(node):
                self.allocator.prefetched(node)
            else:
                self.allocator.abort_prefetch(node)
