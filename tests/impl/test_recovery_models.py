"""A real model goes on, bit for bit, from what an earlier process left on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.impl.model_examples import model, prompt, rng_of

from fivestate.impl.allocator import Allocator, Settings
from fivestate.impl.cache import Cache
from fivestate.impl.models.by_block import ByBlock
from fivestate.impl.models.labels import DiskRows, HostRows
from fivestate.impl.models.layout import Layout, layout_of
from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.provenance import Node
from fivestate.impl.models.replay import replay, run
from fivestate.impl.recovery import DiskCopies, Worker, restore
from fivestate.impl.retention import Retention
from fivestate.impl.tiers import Store, StoreIdentity
from fivestate.spec.need import blocks
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import Device

SOON_SECONDS = 60.0
TOKENS, PLENTY_BYTES = 512, 1 << 28


def cache_on(folder: Path, layout: Layout, runs: dict[bytes, Node]) -> Cache:
    """Return a cache that knows what is in a folder, and how it was made."""
    geometry = layout.geometry
    identity = StoreIdentity.of(geometry, layout="0", weights=0)
    store = Store.open(folder, identity=identity, capacity_bytes=PLENTY_BYTES)
    settings = Settings(
        geometry=geometry,
        num_blocks={g.name: blocks(TOKENS, g.block_size) for g in geometry.groups},
        storable=frozenset(group.state for group in geometry.groups),
        host=HostRows(runs),
        disk=DiskRows(store, PLENTY_BYTES, runs),
    )
    allocator = Allocator(settings)
    restore(allocator)
    step = geometry.scheduler_block_size
    return Cache(allocator, retention=Retention(Keep.FULL), in_flight_tokens=step)


def closed(cache: Cache) -> None:
    disk = cache.allocator.settings.disk
    assert isinstance(disk, DiskCopies)
    disk.close()


@pytest.mark.parametrize("name", ["deepseek-v4", "gpt-oss", "qwen3"])
def test_logits_behind_a_prefix_from_an_earlier_process_are_those_of_a_replay(
    tmp_path: Path, name: str
) -> None:
    on, rng = model(name), rng_of(7)
    layout, text = layout_of(on.config, dtype=on.dtype), prompt(rng_of(7), 70)
    runs: dict[bytes, Node] = {}
    before = cache_on(tmp_path, layout, runs)
    with Worker(before.allocator) as worker:
        prefixes = PrefixCache(on, store=before)
        lease = prefixes.lease(text)
        for at in range(0, len(text), 25):
            run(on, lease.cache, text[at : at + 25])
        prefixes.commit(lease, text)
        worker.persist()
        assert worker.idle(SOON_SECONDS)
    closed(before)

    after = cache_on(tmp_path, layout, dict(runs))
    with Worker(after.allocator) as worker:
        prefixes = PrefixCache(on, store=after)
        assert isinstance(prefixes._rows, ByBlock)
        question = [*text[:64], *prompt(rng, 9)]
        node = after.match(prefixes._rows._prompt(tuple(question))).found.node
        assert node.cells
        assert all(cell.device is Device.ABSENT for cell in node.cells.values())
        lease = prefixes.lease(question)
        assert lease.resume >= 48
        given = run(on, lease.cache, question[lease.resume :])
        wanted, _ = replay(on, lease.provenance.then(question[lease.resume :]))
        assert torch.equal(given, wanted[lease.resume :])
    closed(after)
