"""A file that is damaged is a clear refusal or a clean miss, and never a wrong byte."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.impl.tier_folder import flip, opened, the_file
from tests.impl.tier_workload import value, version_of

from fivestate.impl.tiers import Corrupt, Missing, Store, Vouched, object_file
from fivestate.impl.tiers import digest as vouching
from fivestate.impl.tiers.files import Files
from fivestate.impl.tiers.object_file import Label, Unreadable, encode, read_header, read_tensors

FLIPS = 500 if os.environ.get("FIVESTATE_FULL") else 60
NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give a store that has one object."""
    with opened(tmp_path / "store") as store:
        store.put("k", value(1))
        yield store


REGIONS = {
    "length of the header": 0,
    "first byte of the header": 8,
    "seal": 40,
    "middle of the header": 200,
    "first byte of the data": -102,
    "last byte": -1,
}


@pytest.mark.parametrize("offset", REGIONS.values(), ids=REGIONS)
def test_a_flipped_byte_is_found_dropped_and_counted(store: Store, offset: int) -> None:
    flip(the_file(store), offset)
    with pytest.raises(Corrupt, match=r"does not check: .*; it has been dropped"):
        store.get("k")
    assert (store.keys(), store.stats().corrupt, store.stats().used_bytes) == ([], 1, 0)
    assert list((store.path / "objects").iterdir()) == []
    with pytest.raises(Missing):
        store.get("k")


def in_memory(content: bytes, pool: Executor) -> None:
    """Read a whole object file that is never on a disk, and say what does not check."""
    descriptor = os.memfd_create("object")
    try:
        os.write(descriptor, content)
        files = Files()
        read_tensors(files, descriptor, read_header(files, descriptor), None, pool)
    finally:
        os.close(descriptor)


def test_no_flipped_bit_and_no_missing_byte_is_overlooked() -> None:
    label = Label("k", 1, "toy", "1", 1)
    whole = b"".join(encode(label, Vouched.of(value(1))).pieces)
    with ThreadPoolExecutor(1) as pool:
        in_memory(whole, pool)
        for offset in range(len(whole)):
            for mask in (1, 128):
                damaged = bytearray(whole)
                damaged[offset] ^= mask
                with pytest.raises(Unreadable):
                    in_memory(bytes(damaged), pool)
            with pytest.raises(Unreadable):
                in_memory(whole[:offset], pool)
        with pytest.raises(Unreadable):
            in_memory(whole + b"\0", pool)


def test_without_its_digest_a_flipped_byte_would_be_served(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (object_file, vouching):
        monkeypatch.setattr(module, "digest", lambda _: "0" * 32)
    store.put("k", value(1))
    flip(the_file(store), -1)
    with pytest.raises(AssertionError):
        version_of(store.get("k"))


def test_a_truncated_file_is_dropped(store: Store) -> None:
    os.truncate(the_file(store), 300)
    with pytest.raises(Corrupt):
        store.get("k")
    assert store.keys() == []


def test_a_deleted_file_is_a_miss(store: Store) -> None:
    the_file(store).unlink()
    with pytest.raises(Missing, match="its file is gone"):
        store.get("k")
    assert (store.keys(), store.stats().without_file) == ([], 1)


def test_a_whole_file_of_another_object_is_not_taken_for_this_one(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.put("a", value(1))
        first = the_file(store)
        store.put("b", value(2))
        (second,) = {*(tmp_path / "objects").iterdir()} - {first}
        shutil.copy(first, second)
        with pytest.raises(Corrupt, match="another object's file"):
            store.get("b")
        assert version_of(store.get("a")) == 1


def test_an_earlier_file_of_the_same_object_is_not_taken_for_the_later(store: Store) -> None:
    earlier = the_file(store).read_bytes()
    store.put("k", value(2))
    the_file(store).write_bytes(earlier)
    with pytest.raises(Corrupt, match="another object's file"):
        store.get("k")


def test_what_was_dropped_stays_dropped(store: Store) -> None:
    flip(the_file(store), -1)
    with pytest.raises(Corrupt):
        store.get("k")
    store.close()
    with opened(store.path) as again:
        assert again.keys() == []
