"""Between tiers: digests go along with the bytes, and room is claimed by one transfer alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.impl.recovery_world import SOON_SECONDS, Engine, allocator, digests
from tests.impl.tier_folder import opened
from tests.impl.tier_workload import value

from fivestate.impl.allocator import Allocator
from fivestate.impl.recovery import DiskCopies, HostCopies, Worker
from fivestate.impl.recovery.copies import View
from fivestate.impl.recovery.stores import Demote
from fivestate.impl.tiers import Corrupt, HostTier, Outcome, Store, Vouched, demote, fetch
from fivestate.spec.vocabulary import COMPRESSED

ONE_BYTES = 112
"""What the entries of one block take in this world."""


@contextmanager
def flipped(found: Vouched) -> Iterator[Vouched]:
    """Change what was checked, before the next tier has it."""
    found.tensors["rows"][0] ^= 1
    yield found


def down(host: HostTier[str], disk: Store, patch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Change an object on its way to the disk; return who loads it from there."""
    host.put("a", value(1))
    patch.setattr(host, "vouched", lambda key: flipped(host._objects[key]))
    demote(host, disk, "a")
    return lambda: disk.get("a")


def up(host: HostTier[str], disk: Store, patch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Change an object on its way to host memory; return who loads it from there."""
    disk.put("a", value(1))
    read = disk.read

    def changed(key: str) -> Vouched:
        with flipped(read(key)) as found:
            return found

    patch.setattr(disk, "read", changed)
    fetch(disk, host, "a")
    return lambda: host.get("a")


@pytest.mark.parametrize("way", [down, up])
def test_what_changes_between_two_tiers_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Callable[[], object]]
) -> None:
    with opened(tmp_path) as disk:
        load = way(HostTier[str](1 << 20), disk, monkeypatch)
        with pytest.raises(Corrupt):
            load()


@pytest.mark.parametrize("way", [down, up])
def test_a_tier_that_takes_digests_of_what_has_just_come_serves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Callable[[], object]]
) -> None:
    for tier in (HostTier, Store):
        put: Any = tier.put

        def again(self: object, key: str, given: Any, put: Any = put) -> None:
            put(self, key, given.tensors if isinstance(given, Vouched) else given)

        monkeypatch.setattr(tier, "put", again)
    with opened(tmp_path) as disk:
        way(HostTier[str](1 << 20), disk, monkeypatch)()  # nothing is noticed


def test_what_no_file_can_name_is_refused_also_if_it_is_vouched_for(tmp_path: Path) -> None:
    host = HostTier[str](1 << 20)
    host.put("a", {"t": torch.zeros(2, dtype=torch.complex128)})
    with opened(tmp_path) as disk:
        with pytest.raises(ValueError, match="complex128"):
            demote(host, disk, "a")
        assert disk.keys() == []


def test_an_object_without_a_group_of_its_copy_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="no 'w'"):
        View("name", {"rows": (0, 1), "w": (0, 1)}).of(Vouched.of(value(1)))


def two_at_once(home: Allocator, patch: pytest.MonkeyPatch) -> tuple[list[Outcome], int]:
    """Demote a second cell while the first is written; return the ends, and the most it took."""
    engine, disk = Engine(home), home.settings.disk
    assert isinstance(disk, DiskCopies)
    nodes = [engine.publish(digests(name)) for name in "ab"]
    host, write = home.settings.host, disk._write
    assert isinstance(host, HostCopies)
    with home.lock:
        for node in nodes:
            home.store_begin(node, COMPRESSED)
            cell = node.cells[COMPRESSED]
            assert cell.copy is not None
            pages = {group: home.pools[group].read(ids) for group, ids in cell.blocks.items()}
            host.put(cell.copy.key, pages)
            home.store_good(node, COMPRESSED)
    first, second = (Demote(home, node.cells[COMPRESSED]) for node in nodes)
    assert first.start()
    assert second.start()
    ends: list[Outcome] = []

    def meanwhile(name: str, pages: Any) -> None:
        patch.setattr(disk, "_write", write)
        ends.append(second.carry())
        write(name, pages)

    patch.setattr(disk, "_write", meanwhile)
    ends.append(first.carry())
    used_bytes = disk.used_bytes
    for move, end in zip((second, first), ends, strict=True):
        move.settle(end)
    return ends, used_bytes


@pytest.mark.parametrize(("fit", "end"), [(1, Outcome.BAD), (2, Outcome.GOOD)])
def test_two_transfers_at_once_never_get_the_same_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: int, end: Outcome
) -> None:
    home = allocator(tmp_path, disk_bytes=fit * ONE_BYTES)
    ends, used_bytes = two_at_once(home, monkeypatch)
    assert (ends, used_bytes) == ([end, Outcome.GOOD], fit * ONE_BYTES)
    home.check()


def test_a_disk_that_checks_and_does_not_claim_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = allocator(tmp_path, disk_bytes=ONE_BYTES)
    disk = home.settings.disk
    assert isinstance(disk, DiskCopies)
    monkeypatch.setattr(disk, "claim", lambda _key, size_bytes: not disk.lacks(size_bytes))
    assert two_at_once(home, monkeypatch)[1] == 2 * ONE_BYTES


def test_room_of_a_copy_that_could_not_be_written_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = allocator(tmp_path, disk_bytes=ONE_BYTES)
    engine, disk = Engine(home), home.settings.disk
    assert isinstance(disk, DiskCopies)

    def full(_name: str, _pages: object) -> None:
        raise OSError("no space")

    with Worker(home) as worker:
        for name, context in (("a", monkeypatch.context()), ("b", nullcontext())):
            with context as patch:
                if patch is not None:
                    patch.setattr(disk, "_write", full)
                node = engine.publish(digests(name))
                worker.store(node, COMPRESSED)
                assert worker.idle(SOON_SECONDS)
        assert (worker.counts["Demote bad"], worker.counts["Demote good"]) == (1, 1)
        assert disk.used_bytes == ONE_BYTES
