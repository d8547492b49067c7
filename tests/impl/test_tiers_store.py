"""The store keeps what it is given, in files that others read, and no more than it may."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors import safe_open
from tests.impl.tier_folder import opened, size_of_one, the_file
from tests.impl.tier_workload import IDENTITY, value, version_of
from torch import Tensor

from fivestate.impl.tiers import Missing, Store
from fivestate.impl.tiers.errors import ClosedError
from fivestate.impl.tiers.tensors import NAMES


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "store") as store:
        yield store


def same(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors are equal in each bit; a NaN is equal to itself."""
    bits = [each.contiguous().reshape(-1).view(torch.uint8) for each in (left, right)]
    return (left.dtype, left.shape) == (right.dtype, right.shape) and torch.equal(*bits)


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_every_dtype_comes_back_bit_for_bit(store: Store, dtype: torch.dtype) -> None:
    bits = torch.randint(0, 256, (6, 16), dtype=torch.uint8)
    if dtype is torch.bool:
        bits %= 2
    tensor = bits.view(dtype)
    store.put("k", {"t": tensor})
    assert same(store.get("k")["t"], tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.5),
        torch.empty(0, 4),
        torch.arange(12).reshape(3, 4).t(),
        torch.arange(12)[::5],
        torch.ones(2, 3).expand(4, 2, 3),
        torch.ones(3, requires_grad=True),
    ],
    ids=["scalar", "empty", "transposed", "strided", "expanded", "with gradient"],
)
def test_every_shape_comes_back(store: Store, tensor: Tensor) -> None:
    store.put("k", {"t": tensor})
    assert same(store.get("k")["t"], tensor.detach())


def test_an_object_may_have_no_tensors(store: Store) -> None:
    store.put("k", {})
    assert store.get("k") == {}


def test_safetensors_reads_our_files(store: Store) -> None:
    tensors = {"b": torch.arange(5), "a": torch.rand(3, 2).to(torch.bfloat16), "c": torch.ones(1)}
    store.put("k", tensors)
    found = safetensors.torch.load_file(the_file(store))
    assert all(same(found[name], tensors[name]) for name in tensors)
    with safe_open(the_file(store), "pt") as file:
        assert file.metadata()["key"] == "k"
        assert file.metadata()["geometry"] == IDENTITY.geometry


def test_every_tensor_lies_in_its_file_at_a_multiple_of_its_element(store: Store) -> None:
    """So that whoever maps the file may read it where it is."""
    tensors = {"a": torch.ones(3, dtype=torch.uint8), "b": torch.arange(5), "c": torch.ones(1)}
    store.put("k", tensors)
    content = the_file(store).read_bytes()
    data = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:data])
    offsets = {name: data + entries[name]["data_offsets"][0] for name in tensors}
    assert all(offsets[name] % tensors[name].itemsize == 0 for name in tensors)
    assert data % 64 == 0


def test_an_object_is_read_into_tensors_that_are_there(store: Store) -> None:
    store.put("k", value(7))
    into = {name: torch.zeros_like(tensor) for name, tensor in value(7).items()}
    addresses = {name: tensor.data_ptr() for name, tensor in into.items()}
    found = store.get("k", into=into)
    assert version_of(found) == version_of(into) == 7
    assert {name: tensor.data_ptr() for name, tensor in found.items()} == addresses


def test_an_object_is_read_into_a_part_of_a_larger_tensor(store: Store) -> None:
    store.put("k", {"t": torch.arange(6).reshape(2, 3)})
    pages = torch.zeros(2, 8, dtype=torch.int64)
    store.get("k", into={"t": pages[:, 2:5]})
    assert torch.equal(pages[:, 2:5], torch.arange(6).reshape(2, 3))
    assert not pages[:, :2].any()
    assert not pages[:, 5:].any()


@pytest.mark.parametrize(
    ("into", "reason"),
    [
        ({"rows": torch.zeros(24, dtype=torch.int32)}, "names"),
        (value(1, rows=23), "rows"),
        (value(1) | {"scale": torch.zeros(3)}, "float32"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    store: Store, into: dict[str, Tensor], reason: str
) -> None:
    store.put("k", value(1))
    with pytest.raises(ValueError, match=reason):
        store.get("k", into=into)
    assert version_of(store.get("k")) == 1


@pytest.mark.parametrize("key", ["", "k" * 1025, "\ud800"])
def test_a_key_that_is_no_or_too_much_text_is_refused(store: Store, key: str) -> None:
    with pytest.raises(ValueError, match=r"characters|UTF-8"):
        store.put(key, value(1))


@pytest.mark.parametrize(
    "tensors",
    [{"__metadata__": torch.ones(1)}, {"t": torch.ones(1, dtype=torch.complex128)}],
)
def test_what_safetensors_does_not_have_is_refused(
    store: Store, tensors: dict[str, Tensor]
) -> None:
    with pytest.raises(ValueError, match="safetensors"):
        store.put("k", tensors)
    assert store.keys() == []


def test_keys_may_have_any_characters(store: Store) -> None:
    for key in ("../../etc", "a b", "a\0b", "前缀/COMPRESSED", "x" * 1024):
        store.put(key, value(1))
        assert version_of(store.get(key)) == 1


def test_a_later_put_takes_the_place_of_an_earlier(store: Store) -> None:
    store.put("k", value(1))
    store.put("k", value(2))
    assert version_of(store.get("k")) == 2
    assert the_file(store).stat().st_size == store.stats().used_bytes


def test_what_was_dropped_is_missing_and_its_file_gone(store: Store) -> None:
    store.put("k", value(1))
    store.drop("k")
    store.drop("k")
    with pytest.raises(Missing, match="'k': there is none"):
        store.get("k")
    assert list((store.path / "objects").iterdir()) == []
    assert (store.stats().dropped, store.stats().used_bytes) == (1, 0)


def test_a_folder_that_has_other_files_loses_none(tmp_path: Path) -> None:
    (tmp_path / "objects" / "ab").mkdir(parents=True)
    other = tmp_path / "objects" / "notes.safetensors"
    other.write_text("mine")
    with opened(tmp_path) as store:
        store.put("a", value(1))
    with opened(tmp_path):
        assert other.read_text() == "mine"
        assert (tmp_path / "objects" / "ab").is_dir()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put("a", value(1))
    store.close()
    store.close()
    for call in (
        lambda: store.put("a", value(2)),
        lambda: store.get("a"),
        lambda: store.drop("a"),
        lambda: store.is_old("a"),
        lambda: store.change_layout("2"),
        lambda: store.change_weights(2),
    ):
        with pytest.raises(ClosedError, match="is closed"):
            call()


def test_threads_put_and_get_side_by_side(tmp_path: Path) -> None:
    wrong: list[object] = []

    def work(store: Store, number: int) -> None:
        for version in range(1, 20):
            key = f"k{(number + version) % 5}"
            store.put(key, value(version))
            try:
                version_of(store.get(key))
            except Missing:
                pass  # another thread's put has evicted it
            except Exception as error:  # noqa: BLE001 -- told by the main thread
                wrong.append(error)

    with opened(tmp_path / "s", room=4 * size_of_one(tmp_path)) as store:
        threads = [threading.Thread(target=work, args=(store, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = store.stats()
        assert wrong == []
        assert stats.puts == 4 * 19
        sizes = [path.stat().st_size for path in (store.path / "objects").iterdir()]
        assert (len(sizes), sum(sizes)) == (stats.objects, stats.used_bytes)
