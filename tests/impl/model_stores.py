"""Each place that a prefix cache can have its rows in, and how one form of a prefix goes there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tests.impl.model_oracle import oracle
from torch import Tensor
from transformers import Cache, PreTrainedModel

from fivestate.impl.models.by_block import ByBlock, cache_for
from fivestate.impl.models.folder import Folder
from fivestate.impl.models.layout import layout_of
from fivestate.impl.models.prefix_cache import Lease, PrefixCache
from fivestate.impl.models.store import DictStore
from fivestate.spec.vocabulary import Copy, Device

STORES = ("parts", "blocks", "folder")
TOKENS = 320


def prefixes_in(store: str, on: PreTrainedModel, path: Path) -> PrefixCache:
    """Return a prefix cache over one of the places."""
    if store == "parts":
        return PrefixCache(on, store=DictStore())
    if store == "blocks":
        return PrefixCache(on, store=cache_for(layout_of(on.config), TOKENS))
    folder = Folder(path=path, device_tokens=TOKENS, host_tokens=TOKENS)
    return PrefixCache(on, store=folder)


def lose_the_last(prefixes: PrefixCache, group: str) -> None:
    """Let the last rows of a group go, wherever they are: all groups of its state go with it."""
    store = prefixes.store
    if isinstance(store, DictStore):
        last = [key for key in store if key.group == group][-1]
        store.evict(last)
        return
    prefixes.settle()
    rows = prefixes._rows
    assert isinstance(rows, ByBlock)
    allocator = rows._cache.allocator
    state = prefixes.layout.geometry.group(group).state
    [*_, (_, node)] = sorted((n.end_tokens, n) for n in allocator.nodes() if state in n.cells)
    cells = [node.cells[state]]
    if group in ("c4", "c8", "full"):  # what hangs on entries goes first
        cells = [cell for cell in node.cells.values() if cell.state is not state] + cells
    for cell in cells:
        if cell.device is Device.READY:
            allocator.evict(node, cell.state)
        if allocator.copy_of(cell) is not Copy.NONE:
            allocator.drop(node, cell.state)
        if allocator.disk_of(cell) is not Copy.NONE:
            allocator.erase(node, cell.state)


def generated(on: Any, text: list[int], cache: Cache | None) -> tuple[list[int], Tensor]:
    """Return what greedy decoding makes of a prompt: tokens, and the logits of each step."""
    made: Any = on.generate(
        torch.tensor([text]),
        cache=cache,
        max_new_tokens=4,
        do_sample=False,
        eos_token_id=None,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return made.sequences[0].tolist(), torch.cat(made.logits)


def served(prefixes: PrefixCache, text: list[int]) -> tuple[Lease, list[int]]:
    """Do what a user does, and compare with a run that has nothing but the replayed prefix."""
    on = prefixes.model
    lease = prefixes.lease(text)
    baseline = oracle(on, lease.provenance)[1] if lease.resume else None
    tokens, logits = generated(on, text, lease.cache)
    wanted, wanted_logits = generated(on, text, baseline)
    assert tokens == wanted
    assert torch.equal(logits, wanted_logits)
    prefixes.commit(lease, tokens)
    return lease, tokens
