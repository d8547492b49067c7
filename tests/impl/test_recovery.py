"""What is owed comes back by itself, within its budget; what is given up in the middle lands."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from threading import Event

import pytest
from tests.impl.recovery_world import (
    GEOMETRY,
    SOON_SECONDS,
    STEP,
    Engine,
    allocator,
    archived,
    digests,
    expected,
)

from fivestate.impl.allocator import Allocator
from fivestate.impl.recovery import DiskCopies, HostCopies, Worker
from fivestate.impl.recovery.moves import Load
from fivestate.impl.refusals import Refused
from fivestate.impl.tiers import Budget, Outcome, Transfer
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, Copy, Device, Phase


@pytest.fixture
def home(tmp_path: Path) -> Allocator:
    return allocator(tmp_path / "disk")


def test_a_prefix_comes_back_from_disk_with_every_byte(home: Allocator) -> None:
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, "a", "b", "c")
        for state in (COMPRESSED, WINDOW):
            home.drop(node, state)  # in host memory: the disk is left
        request = engine.ask(node)
        assert request.phase is Phase.RECOVERING
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        engine.compute(node)
        home.resume(request, node)
        engine.read(request)
        assert worker.counts["Fetch good"] == worker.counts["Load good"] == 2
        home.check()


def test_what_lies_in_the_wrong_place_is_repacked_before_it_is_read(home: Allocator) -> None:
    engine = Engine(home)
    with Worker(home, offset=lambda _cell: 3) as worker:
        node = archived(engine, worker, "a", "b")
        request = engine.ask(node)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        assert worker.counts["Load misaligned"] == worker.counts["Repack good"] == 2
        engine.compute(node)
        home.resume(request, node)
        engine.read(request)


def test_what_other_kernels_wrote_is_repacked_before_it_is_read(home: Allocator) -> None:
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, "a", "b")
        home.change_kernels()
        request = engine.ask(node)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        assert worker.counts["Repack good"] == 2
        engine.compute(node)
        home.resume(request, node)
        engine.read(request)


def damaged(home: Allocator) -> None:
    """A window's copy in host memory has changed: it is dropped, and the window is replayed."""
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, "a", "b")
        host = home.settings.host
        assert isinstance(host, HostCopies)
        copied = node.cells[WINDOW].copy
        assert copied is not None
        with host.memory.reading(host._views[copied.key].name) as tensors:
            tensors["w"][0, 0] ^= 1
        request = engine.ask(node)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        engine.compute(node)
        home.resume(request, node)
        engine.read(request)
        assert worker.counts["Load bad"] == 1
        assert home.copy_of(node.cells[WINDOW]) is home.disk_of(node.cells[WINDOW]) is Copy.NONE


def test_a_corrupt_copy_is_dropped_and_computed_again(home: Allocator) -> None:
    damaged(home)


def test_a_tier_that_gives_what_it_has_without_looking_is_found_out(
    home: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = home.settings.host
    assert isinstance(host, HostCopies)
    objects = host.memory._objects
    monkeypatch.setattr(host, "_read", lambda name: nullcontext(objects[name]))
    with pytest.raises(AssertionError, match="WINDOW"):
        damaged(home)


def test_a_load_that_counts_as_good_however_it_ended_is_found_out(
    home: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = Load.settle
    monkeypatch.setattr(Load, "settle", lambda move, _outcome: settle(move, Outcome.GOOD))
    with pytest.raises(AssertionError, match="WINDOW"):
        damaged(home)


def test_corrupt_entries_make_the_prefix_unknown_and_it_is_computed_again(home: Allocator) -> None:
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, "a", "b")
        host = home.settings.host
        assert isinstance(host, HostCopies)
        copied = node.cells[COMPRESSED].copy
        assert copied is not None
        with host.memory.reading(host._views[copied.key].name) as tensors:
            tensors["c4"][0, 0] ^= 1
        request = engine.ask(node)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        assert not node.known
        engine.compute(node)
        home.publish(node)
        home.resume(request, node)
        engine.read(request)


def test_a_recovery_whose_entries_in_the_middle_do_not_check_is_lost_and_asked_again(
    home: Allocator,
) -> None:
    engine = Engine(home)
    with Worker(home) as worker:
        engine.publish(digests("a"))
        engine.publish(digests("a", "b"))
        node = archived(engine, worker, "a", "b", "c")
        middle, host = node.parent, home.settings.host
        assert middle is not None
        assert isinstance(host, HostCopies)
        copied = middle.cells[COMPRESSED].copy
        assert copied is not None
        with host.memory.reading(host._views[copied.key].name) as tensors:
            tensors["c2"][0, 0] ^= 1
        request = engine.ask(node)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        assert worker.lost(node)
        worker.abort(request)
        home.check()
        request = engine.ask(middle)
        assert not worker.lost(middle)
        worker.recover(middle)
        assert worker.wait(middle, SOON_SECONDS)
        engine.compute(middle)
        home.publish(middle)
        home.resume(request, middle)
        engine.read(request)


def test_two_requests_share_one_recovery_and_the_first_may_go(home: Allocator) -> None:
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, "a", "b")
        one, other = engine.ask(node, "one"), engine.ask(node, "other")
        worker.recover(node)
        worker.recover(node)
        worker.abort(one)
        assert worker.wait(node, SOON_SECONDS)
        engine.compute(node)
        home.resume(other, node)
        engine.read(other)
        assert worker.counts["Load good"] == 2


