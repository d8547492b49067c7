"""The worker: it moves what recoveries and prefetches owe, on threads, within a budget.

It moves bytes that are there. What has to be computed, an index, a window, a tail, is made by the
engine, between ``make`` and ``made``; whoever of both comes first to a cell has it.
Source: seed 000 §6; domain §1.7, §1.8; design §8.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, Node
from fivestate.impl.recovery.disk import DiskCopies
from fivestate.impl.recovery.moves import Offset, in_place
from fivestate.impl.recovery.schedule import Schedule
from fivestate.impl.requests import Request
from fivestate.impl.tiers import Budget, Kind, Stage, Transfer
from fivestate.impl.tiers.errors import ClosedError
from fivestate.impl.tiers.transfers import nothing
from fivestate.spec.vocabulary import CacheState, Device

LOOK_AGAIN_SECONDS = 0.02
"""After so long, who waits looks whether what was postponed may begin: others load as well."""


class Worker(Schedule):
    """Carries out what is owed to the prefixes of one allocator (异步恢复).

    Loads go before stores. What was begun cannot be called back: if its recovery is given up, it
    lands later, and until then its blocks are nobody's. Any thread may call any method, but
    ``close`` is not for callbacks; it comes before ``crash``, which forgets what still flies.

    Args:
        allocator: whose.
        budget: what transfers may take together; a frame of it is one cell.
        offset: where loads put pages that they cannot put in place.
        before: called on a transfer's thread before its work: where tests delay and fail.
        clock: seconds, for the bandwidth.
    """

    def __init__(
        self,
        allocator: Allocator,
        *,
        budget: Budget | None = None,
        offset: Offset = in_place,
        before: Callable[[Transfer], None] = nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(allocator, budget or Budget(), offset, before, clock)

    def recover(self, node: Node) -> None:
        """Begin to move what a recovery of ``node`` owes, which somebody has been admitted to.

        A second time it looks again, such as after something was computed.

        Raises:
            ClosedError: the worker is closed.
        """
        with self._changed:
            self._require_open()
            owed = {cell for cell in self.allocator.claims(node) if self._owed(cell)}
            if owed:
                self._wanted[node] = owed
            for cell in owed:
                self._plan(cell)
            if not owed:
                self._complete(node)

    def prefetch(self, node: Node) -> None:
        """Warm a known prefix up out of what is left over (预热).

        It ends by itself: when all is there, or when nothing is left that could be moved; what has
        come stays, to be used or evicted.

        Raises:
            Refused: its blocks are not beyond the reserve, somebody wants it already, or nothing
                of it is missing (A-61).
            ClosedError: the worker is closed.
        """
        with self._changed:
            self._require_open()
            self.allocator.prefetch(node)
            self.recover(node)

    def abort(self, request: Request) -> None:
        """Let a recovering request go away, and call back what nobody wants any more.

        Raises:
            Refused: it does not recover.
        """
        with self._changed:
            self.allocator.abort_recovery(request, request.target)
            self.call_back()

    def abort_prefetch(self, node: Node) -> None:
        """Give up a prefetch, and call back what nobody wants any more.

        Raises:
            Refused: it is not being prefetched.
        """
        with self._changed:
            self.allocator.abort_prefetch(node)
            self.call_back()

    def call_back(self) -> None:
        """Call back every load that nobody wants any more; what has begun lands later.

        Who aborts a recovery in another way, as a lease that is released does, calls this behind
        it, or queued loads keep their places until it is their turn, and then do nothing.
        """
        with self._changed:
            for cell, (move, transfer) in list(self._busy.items()):
                unwanted = move.kind is Kind.LOAD and not self.allocator.recovering(cell.node)
                if unwanted and self._transfers.abort(transfer) is Stage.CALLED_BACK:
                    self._settled(move, transfer)
            for node in list(self._wanted):
                if not self.allocator.recovering(node):
                    del self._wanted[node]
            self._changed.notify_all()

    def store(self, node: Node, state: CacheState) -> None:
        """Begin to keep a copy of a cell off the device, down to the disk where there is one.

        Nothing happens if it cannot be stored now, or is already.

        Raises:
            ClosedError: the worker is closed.
        """
        with self._changed:
            self._require_open()
            cell = node.cells.get(state)
            if cell is not None:
                self._keep(cell)

    def persist(self) -> None:
        """Begin to keep all of the storable cells of known prefixes off the device.

        Raises:
            ClosedError: the worker is closed.
        """
        with self._changed:
            self._require_open()
            for cell in self.allocator.cells():
                if cell.state in self.allocator.settings.storable:
                    self._keep(cell)

    def wait(self, node: Node, timeout_seconds: float | None = None) -> bool:
        """Wait until nothing is left to be moved for ``node``; say whether it came to that.

        Then the prefix is complete, or something of it has to be computed, or it is ``lost``.
        """
        return self._wait(lambda: node not in self._wanted, timeout_seconds)

    def lost(self, node: Node) -> bool:
        """Say whether an admitted recovery of ``node`` cannot end: it can only be aborted.

        Entries that were to be loaded did not check, and what they are computed from was not
        claimed. The prompt has to be asked again.
        """
        with self._changed:
            return any(cell.device is Device.ABSENT for cell in self.allocator.claims(node))

    def idle(self, timeout_seconds: float | None = None) -> bool:
        """Wait until nothing at all is left to be moved; say whether it came to that."""
        return self._wait(lambda: not (self._busy or self._wanted), timeout_seconds)

    def in_doubt(self) -> frozenset[Cell]:
        """Return the cells whose transfers have begun, were given up and have not landed."""
        return frozenset(cell for cell in self._transfers.in_doubt() if isinstance(cell, Cell))

    def close(self) -> None:
        """Call back what has not begun, let the rest land, and end the threads.

        What was prefetched is given up; who recovers keeps its blocks, and can only be aborted.
        """
        with self._changed:
            self._closed = True
        self._transfers.close()
        with self._changed:
            for move, transfer in list(self._busy.values()):
                self._settled(move, transfer)
            for node in list(self._wanted):
                self._complete(node)
        disk = self.allocator.settings.disk
        if isinstance(disk, DiskCopies):
            disk.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _wait(self, over: Callable[[], bool], timeout_seconds: float | None) -> bool:
        end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        with self._changed:
            while not over():
                if end is not None and time.monotonic() >= end:
                    return False
                self._changed.wait(LOOK_AGAIN_SECONDS)
                self._again()
            return True

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the worker")
