"""Transfers whose ends are noted, and work that waits to be let through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fivestate.impl.tiers import (
    Budget,
    Kind,
    Outcome,
    Transfer,
    Transfers,
)
from fivestate.impl.tiers.transfers import nothing

WAIT_SECONDS = 30  # long enough that only a deadlock reaches it


class Gate:
    """Work that waits until it is let through."""

    def __init__(self, outcome: Outcome = Outcome.GOOD) -> None:
        self.outcome = outcome
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self) -> Outcome:
        """Wait, and say how it went."""
        self.begun.set()
        assert self.open.wait(WAIT_SECONDS)
        return self.outcome


class Desk:
    """Transfers, and a list of how they ended."""

    def __init__(self, transfers: Transfers) -> None:
        self.transfers = transfers
        self.ended: list[tuple[object, Outcome | None]] = []

    def submit(
        self,
        kind: Kind = Kind.LOAD,
        work: Callable[[], Outcome] = lambda: Outcome.GOOD,
        frames: tuple[object, ...] = (0,),
        size_bytes: int = 0,
    ) -> Transfer:
        """Queue one."""
        return self.transfers.submit(kind, work, self.done, frames=frames, size_bytes=size_bytes)

    def done(self, transfer: Transfer) -> None:
        """Note how one ended."""
        self.ended.append((transfer.frames[0], transfer.outcome))

    @property
    def order(self) -> list[object]:
        """The first frames of what has ended, in that order."""
        return [frame for frame, _ in self.ended]


@contextmanager
def desk(
    workers: int = 1,
    frames: int = 8,
    queue: int = 1024,
    landed: Callable[[Transfer], None] = nothing,
    before: Callable[[Transfer], None] = nothing,
) -> Iterator[Desk]:
    budget = Budget(workers=workers, frames=frames, queue=queue)
    transfers = Transfers(budget, landed=landed, before=before)
    try:
        yield Desk(transfers)
    finally:
        transfers.close()
