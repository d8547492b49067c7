"""A restart finds what was acknowledged, as the machine's crash says, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.impl.recovery_world import (
    GEOMETRY,
    STEP,
    WEIGHTS,
    Engine,
    allocator,
    digests,
    open_store,
)

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Node
from fivestate.impl.recovery import DiskCopies, Worker, restore
from fivestate.impl.recovery.chains import Chains, Place
from fivestate.impl.tiers import Store, StoreIdentity
from fivestate.impl.tiers.errors import VersionError
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, CacheState, Phase

SOON_SECONDS = 20.0

Known = dict[bytes, dict[CacheState, bool]]
"""By the digest at each known node's end: which states have a copy on disk."""


def known(home: Allocator) -> Known:
    """Return what is known, and what of it is on disk."""
    return {
        node.digests[-1]: {state: cell.disk is not None for state, cell in node.cells.items()}
        for node in home.nodes()
        if home.known(node)
    }


def power_cut(home: Allocator, folder: Path, copy: Path) -> Path:
    """Return a copy of a store's folder as it is now, with the store still open."""
    del home
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("lock"))
    return copy


def resumed(home: Allocator, node: Node) -> None:
    """Ask for a prefix, recover it and read it."""
    engine = Engine(home)
    with Worker(home) as worker:
        request = engine.ask(node)
        assert request.phase is Phase.RECOVERING
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        engine.compute(node)
        home.resume(request, node)
        engine.read(request)
        home.check()


