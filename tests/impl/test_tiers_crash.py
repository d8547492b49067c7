"""Power may fail at any moment: what was acknowledged is there, and nothing else is served."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.impl.tier_disk import Event, NoDirectorySync, NoSync, Recorder, crash_states
from tests.impl.tier_sqlite import DATABASE, LOG, State
from tests.impl.tier_workload import IDENTITY, Promise, Step, look, run

from fivestate.impl.tiers import Store, manifest
from fivestate.impl.tiers.holdings import Holdings
from fivestate.impl.tiers.manifest import Entry

KEYS = [f"prefix{n}/COMPRESSED" for n in range(6)]
CAPACITY_BYTES = 2000
FULL = bool(os.environ.get("FIVESTATE_FULL"))


def steps(count: int, seed: int) -> Iterator[Step]:
    """Yield a run in which every kind of step occurs."""
    choose = random.Random(seed)  # noqa: S311 -- not for secrets
    for version in range(1, count + 1):
        key = choose.choice(KEYS)
        if version % 11 == 0:
            yield Step("reopen")
        elif version % 17 == 0:
            yield Step("weights", version=version)
        elif version % 13 == 0:
            yield Step("layout", version=version)
        else:
            what = choose.choices(["put", "get", "drop"], [6, 2, 1])[0]
            yield Step(what, key, version)


def recorded(
    tmp_path: Path, patch: pytest.MonkeyPatch, kind: type[Recorder] = Recorder, count: int = 40
) -> list[Event]:
    """Return the events of a run."""
    root = tmp_path / "recorded"
    files = kind(root)
    with patch.context() as within:
        within.setattr(manifest, "CHECKPOINT_PAGES", 4)  # so that the run has several
        files.watch(within)
        run(root, steps(count, 1), files, CAPACITY_BYTES)
    return files.events


def lay_out(root: Path, state: State) -> None:
    """Write a state into a new folder."""
    (root / "objects").mkdir(parents=True)
    for name, content in state.items():
        (root / name).write_bytes(content)


def crashes(events: list[Event], tmp_path: Path) -> Iterator[list[str]]:
    """Reopen after every crash there can be, and yield each time what is not as promised."""
    promise, told = Promise(), 0
    for number, (at, state) in enumerate(crash_states(events)):
        for event in events[told:at]:
            if event.step is not None:
                (promise.end if event.done else promise.begin)(event.step)
        told = max(told, at)
        root = tmp_path / "crashed" / str(number)
        lay_out(root, state)
        yield look(root, promise, KEYS)[1]


def test_whatever_a_crash_leaves_what_was_acknowledged_is_there_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, int], None]
) -> None:
    events = recorded(tmp_path, monkeypatch, count=300 if FULL else 68)
    found = list(crashes(events, tmp_path))
    record_property("crash_states", len(found))
    assert [problem for problem in found if problem] == []
    assert len(found) >= 1000
    puts = [event.step for event in events if event.step and event.step.what == "put"]
    assert any(put.gone for put in puts), "no put evicted anything"
    assert {event.kind for event in events} >= {"write", "sync", "rename", "unlink", "commit"}
    assert any(written_back(event) for event in events), "no commit wrote the log back"


def written_back(event: Event) -> bool:
    """Whether a commit wrote pages back and went on with the log."""
    return LOG in event.after and event.before[DATABASE] != event.after[DATABASE]


@pytest.mark.parametrize("kind", [NoSync, NoDirectorySync])
def test_a_store_that_leaves_out_a_sync_loses_what_it_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Recorder]
) -> None:
    assert any(crashes(recorded(tmp_path, monkeypatch, kind, count=4), tmp_path))


def test_a_store_that_removes_the_old_version_first_loses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledge = Holdings.acknowledge

    def hasty(self: Holdings, entry: Entry) -> list[str]:
        if entry.key in self:
            self._folder.remove(self.entry(entry.key))
        return acknowledge(self, entry)

    monkeypatch.setattr(Holdings, "acknowledge", hasty)
    assert any(crashes(recorded(tmp_path, monkeypatch, count=10), tmp_path))


def test_the_log_is_synced_at_every_commit(tmp_path: Path) -> None:
    with Store.open(tmp_path, identity=IDENTITY, capacity_bytes=0) as store:
        connection = store._folder.manifest._connection
        asked = [
            connection.execute(f"PRAGMA {what}").fetchone()[0]
            for what in ("journal_mode", "synchronous", "locking_mode")
        ]
    assert asked == ["wal", 2, "exclusive"]
