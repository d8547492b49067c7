"""Rows in a folder outlive the process and come back bit for bit, and say why if they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.impl.model_child import SAFE, folder_of, killed_while_it_keeps, text_of
from tests.impl.model_examples import model, prompt, rng_of
from tests.impl.model_folder import (
    below_of,
    change,
    kept,
    objects_of,
    opened,
    right,
    rows_of,
)

from fivestate.impl.models.folder import Folder
from fivestate.impl.models.labels import DiskRows
from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.provenance import Chunk, Node, next_run
from fivestate.impl.models.tiny import tiny
from fivestate.impl.tiers import StoreError
from fivestate.impl.tiers.errors import (
    ClosedError,
    GeometryError,
    LockedError,
    VersionError,
)
from fivestate.spec.reuse import Kind, Means, Why
from fivestate.spec.vocabulary import INDEXER

NAMES = ["deepseek-v4", "gpt-oss", "qwen3"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return folders that a process has left that was killed while it kept rows."""
    root = tmp_path_factory.mktemp("killed")
    killed_while_it_keeps(root, NAMES)
    return root


@pytest.mark.parametrize("name", NAMES)
def test_who_opens_the_folder_of_a_killed_process_reuses_its_rows_bit_for_bit(
    killed: Path, name: str
) -> None:
    folder = folder_of(killed, name)
    with PrefixCache(model(name), store=folder) as prefixes:
        for number in (*range(SAFE), SAFE, SAFE + 1, 0):
            lease = right(prefixes, text_of(number))
            if number < SAFE:
                assert (lease.verdict.kind, lease.resume) == (Kind.PARTIAL, 64)
                assert {step.means for step in lease.verdict.plan.steps} == {Means.LOAD_BACK}
    with PrefixCache(model(name), store=folder) as prefixes:
        assert [prefixes.match(text_of(number)).resume for number in range(SAFE + 2)] == [64] * 4


def test_host_memory_and_the_device_stay_within_their_bounds_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, device_tokens=128, host_tokens=48) as prefixes:
        texts = [prompt(rng_of(seed), 70) for seed in range(5)]
        for text in texts:
            right(prefixes, text)
        allocator, below = rows_of(prefixes)._cache.allocator, below_of(prefixes)
        assert [right(prefixes, text).resume for text in texts] == [64] * 5
        prefixes.settle()
        for state, groups in allocator.groups_of.items():
            for group in groups:
                copies = allocator.copies(group.name, state)
                assert copies <= allocator.settings.host_blocks[group.name]
                assert copies or group.name == "c8_state"  # its groups are whole at each boundary
        assert {name for name, n in below.worker.counts.items() if n} == {
            "Store good",
            "Demote good",
            "Fetch good",
            "Load good",
        }
        allocator.check()


def test_a_disk_that_is_too_small_forgets_the_oldest_and_is_never_wrong(tmp_path: Path) -> None:
    with opened(tmp_path, device_tokens=128, host_tokens=48, disk_bytes=60_000) as prefixes:
        texts = [prompt(rng_of(seed), 70) for seed in range(5)]
        found = [right(prefixes, text).resume for text in (*texts, *texts[::-1])]
        prefixes.settle()
        disk = rows_of(prefixes)._cache.allocator.settings.disk
        assert isinstance(disk, DiskRows)
        largest = max(file.stat().st_size for file in objects_of(tmp_path))
        assert disk.used_bytes <= 60_000 + largest  # the two transfer threads can write at once
        assert 0 in found[5:]
        assert found[5]


def flip(path: Path, at: int) -> None:
    blob = bytearray(path.read_bytes())
    blob[at] ^= 4
    path.write_bytes(bytes(blob))


def damaged_objects(path: Path) -> None:
    for each in objects_of(path):
        flip(each, -3)


def lost_objects(path: Path) -> None:
    for each in objects_of(path)[::3]:
        each.unlink()


@pytest.mark.parametrize(
    ("damage", "resume"),
    [
        (damaged_objects, 0),
        (lost_objects, None),
        (change("DELETE FROM block"), 0),
        (change("UPDATE block SET run = 'another' WHERE end_tokens = 64"), 48),
        (change("UPDATE block SET end_tokens = 63 WHERE end_tokens = 64"), 48),
        (change("UPDATE block SET parent = 7 WHERE end_tokens = 64"), 48),
        (change("UPDATE chunk SET tokens = '[1, 2]' WHERE start_tokens = 50"), 48),
        (change("UPDATE chunk SET tokens = 'no' WHERE start_tokens = 50"), 48),
        (change("DELETE FROM chunk WHERE start_tokens = 50"), 48),
    ],
)
def test_what_is_damaged_or_gone_costs_reuse_and_never_gives_wrong_rows(
    tmp_path: Path, damage: Callable[[Path], None], resume: int | None
) -> None:
    on = model("deepseek-v4" if resume is None else "qwen3")
    text = kept(tmp_path, on)
    damage(tmp_path)
    with opened(tmp_path, on) as prefixes:
        lease = right(prefixes, text)
        assert lease.resume == resume if resume is not None else lease.resume < 64
    with opened(tmp_path, on) as prefixes:
        assert right(prefixes, text).resume == 64


