"""What the system refuses is refused with its reason, and nothing has changed."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.tier_folder import opened, size_of_one
from tests.impl.tier_workload import value, version_of

from fivestate.impl.tiers import Store
from fivestate.impl.tiers.errors import DiskError, LockedError
from fivestate.impl.tiers.files import Files

FLIPS = 500 if os.environ.get("FIVESTATE_FULL") else 60
NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give a store that has one object."""
    with opened(tmp_path / "store") as store:
        store.put("k", value(1))
        yield store


class Faulty(Files):
    """Files of which one operation fails, from some call on."""

    def __init__(self, operation: str, code: int) -> None:
        self.operation, self.code = operation, code
        self.armed = False

    def fail(self, operation: str) -> None:
        """Fail if it is this one's turn."""
        if self.armed and operation == self.operation:
            raise OSError(self.code, os.strerror(self.code))

    def create(self, path: Path) -> int:
        """Create, or fail."""
        self.fail("create")
        return super().create(path)

    def write(self, descriptor: int, pieces: Sequence[memoryview]) -> None:
        """Write, or fail half way through."""
        if self.armed and self.operation == "write":
            super().write(descriptor, [pieces[0][:100]])
        self.fail("write")
        super().write(descriptor, pieces)

    def sync(self, descriptor: int) -> None:
        """Sync, or fail."""
        self.fail("sync")
        super().sync(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Rename, or fail."""
        self.fail("rename")
        super().rename(old, new)

    def sync_directory(self, path: Path) -> None:
        """Sync, or fail."""
        self.fail("sync_directory")
        super().sync_directory(path)

    def unlink(self, path: Path) -> None:
        """Unlink, or fail."""
        self.fail("unlink")
        super().unlink(path)

    def open(self, path: Path) -> int:
        """Open, or fail."""
        self.fail("open")
        return super().open(path)

    def read(self, descriptor: int, offset: int, into: memoryview) -> int:
        """Read, or fail."""
        self.fail("read")
        return super().read(descriptor, offset, into)


def everything(store: Store) -> tuple[object, ...]:
    """Return what a refusal must not change."""
    stats = replace(store.stats(), gets=0, read_bytes=0)
    files = {path.name: path.read_bytes() for path in (store.path / "objects").iterdir()}
    return stats, sorted(store.keys()), files, store.identity


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename", "sync_directory"])
def test_a_put_that_fails_changes_nothing(tmp_path: Path, operation: str, code: int) -> None:
    files = Faulty(operation, code)
    room = size_of_one(tmp_path)  # so that another object would have to evict the one
    with opened(tmp_path / "s", room=room, files=files) as store:
        store.put("k", value(1))
        before = everything(store)
        files.armed = True
        for key in ("k", "another"):
            with pytest.raises(DiskError, match=os.strerror(code)):
                store.put(key, value(2))
        files.armed = False
        assert everything(store) == before
        assert version_of(store.get("k")) == 1
    with opened(tmp_path / "s") as again:
        assert (again.keys(), version_of(again.get("k"))) == (["k"], 1)


def test_a_put_that_the_manifest_has_no_room_for_changes_nothing(store: Store) -> None:
    connection = store._folder.manifest._connection
    connection.execute("PRAGMA max_page_count = 1")  # SQLite makes it as many as there are
    before, refusal = everything(store), ""
    for number in range(50):
        try:
            store.put(f"{number}" + "k" * 1000, value(2))
        except DiskError as error:
            refusal = str(error)
            break
        before = everything(store)
    assert "full" in refusal
    assert everything(store) == before
    store.close()
    with opened(store.path) as again:
        assert sorted(again.keys()) == before[1]


@pytest.mark.parametrize("operation", ["open", "read"])
def test_an_object_that_cannot_be_read_now_is_kept(tmp_path: Path, operation: str) -> None:
    files = Faulty(operation, errno.EIO)
    with opened(tmp_path, files=files) as store:
        store.put("k", value(1))
        files.armed = True
        with pytest.raises(DiskError, match=f"cannot {operation} .*Input/output error"):
            store.get("k")
        files.armed = False
        assert version_of(store.get("k")) == 1


def test_a_file_that_cannot_be_removed_is_left_for_the_next_opening(tmp_path: Path) -> None:
    files = Faulty("unlink", errno.EACCES)
    with opened(tmp_path, files=files) as store:
        store.put("k", value(1))
        files.armed = True
        store.put("k", value(2))
        store.put("gone", value(3))
        store.drop("gone")
        assert store.stats().left_behind == 2
    with opened(tmp_path) as again:
        assert (again.stats().orphans, again.keys()) == (2, ["k"])
        assert version_of(again.get("k")) == 2


@contextmanager
def with_modes(modes: dict[Path, int]) -> Iterator[None]:
    """Give folders and files other modes, and a superuser, whom they do not bind, another name."""
    before = {path: path.stat().st_mode for path in modes}
    for path, mode in modes.items():
        path.chmod(mode)
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)
        for path, mode in before.items():
            path.chmod(mode)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Give a folder that is not inside one that is closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name) / "store"


def test_a_folder_that_may_not_be_written_is_refused(open_to_all: Path) -> None:
    with opened(open_to_all) as store:
        store.put("k", value(1))
    modes = {open_to_all: 0o555, open_to_all / "lock": 0o444}
    with with_modes(modes), pytest.raises(DiskError, match="lock: Permission denied"):
        opened(open_to_all)
    with opened(open_to_all) as store:
        assert version_of(store.get("k")) == 1


def test_a_folder_that_may_no_longer_be_written_is_still_read(open_to_all: Path) -> None:
    with opened(open_to_all) as store:
        store.put("k", value(1))
        with with_modes({open_to_all / "objects": 0o555}):
            with pytest.raises(DiskError, match="Permission denied"):
                store.put("k", value(2))
            assert version_of(store.get("k")) == 1
        assert (store.keys(), store.stats().puts) == (["k"], 1)


def test_a_folder_that_may_not_be_looked_into_is_refused(open_to_all: Path) -> None:
    open_to_all.mkdir()
    with (
        with_modes({open_to_all: 0o000}),
        pytest.raises(DiskError, match="Permission denied"),
    ):
        opened(open_to_all)
    assert list(open_to_all.iterdir()) == []


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(DiskError, match="not a folder"):
        opened(path)
    assert path.read_text() == "mine"


def test_a_second_store_is_refused_and_told_who_has_the_folder(store: Store) -> None:
    with pytest.raises(LockedError, match=f"in use by process {os.getpid()}"):
        opened(store.path)
    with pytest.raises(LockedError):
        Store.rebuild(store.path)
    assert version_of(store.get("k")) == 1


def test_who_has_the_folder_is_told_and_not_who_had_it_before(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("9" * 12)
    with opened(tmp_path), pytest.raises(LockedError, match=f"process {os.getpid()};"):
        opened(tmp_path)


def test_a_store_never_asks_a_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> float:
        raise AssertionError("a clock was asked, and clocks go backwards")

    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"):
        monkeypatch.setattr(time, name, asked)
    with opened(tmp_path) as store:
        for key in ("a", "b"):
            store.put(key, value(1))
        store.get("a")
    with opened(tmp_path) as store:
        assert store.keys() == ["b", "a"]
