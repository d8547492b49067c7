"""Prompts known before a crash match again, and leases are recovered by themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from tests.impl.token_engine import HYBRID, Engine

from fivestate.impl.allocator import Allocator
from fivestate.impl.cache import Cache
from fivestate.impl.chain import Cell
from fivestate.impl.recovery import DiskCopies, HostCopies, Worker, restore
from fivestate.impl.recovery.warm import Warmth, warm
from fivestate.impl.tiers import Store, StoreIdentity
from fivestate.spec.reuse import Geometry, Kind, Means
from fivestate.spec.reuse.files import preset

SOON_SECONDS = 30.0
PLENTY_BYTES = 1 << 26


def engine_on(folder: Path, geometry: Geometry = HYBRID) -> Engine:
    """Return an engine whose cache has a store on disk, and knows what is in it."""
    engine = Engine(geometry, 256, disk=True)
    identity = StoreIdentity.of(geometry, layout="0", weights=0)
    store = Store.open(folder, identity=identity, capacity_bytes=PLENTY_BYTES)
    disk = DiskCopies(store, PLENTY_BYTES)
    settings = replace(engine.allocator.settings, host=HostCopies(), disk=disk)
    engine.allocator = Allocator(settings)
    restore(engine.allocator)
    engine.cache = Cache(engine.allocator, in_flight_tokens=64)
    engine.memory = {
        name: pool.storage.numpy().view("u8") for name, pool in engine.allocator.pools.items()
    }
    return engine


def told(engine: Engine, tokens: list[int]) -> None:
    """Serve a prompt from its first token, and let what it wrote be known."""
    sequence = engine.start(tokens)
    engine.fill(sequence, len(tokens) - sequence.verified)
    engine.commit(sequence)
    engine.release(sequence)


def closed(engine: Engine) -> None:
    disk = engine.allocator.settings.disk
    assert isinstance(disk, DiskCopies)
    disk.close()


PROMPT = list(range(1, 60))


@pytest.mark.parametrize("geometry", [HYBRID, preset("toy")], ids=lambda each: each.name)
def test_a_prompt_known_before_a_crash_resumes_there_again_once_it_is_loaded(
    tmp_path: Path, geometry: Geometry
) -> None:
    before = engine_on(tmp_path, geometry)
    with Worker(before.allocator) as worker:
        told(before, PROMPT)
        resume = before.cache.match(PROMPT).resume
        worker.persist()
        assert worker.idle(SOON_SECONDS)
    closed(before)
    after = engine_on(tmp_path, geometry)
    match = after.cache.match(PROMPT)
    assert match.kind is Kind.PARTIAL
    assert match.resume == resume > 0
    assert Means.LOAD_BACK in {step.means for step in match.plan.steps}
    with Worker(after.allocator) as worker:
        sequence = after.start(PROMPT)
        worker.recover(after.cache.recover(sequence.lease).node)
        assert worker.idle(SOON_SECONDS)
        assert after.recover(sequence)  # makes what is not stored, and checks every row
        after.fill(sequence, len(PROMPT) - sequence.verified)
        after.check()
        assert worker.counts["Fetch good"] == worker.counts["Load good"] > 0
        after.release(sequence)
    left = {step.means for step in after.cache.match(PROMPT).plan.steps}
    assert left <= {Means.RECOMPUTE}  # of tokens behind the last whole block
    closed(after)


def test_a_lease_that_is_released_while_a_load_flies_leaves_its_blocks_in_doubt(
    tmp_path: Path,
) -> None:
    before = engine_on(tmp_path)
    with Worker(before.allocator) as worker:
        told(before, PROMPT)
        worker.persist()
        assert worker.idle(SOON_SECONDS)
    closed(before)
    after, flying, free = engine_on(tmp_path), Event(), Event()

    def stuck(_cell: Cell) -> int:
        flying.set()
        assert free.wait(SOON_SECONDS)
        return 0

    with Worker(after.allocator, offset=stuck) as worker:
        sequence = after.start(PROMPT)
        worker.recover(after.cache.recover(sequence.lease).node)
        assert flying.wait(SOON_SECONDS)
        after.release(sequence)
        worker.call_back()
        after.allocator.check()
        assert any(after.allocator.doubts.values())
        free.set()
        assert worker.idle(SOON_SECONDS)
        after.allocator.check()
        assert not any(after.allocator.doubts.values())
        again = after.start(PROMPT)
        worker.recover(after.cache.recover(again.lease).node)
        assert worker.idle(SOON_SECONDS)
        assert after.recover(again)
    closed(after)


def test_named_prefixes_are_warm_before_anybody_asks(tmp_path: Path) -> None:
    before = engine_on(tmp_path)
    with Worker(before.allocator) as worker:
        told(before, PROMPT)
        worker.persist()
        assert worker.idle(SOON_SECONDS)
    closed(before)
    after = engine_on(tmp_path)
    named = {"system": PROMPT, "new": [*range(100, 160)]}
    with Worker(after.allocator) as worker:
        begun = warm(after.cache, worker, named)
        assert begun == {"system": Warmth.BEGUN, "new": Warmth.UNKNOWN}
        assert worker.idle(SOON_SECONDS)
        left = {step.means for step in after.cache.match(PROMPT).plan.steps}
        assert Means.LOAD_BACK not in left
        sequence = after.start(PROMPT)
        assert warm(after.cache, worker, {"system": PROMPT}) == {"system": Warmth.WANTED}
        assert after.recover(sequence)
        after.release(sequence)
        assert warm(after.cache, worker, {"system": PROMPT}) == {"system": Warmth.THERE}
    closed(after)


def test_a_worker_of_another_allocator_warms_nothing_up(tmp_path: Path) -> None:
    one, other = engine_on(tmp_path / "one"), engine_on(tmp_path / "other")
    with Worker(other.allocator) as worker, pytest.raises(ValueError, match="another allocator"):
        warm(one.cache, worker, {})
    closed(one)
    closed(other)
