"""Transfers keep to their budget, loads first, and what is aborted lands before it is anybody's."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from tests.impl.tier_desk import WAIT_SECONDS, Gate, desk

from fivestate.impl.tiers import Budget, Kind, Outcome, Stage, Transfer, Transfers
from fivestate.impl.tiers.errors import ClosedError
from fivestate.impl.tiers.transfers import LOADS_IN_A_ROW, QueueFullError


@pytest.mark.parametrize("outcome", Outcome)
def test_whoever_asked_is_told_how_it_ended(outcome: Outcome) -> None:
    with desk() as d:
        transfer = d.submit(work=lambda: outcome)
        assert d.transfers.join(WAIT_SECONDS)
    assert (d.ended, transfer.stage, transfer.error) == ([(0, outcome)], Stage.LANDED, None)


def test_work_that_raises_ended_badly_and_its_worker_goes_on() -> None:
    def fail() -> Outcome:
        raise RuntimeError("the copy engine is on fire")

    with desk() as d:
        transfer = d.submit(work=fail)
        d.submit(frames=(1,))
        assert d.transfers.join(WAIT_SECONDS)
    assert d.ended == [(0, Outcome.BAD), (1, Outcome.GOOD)]
    assert "on fire" in str(transfer.error)


def test_an_injected_fault_ends_a_transfer_badly() -> None:
    def fault(transfer: Transfer) -> None:
        if transfer.frames == (1,):
            raise OSError(5, "injected")

    with desk(before=fault) as d:
        for frame in range(3):
            d.submit(frames=(frame,))
        assert d.transfers.join(WAIT_SECONDS)
    assert d.ended == [(0, Outcome.GOOD), (1, Outcome.BAD), (2, Outcome.GOOD)]


def test_loads_go_before_stores_and_each_in_their_order() -> None:
    with desk() as d:
        gate = Gate()
        d.submit(work=gate, frames=("first",))
        assert gate.begun.wait(WAIT_SECONDS)
        for kind in (Kind.STORE, Kind.LOAD):
            for n in range(2):
                d.submit(kind, frames=(f"{kind.name} {n}",))
        gate.open.set()
        assert d.transfers.join(WAIT_SECONDS)
    assert d.order == ["first", "LOAD 0", "LOAD 1", "STORE 0", "STORE 1"]


def test_a_store_has_its_turn_however_many_loads_come() -> None:
    with desk() as d:
        gate = Gate()
        d.submit(Kind.STORE, work=gate, frames=("first",))
        assert gate.begun.wait(WAIT_SECONDS)
        d.submit(Kind.STORE, frames=("store",))
        for n in range(3 * LOADS_IN_A_ROW):
            d.submit(frames=(n,))
        gate.open.set()
        assert d.transfers.join(WAIT_SECONDS)
    assert d.order.index("store") == 1 + LOADS_IN_A_ROW


def test_no_more_frames_are_moved_at_once_than_the_budget_has() -> None:
    lock, moving, most = threading.Lock(), 0, 0

    def work(frames: int) -> Outcome:
        nonlocal moving, most
        with lock:
            moving += frames
            most = max(most, moving)
        threading.Event().wait(0.002)
        with lock:
            moving -= frames
        return Outcome.GOOD

    with desk(workers=4, frames=3) as d:
        for n in range(40):
            frames = 1 + n % 3
            d.submit(work=partial(work, frames), frames=tuple(range(frames)))
        assert d.transfers.join(WAIT_SECONDS)
    assert most == 3
    assert len(d.ended) == 40


def test_a_full_queue_refuses_and_keeps_what_it_has() -> None:
    with desk(queue=2) as d:
        gate = Gate()
        d.submit(work=gate)
        assert gate.begun.wait(WAIT_SECONDS)
        d.submit(frames=(1,))
        d.submit(frames=(2,))
        with pytest.raises(QueueFullError, match=r"budget\.queue = 2"):
            d.submit(frames=(3,))
        assert d.transfers.waiting() == 2
        gate.open.set()
        assert d.transfers.join(WAIT_SECONDS)
    assert d.order == [0, 1, 2]


@pytest.mark.parametrize(("frames", "size_bytes"), [((), 0), (tuple(range(9)), 0), ((1,), -1)])
def test_a_transfer_that_could_never_begin_is_refused(
    frames: tuple[object, ...], size_bytes: int
) -> None:
    with desk() as d, pytest.raises(ValueError, match=r"frames|size_bytes"):
        d.submit(frames=frames, size_bytes=size_bytes)


def test_what_has_not_begun_is_called_back_and_its_frames_are_free() -> None:
    with desk() as d:
        gate = Gate()
        d.submit(work=gate)
        assert gate.begun.wait(WAIT_SECONDS)
        waiting = d.submit(frames=(1,))
        assert d.transfers.abort(waiting) is Stage.CALLED_BACK
        assert d.transfers.abort(waiting) is Stage.CALLED_BACK
        assert d.transfers.in_doubt() == frozenset()
        gate.open.set()
        assert d.transfers.join(WAIT_SECONDS)
    assert d.order == [0]


def test_what_has_begun_stays_in_doubt_until_it_has_landed() -> None:
    landed: list[Transfer] = []
    with desk(landed=landed.append) as d:
        gate = Gate()
        transfer = d.submit(work=gate, frames=(3, 4))
        assert gate.begun.wait(WAIT_SECONDS)
        assert d.transfers.in_doubt() == frozenset()
        for _ in range(2):
            assert d.transfers.abort(transfer) is Stage.IN_DOUBT
        assert d.transfers.in_doubt() == {3, 4}
        assert landed == []
        gate.open.set()
        assert d.transfers.join(WAIT_SECONDS)
        assert d.transfers.in_doubt() == frozenset()
        assert d.transfers.abort(transfer) is Stage.LANDED
    assert (landed, d.ended) == ([transfer], [])
    assert transfer.outcome is Outcome.GOOD


def test_every_transfer_ends_in_one_way_however_aborts_race_with_it() -> None:
    landed: list[Transfer] = []
    stages: list[Stage] = []
    with desk(workers=4, landed=landed.append) as d:
        transfers = [d.submit(frames=(n,)) for n in range(300)]
        stages.extend(d.transfers.abort(transfer) for transfer in reversed(transfers))
        assert d.transfers.join(WAIT_SECONDS)
    called_back = sum(stage is Stage.CALLED_BACK for stage in stages)
    assert len(d.ended) + len(landed) + called_back == 300
    assert not {id(transfer) for transfer in landed} & {
        id(transfer)
        for transfer, stage in zip(reversed(transfers), stages, strict=True)
        if stage is not Stage.IN_DOUBT
    }


def test_a_close_calls_back_what_waits_and_lets_land_what_flies() -> None:
    with desk() as d:
        gate = Gate()
        flying = d.submit(work=gate)
        assert gate.begun.wait(WAIT_SECONDS)
        waiting = [d.submit(frames=(1,)), d.submit(Kind.STORE, frames=(2,))]
        closer: list[list[Transfer]] = []
        thread = threading.Thread(target=lambda: closer.append(d.transfers.close()))
        thread.start()
        while d.transfers.waiting():
            threading.Event().wait(0.001)
        gate.open.set()
        thread.join(WAIT_SECONDS)
        assert closer == [waiting]
        assert [transfer.stage for transfer in waiting] == [Stage.CALLED_BACK] * 2
        assert (flying.stage, d.order) == (Stage.LANDED, [0])
        with pytest.raises(ClosedError):
            d.submit()
        assert d.transfers.close() == []


def test_a_callback_may_submit_more() -> None:
    with desk() as d:

        def again(transfer: Transfer) -> None:
            d.done(transfer)
            d.submit(frames=("second",))

        d.transfers.submit(Kind.LOAD, lambda: Outcome.GOOD, again, frames=(0,), size_bytes=0)
        assert d.transfers.join(WAIT_SECONDS)
    assert d.order == [0, "second"]


def test_what_a_callback_raises_is_raised_by_the_close() -> None:
    def fail(_transfer: Transfer) -> None:
        raise KeyError("nobody home")

    transfers = Transfers(Budget())
    transfers.submit(Kind.LOAD, lambda: Outcome.GOOD, fail, frames=(0,), size_bytes=0)
    assert transfers.join(WAIT_SECONDS)
    with pytest.raises(KeyError, match="nobody home"):
        transfers.close()
