"""What was begun cannot be called back: it lands later, and until then its blocks are nobody's."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from tests.impl.recovery_world import SOON_SECONDS, Engine, allocator, archived

from fivestate.impl.allocator import Allocator, Doubt
from fivestate.impl.chain import Cell
from fivestate.impl.pools import Owner
from fivestate.impl.recovery import Worker
from fivestate.impl.recovery.moves import Load
from fivestate.impl.tiers import Budget, Transfer
from fivestate.impl.tiers.errors import ClosedError
from fivestate.spec.vocabulary import COMPRESSED, Device


class Gate:
    """Lets transfers through, or holds up those of one cell."""

    def __init__(self) -> None:
        self.stuck: Cell | None = None
        self.held, self.open = Event(), Event()

    def __call__(self, transfer: Transfer) -> None:
        """Hold the transfer up, if it is the one."""
        if self.stuck is not None and self.stuck in transfer.frames:
            self.held.set()
            assert self.open.wait(SOON_SECONDS)


@pytest.fixture
def home(tmp_path: Path) -> Allocator:
    return allocator(tmp_path / "disk")


class Stuck:
    """A load of entries that stands still before its last byte, until it is let go."""

    def __init__(self) -> None:
        self.flying, self.free = Event(), Event()

    def __call__(self, cell: Cell) -> int:
        """Stand still, if it is the one."""
        if cell.state is COMPRESSED:
            self.flying.set()
            assert self.free.wait(SOON_SECONDS)
        return 0


def stuck(home: Allocator) -> None:
    """A load is stuck and its request goes: its blocks are in no hand until it has landed."""
    engine, load = Engine(home), Stuck()
    with Worker(home, offset=load) as worker:
        node = archived(engine, worker, "a", "b")
        cell, request = node.cells[COMPRESSED], engine.ask(node)
        blocks = {name: ids.copy() for name, ids in cell.blocks.items()}
        worker.recover(node)
        assert load.flying.wait(SOON_SECONDS)
        worker.abort(request)
        try:
            home.check()
            assert worker.in_doubt()
            for name, ids in blocks.items():
                pool = home.pools[name]
                every = pool.take(pool.free, Owner.PRIVATE)
                assert not set(every.tolist()) & set(ids.tolist())
                pool.give(every, Owner.PRIVATE)
                assert (pool.owner[ids] == Owner.DOOMED).all()
        finally:
            load.free.set()
        assert worker.idle(SOON_SECONDS)
        home.check()
        assert not any(home.doubts.values())
        for name, ids in blocks.items():
            assert (home.pools[name].owner[ids] == Owner.FREE).all()


def test_a_stuck_transfer_keeps_its_blocks_out_of_every_other_hand(home: Allocator) -> None:
    stuck(home)


def test_blocks_that_are_free_while_a_transfer_flies_are_noticed(
    home: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def withhold(cell: Cell) -> Doubt:
        home._empty(cell)
        return Doubt(cell.state, {})

    monkeypatch.setattr(home, "_withhold", withhold)
    with pytest.raises(AssertionError):
        stuck(home)


def overtaken(home: Allocator) -> None:
    """A load lands late, when the engine itself loads the cell into other blocks."""
    engine, load = Engine(home), Stuck()
    with Worker(home, offset=load) as worker:
        node = archived(engine, worker, "a", "b")
        cell, first = node.cells[COMPRESSED], engine.ask(node)
        worker.recover(node)
        assert load.flying.wait(SOON_SECONDS)
        worker.abort(first)
        second = engine.ask(node)
        home.load_begin(node, COMPRESSED)
        load.free.set()
        assert worker.idle(SOON_SECONDS)
        assert cell.device is Device.LOADING
        engine.write(cell, cell.blocks)
        home.load_good(node, COMPRESSED)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        engine.compute(node)
        home.resume(second, node)
        engine.read(second)


def test_a_load_that_lands_late_does_not_end_a_later_one(home: Allocator) -> None:
    overtaken(home)


def test_a_load_that_reports_for_whoever_has_the_cell_now_is_noticed(
    home: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Load, "_theirs", lambda move: move.cell.device is Device.LOADING)
    with pytest.raises(AssertionError):
        overtaken(home)


def test_a_load_that_has_not_begun_is_called_back_and_withholds_nothing(home: Allocator) -> None:
    engine, gate = Engine(home), Gate()
    with Worker(home, before=gate, budget=Budget(workers=1, frames=1)) as worker:
        first = archived(engine, worker, "a")
        second = archived(engine, worker, "b")
        gate.stuck = first.cells[COMPRESSED]
        requests = [engine.ask(first), engine.ask(second)]
        worker.recover(first)
        assert gate.held.wait(SOON_SECONDS)
        worker.recover(second)
        worker.abort(requests[1])
        assert not any(home.doubts.values())
        assert second.cells[COMPRESSED].device is Device.ABSENT
        gate.open.set()
        assert worker.wait(first, SOON_SECONDS)
        engine.compute(first)
        home.resume(requests[0], first)
        engine.read(requests[0])
        home.check()


def test_closing_calls_back_what_waits_lets_the_rest_land_and_takes_no_more(
    home: Allocator,
) -> None:
    engine, gate = Engine(home), Gate()
    worker = Worker(home, before=gate, budget=Budget(workers=1, frames=1))
    node = archived(engine, worker, "a", "b")
    gate.stuck = node.cells[COMPRESSED]
    request = engine.ask(node)
    worker.recover(node)
    assert gate.held.wait(SOON_SECONDS)
    gate.open.set()
    worker.close()
    with pytest.raises(ClosedError):
        worker.recover(node)
    home.abort_recovery(request, node)
    home.check()
    assert not any(home.doubts.values())
