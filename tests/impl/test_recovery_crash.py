"""Power may fail while a place is noted: what was acknowledged in the table of places is there.

What a crash may leave within a commit is what `tier_sqlite.py` says of SQLite's database and log.
The table's making is seen before and after each statement: nothing is acknowledged before it ends.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.impl.recovery_world import SOON_SECONDS, Engine, allocator, digests
from tests.impl.tier_sqlite import DATABASE, LOG, State, torn_commits

from fivestate.impl.recovery import DiskCopies, Worker
from fivestate.impl.recovery.chains import Chains, Place
from fivestate.impl.tiers.errors import DiskError
from fivestate.spec.vocabulary import WINDOW

Places = dict[str, Place]
FILES = {DATABASE: "chains.db", LOG: "chains.db-wal"}
SYNCHRONOUS_FULL = 2
FULL = bool(os.environ.get("FIVESTATE_FULL"))


def place(number: int) -> Place:
    """Return a place that is told from every other, of more than a page now and then."""
    chain = tuple(bytes([number, n % 256]) * 16 for n in range(90 if number % 5 == 0 else 3))
    return Place(WINDOW, number, 4 * number, bytes([number]) * 32, chain, 100 + number)


@dataclass
class Moment:
    """A commit: the files before and after it, what may be found, and what then has to be."""

    before: State
    after: State
    sessions: int
    old: Places
    new: Places
    synced: bool = True

    def states(self) -> Iterator[tuple[State, list[Places]]]:
        """Yield what a crash may leave, each with the tables of places that it may hold."""
        if self.before.get(DATABASE) and LOG in self.before | self.after:
            torn = list(torn_commits(self.before, self.after))
        else:
            torn = [self.before]
        for state in torn:
            yield state, [self.old, self.new]
            if not self.synced:  # it was acknowledged, and may be as if it had not been written
                yield state, [self.new]
        yield self.after, [self.new]


@dataclass
class Run:
    """A table of places under watch: every statement that changes its files is a moment."""

    path: Path
    moments: list[Moment] = field(default_factory=list)
    sessions: int = 0
    old: Places = field(default_factory=dict)
    new: Places = field(default_factory=dict)

    def picture(self) -> State:
        """Return the database and its log as they are."""
        paths = {name: self.path.with_name(own) for name, own in FILES.items()}
        return {name: path.read_bytes() for name, path in paths.items() if path.exists()}

    def note(self, before: State, *, synced: bool) -> None:
        """Note a moment, if anything changed."""
        after = self.picture()
        if before != after:
            moment = Moment(before, after, self.sessions, self.old, self.new, synced)
            self.moments.append(moment)

    def watched(self) -> type[sqlite3.Connection]:
        """Return connections that note what they do."""
        run = self

        class Watched(sqlite3.Connection):
            def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
                before = run.picture()
                (level,) = super().execute("PRAGMA synchronous").fetchone()
                found = super().execute(statement, values)
                run.note(before, synced=level >= SYNCHRONOUS_FULL)
                return found

            def close(self) -> None:
                before = run.picture()
                super().close()
                run.note(before, synced=True)

        return Watched

    def opened(self) -> Chains:
        """Open the table; who has its session may use its names from then on."""
        chains = Chains(self.path)
        self.sessions = chains.session
        return chains


def recorded(tmp_path: Path, patch: pytest.MonkeyPatch) -> list[Moment]:
    """Return the moments of a run in which places are noted, changed and removed."""
    (tmp_path / "recorded").mkdir()
    run = Run(tmp_path / "recorded" / "chains.db")
    connect, watched = sqlite3.connect, run.watched()
    with patch.context() as within:
        within.setattr(sqlite3, "connect", lambda *a, **kw: connect(*a, factory=watched, **kw))
        chains = run.opened()
        for number in range(1, 61 if FULL else 13):
            name = f"cell{number % 7}"
            run.old = run.new
            if number % 8 == 0:
                chains.close()
                chains = run.opened()
            elif number % 3 == 0:
                run.new = {other: at for other, at in run.old.items() if other != name}
                chains.forget(name)
            else:
                run.new = run.old | {name: place(number)}
                chains.keep(name, place(number))
        chains.close()
    return run.moments


def wrong(moments: list[Moment], tmp_path: Path) -> Iterator[bool]:
    """Open what each crash may leave, and yield whether anything is not as promised."""
    names = frozenset(f"cell{n}" for n in range(7))
    cases = ((moment, *case) for moment in moments for case in moment.states())
    for number, (moment, state, allowed) in enumerate(cases):
        root = tmp_path / "crashed" / str(number)
        root.mkdir(parents=True)
        for name, content in state.items():
            (root / FILES[name]).write_bytes(content)
        try:
            chains = Chains(root / "chains.db")
        except DiskError:
            yield True
            continue
        found = chains.places(names)
        new = chains.session > moment.sessions  # or a name of before could come again
        chains.close()
        yield found not in allowed or not new


def test_whatever_a_crash_leaves_the_places_that_were_acknowledged_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, int], None]
) -> None:
    found = list(wrong(recorded(tmp_path, monkeypatch), tmp_path))
    record_property("crash_states", len(found))
    assert found.count(True) == 0
    assert len(found) >= 100


def test_a_table_that_does_not_sync_its_log_loses_places_that_were_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = Chains._open

    def hasty(self: Chains) -> int:
        session = opening(self)
        self._connection.execute("PRAGMA synchronous = OFF")
        return session

    monkeypatch.setattr(Chains, "_open", hasty)
    assert any(wrong(recorded(tmp_path, monkeypatch), tmp_path))


def unplaced(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """Put a copy and remove it; return what the store did while the table had no place of it."""
    home, found = allocator(folder), list[str]()
    disk = home.settings.disk
    assert isinstance(disk, DiskCopies)
    with Worker(home) as worker:
        for what in ("put", "drop"):
            done: Any = getattr(disk.store, what)

            def looked(name: str, *rest: Any, what: str = what, done: Any = done) -> None:
                done(name, *rest)
                if name not in disk.chains.places(frozenset([name])):
                    found.append(what)

            patch.setattr(disk.store, what, looked)
        node = Engine(home).publish(digests("a"))
        worker.store(node, WINDOW)
        assert worker.idle(SOON_SECONDS)
        home.erase(node, WINDOW)
    assert disk.store.keys() == []
    return found


def test_an_object_has_its_place_before_it_is_there_and_until_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unplaced(tmp_path, monkeypatch) == []


def test_a_table_that_is_written_late_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chains, "keep", lambda *_: None)
    assert unplaced(tmp_path, monkeypatch) == ["put", "drop"]
