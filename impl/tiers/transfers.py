"""Transfers: loads and stores on threads of their own, within a budget, and with a way out.

A transfer that has begun cannot be called back: what is aborted then lands later, and until it has
landed its frames are in doubt and belong to nobody.
Source: domain §1.7, §1.8, §9(5); design §8.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from fivestate.impl.tiers.budget import Bucket, Budget
from fivestate.impl.tiers.errors import ClosedError, StoreError
from fivestate.impl.tiers.moves import Outcome

LOADS_IN_A_ROW = 16
"""Loads that may overtake a store that waits; after so many it has its turn, or it might never."""

_LONGEST_WAIT_SECONDS = 0.05  # the clock may be another one than the threads wait by


class Kind(IntEnum):
    """What a transfer is; the first goes first."""

    LOAD = 0
    """Somebody waits for it."""

    STORE = 1
    """Nobody does."""


class Stage(Enum):
    """Where a transfer is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    IN_DOUBT = "in doubt"
    """Aborted, and not landed yet."""
    CALLED_BACK = "called back"
    """Aborted before it began."""
    LANDED = "landed"


class QueueFullError(StoreError):
    """As many transfers wait as may."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the transfer is not queued: budget.queue = {limit} are waiting")


@dataclass(eq=False)
class Transfer:
    """One transfer; its fields are read, and changed by `Transfers` alone.

    Attributes:
        kind: load or store.
        frames: the frames it writes or reads; they are in use until it has landed.
        size_bytes: how many bytes it moves.
        stage: where it is in its life.
        outcome: how it ended, once it has landed.
        error: what its work raised, if it did; the outcome is BAD then.
    """

    kind: Kind
    frames: tuple[Hashable, ...]
    size_bytes: int
    work: Callable[[], Outcome] = field(repr=False)
    done: Callable[[Transfer], None] = field(repr=False)
    stage: Stage = Stage.QUEUED
    outcome: Outcome | None = None
    error: Exception | None = None


def nothing(_transfer: Transfer) -> None:
    """Do nothing about a transfer."""


class Transfers:
    """Loads and stores on threads of their own.

    A callback runs on a worker's thread, without a lock, so it may call anything here but `close`.

    Args:
        budget: what they may take.
        landed: called with a transfer that had been aborted, once its frames are nobody's.
        before: called on a worker's thread before a transfer's work: where tests delay and fail.
        clock: seconds, for the bandwidth.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        landed: Callable[[Transfer], None] = nothing,
        before: Callable[[Transfer], None] = nothing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self._bucket = Bucket(budget, clock)
        self._landed, self._before = landed, before
        self._queues: dict[Kind, deque[Transfer]] = {kind: deque() for kind in Kind}
        self._under_way: set[Transfer] = set()
        self._frames = 0
        self._in_a_row = 0
        self._open = True
        self._failed: Exception | None = None
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, name=f"transfers-{n}", daemon=True)
            for n in range(budget.workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        kind: Kind,
        work: Callable[[], Outcome],
        done: Callable[[Transfer], None],
        *,
        frames: tuple[Hashable, ...],
        size_bytes: int,
    ) -> Transfer:
        """Queue a transfer.

        Args:
            kind: a load goes before every store that waits.
            work: moves the bytes and says how that went; what it raises counts as BAD.
            done: called once it has landed, if it has not been aborted.
            frames: the frames that it touches.
            size_bytes: how many bytes it moves.

        Raises:
            QueueFullError: as many wait as may.
            ClosedError: there are no transfers any more.
            ValueError: it has no frames, or more than the budget, or less than 0 bytes.
        """
        if not 1 <= len(frames) <= self.budget.frames:
            raise ValueError(
                f"frames: {len(frames)}; 1 to budget.frames = {self.budget.frames} may be"
            )
        if size_bytes < 0:
            raise ValueError(f"size_bytes = {size_bytes}: 0 or more is allowed")
        transfer = Transfer(kind, frames, size_bytes, work, done)
        with self._changed:
            if not self._open:
                raise ClosedError("transfers")
            if sum(map(len, self._queues.values())) >= self.budget.queue:
                raise QueueFullError(self.budget.queue)
            self._queues[kind].append(transfer)
            self._changed.notify_all()
        return transfer

    def abort(self, transfer: Transfer) -> Stage:
        """Give a transfer up and say what that means for its frames.

        Returns:
            CALLED_BACK: it never began and nobody touches them. IN_DOUBT: it may still touch them,
            until ``landed`` is called. LANDED: it was too late, and ``done`` is called.
        """
        with self._changed:
            if transfer.stage is Stage.QUEUED:
                self._queues[transfer.kind].remove(transfer)
                transfer.stage = Stage.CALLED_BACK
                self._changed.notify_all()
            elif transfer.stage is Stage.RUNNING:
                transfer.stage = Stage.IN_DOUBT
            return transfer.stage

    def in_doubt(self) -> frozenset[Hashable]:
        """Return the frames of transfers that were aborted and have not landed."""
        with self._changed:
            flying = [each for each in self._under_way if each.stage is Stage.IN_DOUBT]
            return frozenset(frame for transfer in flying for frame in transfer.frames)

    def waiting(self) -> int:
        """Return how many transfers wait to begin."""
        with self._changed:
            return sum(map(len, self._queues.values()))

    def flying(self) -> int:
        """Return how many transfers have begun and not landed."""
        with self._changed:
            return len(self._under_way)

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait until nothing waits or flies, and say whether it came to that."""
        with self._changed:
            return self._changed.wait_for(self._idle, timeout_seconds)

    def close(self) -> list[Transfer]:
        """Call back what has not begun, let the rest land, and end the threads.

        Returns:
            What was called back; ``done`` is not called for these.

        Raises:
            Exception: the first that a callback has raised.
        """
        with self._changed:
            self._open = False
            rest = [transfer for kind in Kind for transfer in self._queues[kind]]
            for transfer in rest:
                transfer.stage = Stage.CALLED_BACK
                self._queues[transfer.kind].clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        return rest

    def _idle(self) -> bool:
        return not self._under_way and not any(self._queues.values())

    def _work(self) -> None:
        while (transfer := self._begin()) is not None:
            try:
                self._before(transfer)
                transfer.outcome = transfer.work()
            except Exception as error:  # noqa: BLE001 -- whatever it was, the bytes did not come
                transfer.outcome, transfer.error = Outcome.BAD, error
            self._end(transfer)

    def _begin(self) -> Transfer | None:
        """Wait for a transfer that may begin; None when there will be none."""
        with self._changed:
            while (transfer := self._next()) is not None or self._open:
                wait = None
                if transfer is not None and self._fits(transfer):
                    wait = self._bucket.wait_seconds()
                    if not wait:
                        self._start(transfer)
                        return transfer
                self._changed.wait(None if wait is None else min(wait, _LONGEST_WAIT_SECONDS))
            return None

    def _fits(self, transfer: Transfer) -> bool:
        return self._frames + len(transfer.frames) <= self.budget.frames

    def _next(self) -> Transfer | None:
        """Return whose turn it is; nobody overtakes it, or a large one might wait for ever."""
        loads, stores = self._queues[Kind.LOAD], self._queues[Kind.STORE]
        if loads and not (stores and self._in_a_row >= LOADS_IN_A_ROW):
            return loads[0]
        return stores[0] if stores else None

    def _start(self, transfer: Transfer) -> None:
        self._queues[transfer.kind].popleft()
        self._in_a_row = self._in_a_row + 1 if transfer.kind is Kind.LOAD else 0
        self._bucket.take(transfer.size_bytes)
        self._frames += len(transfer.frames)
        self._under_way.add(transfer)
        transfer.stage = Stage.RUNNING

    def _end(self, transfer: Transfer) -> None:
        """Say that a transfer has landed, once; an abort that comes later finds it so."""
        with self._changed:
            tell = self._landed if transfer.stage is Stage.IN_DOUBT else transfer.done
            transfer.stage = Stage.LANDED
            self._frames -= len(transfer.frames)
        try:
            tell(transfer)
        except Exception as error:  # noqa: BLE001 -- a worker lives on; `close` raises it
            self._failed = self._failed or error
        with self._changed:
            self._under_way.discard(transfer)
            self._changed.notify_all()
