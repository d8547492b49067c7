"""A store holds no more than it may, and nothing goes that a load reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.impl.tier_folder import Slow, flip, opened, size_of_one, the_file
from tests.impl.tier_workload import IDENTITY, value, version_of

from fivestate.impl.tiers import Corrupt, Store
from fivestate.impl.tiers.digest import CHUNK_BYTES
from fivestate.impl.tiers.errors import ClosedError, FullError, HeldError, TooLargeError
from fivestate.impl.tiers.files import Files


def test_the_least_recently_used_goes_first_and_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    room = 3 * size_of_one(tmp_path)
    with Store.open(
        tmp_path / "s", identity=IDENTITY, capacity_bytes=room, on_evicted=told.append
    ) as store:
        for key in "abc":
            store.put(key, value(1))
        store.get("a")
        store.put("d", value(1))
        assert told == ["b"]
        assert store.keys() == ["c", "a", "d"]
        assert store.stats().used_bytes == room


def test_the_order_of_use_outlives_the_process(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for key in "abc":
            store.put(key, value(1))
        store.get("a")
    with opened(tmp_path) as store:
        assert store.keys() == ["b", "c", "a"]


@pytest.mark.parametrize("dropped", [False, True])
def test_what_was_read_and_then_went_is_gone_for_the_next_process_too(
    tmp_path: Path, *, dropped: bool
) -> None:
    room = 2 * size_of_one(tmp_path)
    with opened(tmp_path / "s", room=room) as store:
        for key in "ab":
            store.put(key, value(1))
        for key in "ab":
            store.get(key)
        if dropped:
            store.drop("a")
        store.put("c", value(1))
    with opened(tmp_path / "s", room=room) as store:
        assert (store.keys(), store.stats().without_file) == (["b", "c"], 0)


def test_a_smaller_capacity_evicts_at_the_opening(tmp_path: Path) -> None:
    size = size_of_one(tmp_path)
    with opened(tmp_path / "s") as store:
        for key in "abc":
            store.put(key, value(1))
    with opened(tmp_path / "s", room=2 * size) as store:
        assert store.keys() == ["b", "c"]
        assert len(list((store.path / "objects").iterdir())) == 2


def test_an_object_larger_than_the_capacity_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "s", room=size_of_one(tmp_path)) as store:
        store.put("a", value(1))
        with pytest.raises(TooLargeError, match="capacity_bytes = "):
            store.put("b", value(1, rows=1000))
        assert store.keys() == ["a"]


@pytest.fixture
def read_slowly(tmp_path: Path) -> Iterator[tuple[Store, Slow, list[int]]]:
    """Give a store with room for one object, `a`, that a load is reading."""
    files, found = Slow(), list[int]()
    room = size_of_one(tmp_path)
    with Store.open(tmp_path / "s", identity=IDENTITY, capacity_bytes=room, files=files) as store:
        store.put("a", value(1))
        load = threading.Thread(target=lambda: found.append(version_of(store.get("a"))))
        load.start()
        assert files.reading.wait(30)
        yield store, files, found
        files.go_on.set()
        load.join()
        assert found == [1]


def test_what_a_load_reads_is_not_evicted(read_slowly: tuple[Store, Slow, list[int]]) -> None:
    store, _, _ = read_slowly
    with pytest.raises(FullError, match="loads read"):
        store.put("b", value(2))
    assert store.keys() == ["a"]
    assert the_file(store).stat().st_size == store.stats().used_bytes


def test_what_a_load_reads_is_not_dropped(read_slowly: tuple[Store, Slow, list[int]]) -> None:
    store, _, _ = read_slowly
    with pytest.raises(HeldError, match="loads that read it = 1"):
        store.drop("a")
    with pytest.raises(HeldError):
        store.change_weights(2)
    assert store.identity == IDENTITY
    assert store.keys() == ["a"]


def test_a_load_reads_to_its_end_what_it_began(read_slowly: tuple[Store, Slow, list[int]]) -> None:
    store, files, _ = read_slowly
    store.put("a", value(2))
    files.reading.clear()
    files.go_on.set()
    assert version_of(store.get("a")) == 2


def test_a_load_that_finds_the_earlier_version_damaged_leaves_the_later_alone(
    tmp_path: Path,
) -> None:
    files, found = Slow(), list[object]()

    def load(store: Store) -> None:
        try:
            store.get("a")
        except Corrupt as error:
            found.append(error.key)

    with opened(tmp_path, files=files) as store:
        store.put("a", value(1))
        flip(the_file(store), -1)
        thread = threading.Thread(target=load, args=(store,))
        thread.start()
        assert files.reading.wait(30)
        store.put("a", value(2))
        files.go_on.set()
        thread.join()
        assert found == ["a"]
        assert version_of(store.get("a")) == 2


def test_a_close_waits_for_what_is_under_way(
    read_slowly: tuple[Store, Slow, list[int]],
) -> None:
    store, files, found = read_slowly
    closer = threading.Thread(target=store.close)
    closer.start()
    while store._open:
        threading.Event().wait(0.001)
    with pytest.raises(ClosedError):
        store.get("a")
    files.go_on.set()
    closer.join()
    assert found == [1]


class Late(Files):
    """Files whose reads of all but the beginning take long, and are counted while they last."""

    def __init__(self) -> None:
        self.lock, self.active, self.most = threading.Lock(), 0, 0

    def read(self, descriptor: int, offset: int, into: memoryview) -> int:
        """Read, slowly."""
        if offset < CHUNK_BYTES:
            return super().read(descriptor, offset, into)
        with self.lock:
            self.active += 1
            self.most = max(self.most, self.active)
        threading.Event().wait(0.05)
        done = super().read(descriptor, offset, into)
        with self.lock:
            self.active -= 1
        return done


def test_nothing_is_written_into_a_frame_after_a_load_has_failed(tmp_path: Path) -> None:
    files = Late()
    with opened(tmp_path, room=1 << 30, files=files) as store:
        store.put("a", {"t": torch.arange(4 * CHUNK_BYTES // 8)})
        flip(the_file(store), 4096)  # in the first chunk, which is read at once
        with pytest.raises(Corrupt):
            store.get("a", into={"t": torch.zeros(4 * CHUNK_BYTES // 8, dtype=torch.int64)})
        assert files.active == 0
        assert files.most >= 1


def test_a_large_object_comes_back_whole_and_each_of_its_chunks_is_checked(tmp_path: Path) -> None:
    tensor = torch.arange(CHUNK_BYTES // 2)  # four chunks
    with opened(tmp_path, room=1 << 30) as store:
        for chunk in range(4):
            store.put("a", {"t": tensor, "u": torch.ones(3)})
            assert torch.equal(store.get("a")["t"], tensor)
            flip(the_file(store), -12 - tensor.nbytes + chunk * CHUNK_BYTES)
            with pytest.raises(Corrupt, match="its bytes from"):
                store.get("a")