def test_of_two_runs_of_one_block_the_one_that_is_known_is_found_again(tmp_path: Path) -> None:
    """What was dropped just before a crash can come back; it is of a run that nobody knows."""
    text = kept(tmp_path)
    with opened(tmp_path) as prefixes:
        runs, [first, *_] = rows_of(prefixes).runs, rows_of(prefixes)._prompt(tuple(text)).digests()
        chunks = (Chunk(0, tuple(text[:16])),)
        runs[first] = Node(b"", 16, chunks, next_run("", chunks))
    with opened(tmp_path) as prefixes:
        assert right(prefixes, text).resume == 0
        assert right(prefixes, text).resume == 64


def test_rows_of_other_weights_or_kernels_are_dropped_on_opening(tmp_path: Path) -> None:
    text = kept(tmp_path)
    changed = tiny("deepseek-v4", seed=1)
    with opened(tmp_path, changed) as prefixes:
        assert right(prefixes, text).verdict.kind is Kind.MISS
    with opened(tmp_path, changed) as prefixes:
        assert right(prefixes, text).resume == 64
        with torch.no_grad():
            next(changed.parameters()).mul_(1.5)
        lease = right(prefixes, text)
        assert (lease.verdict.kind, lease.resume) == (Kind.MISS, 0)
        assert right(prefixes, text).resume == 64
    with opened(tmp_path, changed) as prefixes:
        assert right(prefixes, text).resume == 64
    with opened(tmp_path) as prefixes:
        assert prefixes.match(text).kind is Kind.MISS


def test_rows_of_other_kernels_are_dropped_on_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kept(tmp_path, model("qwen3"))
    monkeypatch.setattr("transformers.__version__", "6.0.0")
    with opened(tmp_path, model("qwen3")) as prefixes:
        assert prefixes.match(text).kind is Kind.MISS


def test_folders_that_cannot_be_opened_say_why_and_what_to_do(tmp_path: Path) -> None:
    kept(tmp_path)
    prefixes = opened(tmp_path)
    with pytest.raises(LockedError, match="one store at a time may open it"):
        opened(tmp_path)
    prefixes.close()
    prefixes.close()
    with pytest.raises(ClosedError, match="is closed"):
        prefixes.lease([1, 2, 3])
    with pytest.raises(GeometryError, match=r"'deepseek_v4 \w+', not 'qwen3 \w+'; use another"):
        opened(tmp_path, model("qwen3"))
    with pytest.raises(GeometryError, match="use another folder"):
        PrefixCache(model("deepseek-v4"), store=Folder(path=tmp_path), block_size=32)
    change("PRAGMA user_version = 9")(tmp_path)
    with pytest.raises(VersionError, match="has format 9, and this release reads 1"):
        opened(tmp_path)
    (tmp_path / "runs.db").write_bytes(b"this is no table" * 999)
    with pytest.raises(StoreError, match=r"runs\.db: file is not a database; delete that file"):
        opened(tmp_path)
    for file in tmp_path.glob("runs.db*"):
        file.unlink()
    with opened(tmp_path) as prefixes:
        assert prefixes.match(text_of(0)).kind is Kind.MISS


@pytest.mark.parametrize(
    ("name", "size", "allowed"),
    [("device_tokens", 15, 16), ("host_tokens", 31, 32), ("disk_bytes", 0, 1)],
)
def test_a_tier_that_has_too_little_room_is_refused(
    tmp_path: Path, name: str, size: int, allowed: int
) -> None:
    folder = replace(Folder(path=tmp_path), **{name: size})  # type: ignore[arg-type]  # a name that it has
    with pytest.raises(ValueError, match=f"{name} = {size}: {allowed} or more is allowed"):
        PrefixCache(model("deepseek-v4"), store=folder)
    assert not list(tmp_path.iterdir())


def test_reasons_name_what_is_lacking_in_the_folder_too(tmp_path: Path) -> None:
    text = kept(tmp_path)
    with opened(tmp_path) as prefixes:
        allocator = rows_of(prefixes)._cache.allocator
        last = max(allocator.nodes(), key=lambda node: node.end_tokens)
        allocator.erase(last, INDEXER)
        lease = right(prefixes, text)
        assert lease.resume == 48
        assert Why.INDEX_GONE in {reason.why for reason in lease.verdict.reasons}
