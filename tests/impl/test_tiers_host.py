"""Host memory keeps copies, checks them, holds no more than it may, and gives them to the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.impl.tier_workload import IDENTITY, value, version_of

from fivestate.impl.tiers import (
    Corrupt,
    HostTier,
    Missing,
    Outcome,
    Store,
    StoreError,
    demote,
    fetch,
    load_cell,
    store_cell,
)
from fivestate.impl.tiers.errors import FullError, HeldError, TooLargeError

SIZE_BYTES = sum(tensor.nbytes for tensor in value(1).values())


@pytest.fixture
def host() -> HostTier[str]:
    """Give a host tier with room for three objects."""
    return HostTier(3 * SIZE_BYTES)


def spoil(host: HostTier[str], key: str) -> None:
    host._objects[key].tensors["rows"][-1] ^= 1


def test_what_is_put_is_a_copy_and_so_is_what_is_got(host: HostTier[str]) -> None:
    given = value(1)
    host.put("a", given)
    given["rows"].zero_()
    found = host.get("a")
    assert version_of(found) == 1
    found["rows"].zero_()
    assert version_of(host.get("a")) == 1


def test_an_object_is_copied_into_tensors_that_are_there(host: HostTier[str]) -> None:
    host.put("a", value(3))
    into = {name: torch.zeros_like(tensor) for name, tensor in value(3).items()}
    assert version_of(host.get("a", into=into)) == version_of(into) == 3
    with pytest.raises(ValueError, match="names"):
        host.get("a", into={})


def test_what_there_is_not_is_missing(host: HostTier[str]) -> None:
    with pytest.raises(Missing):
        host.get("a")
    with pytest.raises(KeyError):
        host.get("a")
    host.drop("a")


def test_the_least_recently_used_goes_first_and_is_told() -> None:
    told: list[str] = []
    host = HostTier(3 * SIZE_BYTES, on_evicted=told.append)
    for key in "abc":
        host.put(key, value(1))
    host.get("a")
    host.put("d", value(1))
    assert (told, host.keys(), host.used_bytes) == (["b"], ["c", "a", "d"], 3 * SIZE_BYTES)
    host.put("c", value(2))
    assert (told, host.keys()) == (["b"], ["a", "d", "c"])


def test_what_is_read_is_neither_evicted_nor_dropped(host: HostTier[str]) -> None:
    for key in "abc":
        host.put(key, value(1))
    with host.reading("a"), host.reading("b"), host.reading("c"):
        with pytest.raises(FullError, match=f"loads read {3 * SIZE_BYTES}"):
            host.put("d", value(1))
        with pytest.raises(HeldError):
            host.drop("a")
        assert host.keys() == ["a", "b", "c"]
    host.put("d", value(1))
    assert host.keys() == ["b", "a", "d"]  # in the order in which their readings ended


def test_more_than_the_capacity_is_refused(host: HostTier[str]) -> None:
    host.put("a", value(1))
    with pytest.raises(TooLargeError):
        host.put("b", value(1, rows=1000))
    assert host.keys() == ["a"]
    with pytest.raises(ValueError, match="capacity_bytes = -1"):
        HostTier(-1)


def test_what_has_changed_in_memory_is_dropped_and_not_served(host: HostTier[str]) -> None:
    host.put("a", value(1))
    spoil(host, "a")
    with pytest.raises(Corrupt, match="'rows'"):
        host.get("a")
    assert (host.keys(), host.used_bytes) == ([], 0)


def test_a_cell_goes_down_to_the_disk_and_comes_up_again(
    host: HostTier[str], tmp_path: Path
) -> None:
    with Store.open(tmp_path, identity=IDENTITY, capacity_bytes=1 << 20) as disk:
        host.put("a", value(1))
        demote(host, disk, "a")
        host.drop("a")
        fetch(disk, host, "a")
        assert version_of(host.get("a")) == version_of(disk.get("a")) == 1


def test_what_does_not_check_never_reaches_the_disk(host: HostTier[str], tmp_path: Path) -> None:
    with Store.open(tmp_path, identity=IDENTITY, capacity_bytes=1 << 20) as disk:
        host.put("a", value(1))
        spoil(host, "a")
        with pytest.raises(Corrupt):
            demote(host, disk, "a")
        assert (disk.keys(), host.keys()) == ([], [])


def test_a_load_says_whether_what_came_is_of_use(host: HostTier[str]) -> None:
    host.put("a", {"t": torch.arange(8)})
    region = torch.zeros(64, dtype=torch.int64)
    first = -region.data_ptr() % 64 // 8
    aligned, beside = (region[at : at + 8] for at in (first, first + 9))
    assert load_cell(host, "a", {"t": aligned}, 64) is Outcome.GOOD
    assert load_cell(host, "a", {"t": beside}, 64) is Outcome.MISALIGNED
    assert torch.equal(aligned, beside)
    assert load_cell(host, "b", {"t": aligned}, 64) is Outcome.BAD


def test_a_store_says_whether_it_is_there_to_stay(host: HostTier[str]) -> None:
    assert store_cell(host, "a", value(1)) is Outcome.GOOD
    assert store_cell(host, "b", value(1, rows=1000)) is Outcome.BAD
    assert host.keys() == ["a"]


def test_every_refusal_of_a_tier_is_a_store_error() -> None:
    assert issubclass(Missing, StoreError)
    assert issubclass(Corrupt, StoreError)
    assert str(Missing("a")) == "object 'a': there is none"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device to pin memory for")
def test_memory_is_not_pinned_for_a_device_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="pinned = True"):
        HostTier(1, pinned=True)
    assert not HostTier(1).pinned
