"""A damaged manifest is refused, and made again from the objects."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.tier_disk import Recorder, crash_states
from tests.impl.tier_folder import flip, opened, the_file
from tests.impl.tier_sqlite import DATABASE, LOG, State
from tests.impl.tier_workload import IDENTITY, value, version_of

from fivestate.impl.tiers import Store, StoreError
from fivestate.impl.tiers.errors import ManifestError
from fivestate.impl.tiers.folder import rebuild

LEAF_WITHOUT_ROWID = 0x0A
"""First byte of such a page; two bytes for the number of its rows are the fourth and fifth."""

FLIPS = 500 if os.environ.get("FIVESTATE_FULL") else 60
NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give a store that has one object."""
    with opened(tmp_path / "store") as store:
        store.put("k", value(1))
        yield store


def damaged(path: Path, how: str) -> None:
    manifest = path / DATABASE
    content = manifest.read_bytes()
    match how:
        case "gone":
            manifest.unlink()
        case "empty":
            manifest.write_bytes(b"")
        case "cut":
            manifest.write_bytes(content[:5000])
        case "overwritten":
            manifest.write_bytes(b"x" * len(content))
        case _:
            manifest.write_bytes(content[:4096] + bytes(len(content) - 4096))


@pytest.mark.parametrize("how", ["gone", "empty", "cut", "overwritten", "zeros"])
def test_a_damaged_manifest_is_refused_and_made_again(tmp_path: Path, how: str) -> None:
    with opened(tmp_path) as store:
        for version in (1, 2, 3):
            store.put(f"k{version}", value(version))
        store.change_layout("2")
        store.put("k4", value(4))
    damaged(tmp_path, how)
    with pytest.raises(ManifestError, match=r"manifest cannot be used .*Store\.rebuild"):
        opened(tmp_path)
    assert len(list((tmp_path / "objects").iterdir())) == 4
    assert Store.rebuild(tmp_path) == (4, [])
    with opened(tmp_path) as again:
        assert again.keys() == ["k1", "k2", "k3", "k4"]
        assert [version_of(again.get(f"k{version}")) for version in (1, 2, 3, 4)] == [1, 2, 3, 4]
        assert [again.is_old(f"k{version}") for version in (1, 2, 3, 4)] == [False] * 3 + [True]


def test_a_manifest_that_has_lost_count_of_its_rows_is_refused(tmp_path: Path) -> None:
    """Else the last object would silently be an orphan, and be removed."""
    with opened(tmp_path) as store:
        for version in (1, 2):
            store.put(f"k{version}", value(version))
    content = bytearray((tmp_path / DATABASE).read_bytes())
    (page,) = (
        start
        for start in range(4096, len(content), 4096)
        if content[start] == LEAF_WITHOUT_ROWID and content[start + 3 : start + 5] == b"\0\2"
    )
    content[page + 4] = 1
    (tmp_path / DATABASE).write_bytes(content)
    with pytest.raises(ManifestError):
        opened(tmp_path)
    assert Store.rebuild(tmp_path) == (2, [])


def test_no_flipped_byte_of_the_manifest_loses_or_changes_an_object(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole", tmp_path / "flipped"
    with opened(whole) as store:
        for version in (1, 2):
            store.put(f"k{version}", value(version))
    size = (whole / DATABASE).stat().st_size
    choose = random.Random(1)  # noqa: S311 -- not for secrets
    refused = 0
    for _ in range(FLIPS):
        shutil.copytree(whole, path)
        page = choose.choice(range(0, size, 4096))  # what is in one is at its ends
        inside = choose.choice([choose.randrange(100), choose.randrange(4096 - 250, 4096)])
        flip(path / DATABASE, page + inside, 1 << choose.randrange(8))
        try:
            store = opened(path)
        except StoreError:
            refused += 1
            Store.rebuild(path)
            store = opened(path)
        with store:
            assert [version_of(store.get(f"k{version}")) for version in (1, 2)] == [1, 2]
        shutil.rmtree(path)
    assert FLIPS > refused > FLIPS // 10


def test_a_rebuild_takes_the_later_of_two_and_leaves_out_what_does_not_check(
    store: Store,
) -> None:
    earlier = the_file(store)
    content = earlier.read_bytes()
    store.put("k", value(2))
    earlier.write_bytes(content)  # as if its removal had been lost
    store.put("damaged", value(3))
    (spoilt,) = (
        path for path in (store.path / "objects").iterdir() if b"damaged" in path.read_bytes()
    )
    flip(spoilt, 60)
    store.close()
    assert Store.rebuild(store.path) == (1, [spoilt])
    with opened(store.path) as again:
        assert (again.keys(), version_of(again.get("k"))) == (["k"], 2)
        assert again.stats().orphans == 2


def test_a_rebuild_does_not_mix_geometries(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with opened(tmp_path / name, identity=replace(IDENTITY, geometry=name)) as store:
            store.put(name, value(1))
    shutil.copytree(tmp_path / "a" / "objects", tmp_path / "b" / "objects", dirs_exist_ok=True)
    before = (tmp_path / "b" / DATABASE).read_bytes()
    with pytest.raises(ManifestError, match="2 geometries"):
        Store.rebuild(tmp_path / "b")
    assert (tmp_path / "b" / DATABASE).read_bytes() == before


def test_a_rebuild_without_objects_leaves_a_folder_as_new(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    damaged(tmp_path, "overwritten")
    assert Store.rebuild(tmp_path) == (0, [])
    with opened(tmp_path, identity=replace(IDENTITY, geometry="other")) as store:
        assert store.keys() == []


def test_a_rebuild_that_a_crash_cuts_short_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "recorded"
    with opened(root) as store:
        for version in (1, 2):
            store.put(f"k{version}", value(version))
    damaged(root, "zeros")
    start: State = {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
    files = Recorder(root)
    rebuild(root, files)
    refused = 0
    states = list(crash_states(files.events, start))
    for number, (_, state) in enumerate(states):
        path = tmp_path / str(number)
        (path / "objects").mkdir(parents=True)
        for name, content in state.items():
            (path / name).write_bytes(content)
        try:
            store = opened(path)
        except ManifestError:
            refused += 1
            Store.rebuild(path)
            store = opened(path)
        with store:
            assert [version_of(store.get(f"k{version}")) for version in (1, 2)] == [1, 2]
    assert 0 < refused < len(states)
    assert all(LOG not in state for _, state in states)