def test_prefixes_known_before_a_crash_are_known_again_and_read_the_same(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    engine = Engine(home)
    with Worker(home) as worker:
        engine.publish(digests("a", "b"))
        engine.publish(digests("a", "b", "c", "d"))
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        folder = power_cut(home, tmp_path / "disk", tmp_path / "after")
        home.crash()
    again = allocator(folder)
    restored = restore(again)
    assert known(again) == known(home)
    assert len(restored.nodes) == 2
    assert not restored.rejected
    again.check()
    resumed(again, Engine(again).node(digests("a", "b", "c", "d")))


def test_what_was_not_acknowledged_is_not_known(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    engine = Engine(home)
    with Worker(home) as worker:
        kept, lost = engine.publish(digests("kept")), engine.publish(digests("lost"))
        worker.store(kept, COMPRESSED)
        assert worker.idle(SOON_SECONDS)
        folder = power_cut(home, tmp_path / "disk", tmp_path / "after")
    again = allocator(folder)
    restore(again)
    assert set(known(again)) == {kept.digests[-1]}
    assert lost.digests[-1] not in known(again)


def test_a_window_whose_entries_are_gone_is_of_no_use(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    engine = Engine(home)
    with Worker(home) as worker:
        first, second = engine.publish(digests("a")), engine.publish(digests("a", "b"))
        for node in (first, second):
            worker.store(node, WINDOW)
        worker.store(second, COMPRESSED)
        assert worker.idle(SOON_SECONDS)
        folder = power_cut(home, tmp_path / "disk", tmp_path / "after")
    again = allocator(folder)
    restored = restore(again)
    assert not known(again)
    assert not restored.cells
    assert not list(again.nodes())
    disk = again.settings.disk
    assert isinstance(disk, DiskCopies)
    disk.flush()
    assert not disk.store.keys()
    assert not disk.used_bytes


def test_a_segment_is_split_again_where_it_was_split_before(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    engine = Engine(home)
    with Worker(home) as worker:
        engine.publish(digests(*"abcd"))
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        engine.publish(digests(*"abxy"))  # it parts in the middle of a segment on disk
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        folder = power_cut(home, tmp_path / "disk", tmp_path / "after")
    again = allocator(folder)
    restore(again)
    ends = sorted(node.end_tokens // STEP for node in again.nodes())
    assert ends == [2, 4, 4]
    for chain in ("abcd", "abxy"):
        resumed(again, Engine(again).node(digests(*chain)))


def test_two_restarts_in_a_row_do_not_mix_up_their_objects(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    for word in "abc":
        home = allocator(folder)
        restore(home)
        with Worker(home) as worker:
            Engine(home).publish(digests(word))
            worker.persist()
            assert worker.idle(SOON_SECONDS)
        disk = home.settings.disk
        assert isinstance(disk, DiskCopies)
        disk.close()
    home = allocator(folder)
    restore(home)
    for word in "abc":
        resumed(home, Engine(home).node(digests(word)))


def test_what_old_kernels_wrote_is_repacked_after_a_restart(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    with Worker(home) as worker:
        Engine(home).publish(digests("a"))
        worker.persist()
        assert worker.idle(SOON_SECONDS)
    disk = home.settings.disk
    assert isinstance(disk, DiskCopies)
    disk.close()
    again = allocator(tmp_path / "disk", layout=3)
    restore(again)
    assert again.layout == 3
    resumed(again, Engine(again).node(digests("a")))


def test_what_changed_on_disk_is_never_served(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    with Worker(home) as worker:
        Engine(home).publish(digests("a"))
        worker.persist()
        assert worker.idle(SOON_SECONDS)
    disk = home.settings.disk
    assert isinstance(disk, DiskCopies)
    disk.close()
    for file in (tmp_path / "disk" / "objects").iterdir():
        raw = bytearray(file.read_bytes())
        raw[-1] ^= 1
        file.write_bytes(raw)
    again = allocator(tmp_path / "disk")
    restore(again)
    engine, node = Engine(again), Engine(again).node(digests("a"))
    with Worker(again) as worker:
        request = engine.ask(node)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        assert worker.counts["Fetch bad"] == 2
        assert not node.known
        engine.compute(node)
        again.publish(node)
        again.resume(request, node)
        engine.read(request)


def test_weights_that_changed_leave_nothing_on_disk_and_nothing_is_kept_under_the_old_name(
    tmp_path: Path,
) -> None:
    home = allocator(tmp_path / "disk")
    disk, engine = home.settings.disk, Engine(home)
    assert isinstance(disk, DiskCopies)
    with Worker(home) as worker:
        engine.publish(digests("a"))
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        home.change_weights()
        engine.publish(digests("b"))
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        assert worker.counts["Demote bad"]  # the disk has not been told of the change
        disk.follow(home.layout, home.weights)
        assert not disk.store.keys()
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        assert disk.store.keys()


def test_an_allocator_in_use_is_not_restored(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk")
    Engine(home).publish(digests("a"))
    with pytest.raises(ValueError, match="a new one is needed"):
        restore(home)
    with pytest.raises(ValueError, match="DiskCopies are needed"):
        restore(allocator())


def test_a_place_outlives_the_process_and_one_without_an_object_is_swept(tmp_path: Path) -> None:
    place = Place(COMPRESSED, 3, 16, b"\1\2", (b"a", b"b"), 700)
    chains = Chains(tmp_path / "chains.db")
    chains.keep("here", place)
    chains.keep("gone", place)
    chains.close()
    again = Chains(tmp_path / "chains.db")
    assert again.session == chains.session + 1
    assert again.places({"here"}) == {"here": place}
    assert again.places({"here", "gone"}) == {"here": place}
    again._connection.execute("PRAGMA user_version = 99")
    again.close()
    with pytest.raises(VersionError):
        Chains(tmp_path / "chains.db")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "other"),
        ("state", "WINDOW"),
        ("state", "NOTHING"),
        ("layout", 4),
        ("start_tokens", 0),
        ("parent", b"\1"),
        ("digests", "[]"),
        ("digests", "no list"),
        ("size_bytes", 0),
        ("crc", 0),
    ],
)
def test_a_damaged_row_is_no_place_and_is_swept(column: str, value: object, tmp_path: Path) -> None:
    chains = Chains(tmp_path / "chains.db")
    chains.keep("k", Place(COMPRESSED, 3, 16, b"\1\2", (b"a", b"b"), 700))
    chains._connection.execute(f"UPDATE place SET {column} = ?", (value,))  # noqa: S608 -- our own
    assert chains.places({"k", "other"}) == {}
    assert chains._connection.execute("SELECT * FROM place").fetchall() == []


def test_a_copy_that_was_erased_and_written_again_stays(tmp_path: Path) -> None:
    """The old file is removed late, and must not take the new one with it."""
    home = allocator(tmp_path / "disk")
    disk = home.settings.disk
    assert isinstance(disk, DiskCopies)
    with Worker(home) as worker:
        node = Engine(home).publish(digests("a"))
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        home.erase(node, COMPRESSED)
        worker.store(node, COMPRESSED)
        assert worker.idle(SOON_SECONDS)
        disk.flush()
        copied = node.cells[COMPRESSED].disk
        assert copied is not None
        assert set(disk.get(copied.key)) == {"c2", "c4"}


def test_a_disk_without_capacity_or_epoch_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "disk") as store, pytest.raises(ValueError, match="capacity_bytes"):
        DiskCopies(store, 0)
    identity = StoreIdentity.of(GEOMETRY, layout="fp8", weights=WEIGHTS)
    with (
        Store.open(tmp_path / "other", identity=identity, capacity_bytes=1) as store,
        pytest.raises(ValueError, match="the epoch of the kernels"),
    ):
        DiskCopies(store, 1)
