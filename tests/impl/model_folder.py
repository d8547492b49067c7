"""Prefix caches over folders, and what is done to them there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import torch
from tests.impl.model_examples import model, prompt, rng_of
from tests.impl.model_oracle import oracle
from transformers import PreTrainedModel

from fivestate.impl.models.below import Below
from fivestate.impl.models.by_block import ByBlock
from fivestate.impl.models.folder import Folder
from fivestate.impl.models.prefix_cache import Lease, PrefixCache
from fivestate.impl.models.replay import run
from fivestate.spec.vocabulary import Device


def opened(path: Path, on: PreTrainedModel | None = None, **sizes: int) -> PrefixCache:
    return PrefixCache(on or model("deepseek-v4"), store=Folder(path=path, **sizes))


def rows_of(prefixes: PrefixCache) -> ByBlock:
    assert isinstance(prefixes._rows, ByBlock)
    return prefixes._rows


def below_of(prefixes: PrefixCache) -> Below:
    below = rows_of(prefixes).below
    assert below is not None
    return below


def right(prefixes: PrefixCache, text: list[int]) -> Lease:
    """Lease, go on, compare bit for bit with the oracle, and commit."""
    lease, on = prefixes.lease(text), prefixes.model
    given = [run(on, lease.cache, text[at : at + 25]) for at in range(lease.resume, len(text), 25)]
    committed = prefixes.commit(lease, text)
    wanted, _ = oracle(on, committed.provenance)
    assert torch.equal(torch.cat(given), wanted[lease.resume :])
    return lease


def evicted(prefixes: PrefixCache) -> None:
    """Let everything go that is on the device and below it."""
    allocator = rows_of(prefixes)._cache.allocator
    prefixes.settle()
    for node in sorted(allocator.nodes(), key=lambda node: -node.end_tokens):
        for state, cell in node.cells.items():
            if cell.device is Device.READY:
                allocator.evict(node, state)


def objects_of(path: Path) -> list[Path]:
    return sorted((path / "objects").iterdir())


def kept(path: Path, on: PreTrainedModel | None = None) -> list[int]:
    """Keep one conversation in a folder and close it."""
    text = prompt(rng_of(3), 70)
    with opened(path, on) as prefixes:
        right(prefixes, text)
    return text


def change(statement: str) -> Callable[[Path], None]:
    """Return what changes the table of runs of a closed folder."""

    def changed(path: Path) -> None:
        connection = sqlite3.connect(path / "runs.db", isolation_level=None)
        connection.execute(statement)
        connection.close()

    return changed
