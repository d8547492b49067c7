"""Loads and stores that really move cells, under aborts and faults."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest
import torch
from tests.impl.tier_desk import WAIT_SECONDS, desk
from tests.impl.tier_folder import Slow, opened
from tests.impl.tier_workload import value, version_of

from fivestate.impl.tiers import Kind, Outcome, Stage, Transfer, load_cell, store_cell
from fivestate.impl.tiers.errors import HeldError


def test_an_aborted_load_from_disk_keeps_its_frames_in_doubt_until_it_has_written_them(
    tmp_path: Path,
) -> None:
    files, landed = Slow(), list[Transfer]()
    frames = {name: torch.zeros_like(tensor) for name, tensor in value(5).items()}
    with opened(tmp_path, files=files) as store, desk(landed=landed.append) as d:
        store.put("k", value(5))
        transfer = d.submit(work=lambda: load_cell(store, "k", frames), frames=tuple(frames))
        assert files.reading.wait(WAIT_SECONDS)
        assert d.transfers.abort(transfer) is Stage.IN_DOUBT
        with pytest.raises(HeldError):
            store.drop("k")
        assert d.transfers.in_doubt() == set(frames)
        files.go_on.set()
        assert d.transfers.join(WAIT_SECONDS)
        assert (landed, d.transfers.in_doubt()) == ([transfer], frozenset())
        store.drop("k")
    assert version_of(frames) == 5


def test_stores_and_loads_of_many_cells_under_faults_end_as_the_disk_says(tmp_path: Path) -> None:
    def fault(transfer: Transfer) -> None:
        number = int(str(transfer.frames[0]))
        threading.Event().wait(number % 3 / 1000)
        if number % 5 == 0:
            raise OSError(5, "injected")

    with opened(tmp_path) as store, desk(workers=4, before=fault) as d:
        for n in range(20):
            d.submit(Kind.STORE, partial(store_cell, store, f"k{n}", value(n + 1)), (n,))
        assert d.transfers.join(WAIT_SECONDS)
        stored = {n for n, outcome in d.ended if outcome is Outcome.GOOD}
        assert stored == {n for n in range(20) if n % 5}
        assert set(store.keys()) == {f"k{n}" for n in stored}
        d.ended.clear()
        frames = [{name: torch.zeros_like(t) for name, t in value(1).items()} for _ in range(20)]
        for n in range(1, 21):  # the one after each was put, but for those that failed
            d.submit(Kind.LOAD, partial(load_cell, store, f"k{n - 1}", frames[n - 1]), (n,))
        assert d.transfers.join(WAIT_SECONDS)
    good = {int(str(n)) - 1 for n, outcome in d.ended if outcome is Outcome.GOOD}
    assert good == {n for n in range(20) if n % 5 and (n + 1) % 5}
    assert all(version_of(frames[n]) == n + 1 for n in good)
