"""What a worker moves keeps to the bytes per second of its budget, by the clock it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.impl.recovery_world import SOON_SECONDS, Engine, allocator, digests

from fivestate.impl.recovery import Worker
from fivestate.impl.tiers import Budget, Transfer
from fivestate.impl.tiers.budget import Bucket
from fivestate.spec.vocabulary import COMPRESSED

RATE_BYTES, BURST_BYTES = 60, 20


class Ticking:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> float:
        """Return the time."""
        self.seconds += 1
        return self.seconds


def overdrawn_bytes(folder: Path) -> list[int]:
    """Store some cells; return by how much those before each transfer had exceeded the budget."""
    home, clock, over = allocator(folder), Ticking(), list[int]()
    moved_bytes = 0

    def before(transfer: Transfer) -> None:
        nonlocal moved_bytes
        over.append(moved_bytes - BURST_BYTES - RATE_BYTES * (clock.seconds - 1))
        moved_bytes += transfer.size_bytes

    budget = Budget(workers=1, bytes_per_second=RATE_BYTES, burst_bytes=BURST_BYTES)
    engine = Engine(home)
    with Worker(home, budget=budget, before=before, clock=clock) as worker:
        for name in "abc":
            worker.store(engine.publish(digests(name)), COMPRESSED)
        assert worker.idle(SOON_SECONDS)
    return over


def test_no_transfer_begins_before_those_ahead_of_it_are_paid_for(tmp_path: Path) -> None:
    over = overdrawn_bytes(tmp_path)
    assert len(over) == 6  # three stores, three demotions
    assert max(over) <= 0


def test_a_worker_that_does_not_count_what_it_moves_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bucket, "take", lambda _bucket, _size_bytes: None)
    assert max(overdrawn_bytes(tmp_path)) > 0
