"""Bytes flow at the rate of their budget, whatever the clock does."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fivestate.impl.tiers import Budget, Kind, Outcome, Transfers
from fivestate.impl.tiers.budget import Bucket

WAIT_SECONDS = 30  # long enough that only a deadlock reaches it


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"frames": 0}, {"queue": 0}, {"bytes_per_second": 0}, {"burst_bytes": -1}],
)
def test_a_budget_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"budget: {next(iter(wrong))} = "):
        Budget(**wrong)


class Clock:
    """A clock that is moved by hand, in either direction."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.seconds


def test_bytes_flow_at_the_rate_of_the_budget() -> None:
    clock = Clock()
    bucket = Bucket(Budget(bytes_per_second=100, burst_bytes=50), clock)
    moved = 0
    for _ in range(1000):
        while not bucket.wait_seconds():
            bucket.take(30)
            moved += 30
        clock.seconds += bucket.wait_seconds()
    given = 50 + 100 * (clock.seconds - 1000)
    assert abs(moved - given) <= 30  # one transfer may be begun on credit, or not begun yet


def test_a_pause_however_long_saves_up_no_more_than_the_burst() -> None:
    clock = Clock()
    bucket = Bucket(Budget(bytes_per_second=100, burst_bytes=50), clock)
    bucket.take(50)
    clock.seconds += 3600
    assert bucket.wait_seconds() == 0
    bucket.take(150)
    assert bucket.wait_seconds() == 1


def test_one_transfer_larger_than_the_burst_begins_and_is_paid_for_later() -> None:
    clock = Clock()
    bucket = Bucket(Budget(bytes_per_second=100, burst_bytes=50), clock)
    assert bucket.wait_seconds() == 0
    bucket.take(1050)
    assert bucket.wait_seconds() == 10


def test_a_clock_that_goes_backwards_gives_nothing_and_takes_nothing() -> None:
    clock = Clock()
    bucket = Bucket(Budget(bytes_per_second=100, burst_bytes=50), clock)
    bucket.take(150)
    assert bucket.wait_seconds() == 1
    clock.seconds -= 500
    assert bucket.wait_seconds() == 1
    clock.seconds += 1
    assert bucket.wait_seconds() == 0


def test_transfers_wait_for_their_bandwidth_by_the_clock_they_are_given() -> None:
    clock = Clock()
    transfers = Transfers(Budget(bytes_per_second=100, burst_bytes=0), clock=clock)
    order: list[object] = []
    for frame in (0, 1):
        transfers.submit(
            Kind.LOAD,
            lambda: Outcome.GOOD,
            lambda transfer: order.extend(transfer.frames),
            frames=(frame,),
            size_bytes=100,
        )
    while not order:
        threading.Event().wait(0.001)
    clock.seconds -= 10
    assert not transfers.join(0.2)
    assert order == [0]
    clock.seconds += 1
    assert transfers.join(WAIT_SECONDS)
    transfers.close()
    assert order == [0, 1]