def test_loads_go_before_stores_and_never_over_the_budget(home: Allocator) -> None:
    engine, flying, most = Engine(home), [0], [0]
    order: list[str] = []

    def before(transfer: Transfer) -> None:
        with home.lock:
            flying[0] += 1
            most[0] = max(most[0], flying[0])
            order.append(transfer.kind.name)
            if len(order) == 1:
                first.set()
        if transfer.kind.name == "STORE" and len(order) == 1:
            assert gate.wait(SOON_SECONDS)
        with home.lock:
            flying[0] -= 1

    first, gate = Event(), Event()
    gate.set()
    with Worker(home, budget=Budget(workers=1, frames=1), before=before) as worker:
        kept = archived(engine, worker, "kept")
        new = [engine.publish(digests(f"new {n}")) for n in range(3)]
        order.clear()
        first.clear()
        gate.clear()
        for node in new:
            worker.store(node, COMPRESSED)
        assert first.wait(SOON_SECONDS)
        request = engine.ask(kept)
        worker.recover(kept)
        gate.set()
        assert worker.idle(SOON_SECONDS)
        assert order[:3] == ["STORE", "LOAD", "LOAD"]
        assert most[0] == 1
        engine.compute(kept)
        home.resume(request, kept)
        engine.read(request)


def test_the_allocators_own_budget_postpones_a_load_and_does_not_lose_it(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk", transfers_at_once=1)
    engine = Engine(home)
    with Worker(home, budget=Budget(workers=4)) as worker:
        nodes = [archived(engine, worker, name) for name in "abcd"]
        requests = [engine.ask(node) for node in nodes]
        for node in nodes:
            worker.recover(node)
        for node, request in zip(nodes, requests, strict=True):
            assert worker.wait(node, SOON_SECONDS)
            engine.compute(node)
            home.resume(request, node)
            engine.read(request)


def test_a_prefetch_takes_what_is_left_over_and_a_request_finds_a_hit(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk", reserve=60)
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, "a")
        worker.prefetch(node)
        assert worker.wait(node, SOON_SECONDS)
        assert not node.prefetching
        assert node.cells[COMPRESSED].device is node.cells[WINDOW].device is Device.READY
        long = archived(engine, worker, *"bcdefgh")
        with pytest.raises(Refused, match="reserve"):
            worker.prefetch(long)
        home.check()


def test_a_prefetch_ends_with_what_could_be_moved_and_gives_the_rest_back(home: Allocator) -> None:
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, "a", "b")
        worker.prefetch(node)
        assert worker.wait(node, SOON_SECONDS)
        assert node.cells[COMPRESSED].device is Device.READY
        assert all(cell.device is not Device.RESERVED for cell in node.cells.values())
        assert not node.recoverers
        home.check()


def test_the_host_keeps_to_its_capacity_and_the_disk_has_the_rest(tmp_path: Path) -> None:
    places = {"c2": 4, "c4": 2, "w": 4}
    home = allocator(tmp_path / "disk", host_blocks=places)
    engine = Engine(home)

    def within() -> None:
        for state, groups in home.groups_of.items():
            for group in groups:
                assert home.copies(group.name, state) <= places.get(group.name, 0)

    with Worker(home) as worker:
        nodes = [archived(engine, worker, name) for name in "abcdef"]
        within()
        for node in nodes:
            request = engine.ask(node)
            worker.recover(node)
            assert worker.wait(node, SOON_SECONDS)
            within()
            engine.compute(node)
            home.resume(request, node)
            engine.read(request)
        assert worker.counts["Fetch good"]


def test_the_disk_keeps_to_its_capacity_and_lets_the_oldest_go(tmp_path: Path) -> None:
    home = allocator(tmp_path / "disk", disk_bytes=350)
    engine, disk = Engine(home), home.settings.disk
    assert isinstance(disk, DiskCopies)
    with Worker(home) as worker:
        nodes = [engine.publish(digests(name)) for name in "abcdef"]
        for node in nodes:
            worker.store(node, COMPRESSED)
            assert worker.idle(SOON_SECONDS)
            assert disk.used_bytes <= 350
            assert len(disk.store.keys()) <= 350 // 112 + 1  # files go before the next is written
    on_disk = [node.cells[COMPRESSED].disk is not None for node in nodes]
    assert on_disk == sorted(on_disk)
    assert on_disk[-1]
    assert not on_disk[0]


def test_a_copy_that_is_split_gives_each_part_its_own_bytes(home: Allocator) -> None:
    engine = Engine(home)
    with Worker(home) as worker:
        node = archived(engine, worker, *"abcd")
        fork = engine.node(digests("a", "b"))
        assert (fork.end_tokens, node.start_tokens) == (2 * STEP, 2 * STEP)
        request = engine.ask(node)
        worker.recover(node)
        assert worker.wait(node, SOON_SECONDS)
        engine.compute(node)
        home.resume(request, node)
        engine.read(request)


def test_the_bytes_of_the_world_differ_from_place_to_place(home: Allocator) -> None:
    """Or no comparison above would notice a block in the wrong place."""
    engine = Engine(home)
    pages: list[bytes] = []
    for node in (engine.publish(digests("a", "b", "c")), engine.publish(digests("b", "c"))):
        for cell in node.cells.values():
            for page in expected(cell, home.layout).values():
                pages += [bytes(row.tolist()) for row in page]
    assert len(set(pages)) == len(pages) > len(GEOMETRY.groups)


def test_all_is_kept_in_the_end_though_host_memory_and_the_queue_are_small(
    tmp_path: Path,
) -> None:
    home = allocator(tmp_path / "disk", host_blocks={"c2": 4, "c4": 2, "w": 4})
    engine = Engine(home)
    with Worker(home, budget=Budget(queue=2)) as worker:
        nodes = [engine.publish(digests(name)) for name in "abcdef"]
        worker.persist()
        assert worker.idle(SOON_SECONDS)
        for node in nodes:
            assert all(node.cells[state].disk is not None for state in (COMPRESSED, WINDOW))
