"""The reference allocator keeps the rows of real models, in blocks, and says no by its guards."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.impl.model_examples import HYBRID, PLAIN, model, prompt, rng_of
from tests.impl.model_oracle import oracle
from tests.impl.model_places import STATES, Blocks

from fivestate.impl.cache import Cache
from fivestate.impl.models.by_block import ByBlock, cache_for
from fivestate.impl.models.layout import layout_of
from fivestate.impl.models.pages import from_pages, to_pages
from fivestate.impl.models.prefix_cache import Committed, Lease, PrefixCache
from fivestate.impl.models.replay import run
from fivestate.impl.models.tiny import tiny
from fivestate.impl.pools import Owner
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Kind, Why
from fivestate.spec.vocabulary import COMPRESSED, WINDOW

TOKENS = 320
"""Tokens that each pool has room for."""


def blocks_of(name: str, tokens: int = TOKENS, **settings: Any) -> tuple[PrefixCache, Cache]:
    """Return a prefix cache over the reference allocator."""
    cache = cache_for(layout_of(model(name).config), tokens, **settings)
    return PrefixCache(model(name), store=cache), cache


def finish(prefixes: PrefixCache, text: list[int], chunk: int = 99) -> tuple[Lease, Committed]:
    """Lease, compute the rest in chunks, compare with the oracle, and commit."""
    lease, on = prefixes.lease(text), prefixes.model
    given = [
        run(on, lease.cache, text[start : start + chunk])
        for start in range(lease.resume, len(text), chunk)
    ]
    committed = prefixes.commit(lease, text)
    wanted, _ = oracle(on, committed.provenance)
    assert torch.equal(torch.cat(given), wanted[lease.resume :])
    return lease, committed


def private(cache: Cache) -> int:
    """Count the blocks that belong to a request, and to no prefix."""
    return sum(int((pool.owner == Owner.PRIVATE).sum()) for pool in cache.allocator.pools.values())


def known(cache: Cache) -> list[int]:
    return sorted(node.end_tokens for node in cache.allocator.nodes() if node.known)


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_a_conversation_goes_on_from_blocks_and_holds_none_in_between(name: str) -> None:
    prefixes, cache = blocks_of(name)
    text = prompt(rng_of(1), 50)
    for resume, more in ((0, 25), (48, 21), (64, 40), (96, 0)):
        lease, committed = finish(prefixes, text)
        assert lease.resume == resume
        assert lease.verdict.kind is (Kind.HIT if resume else Kind.MISS)
        assert known(cache) == list(range(16, len(text) + 1, 16))
        assert committed.boundaries == tuple(end for end in known(cache) if end > resume)
        assert not private(cache)
        text = text + prompt(rng_of(resume), more)


def test_pages_are_rows_in_another_order() -> None:
    layout = layout_of(model("deepseek-v4").config)
    for group in layout.geometry.groups:
        count = 3 * group.entries_per_block
        rows = torch.randn(group.layers, count, layout.widths[group.name])
        pages = to_pages(rows, group)
        assert pages.shape == (3, group.layers * group.page_size_bytes)
        assert torch.equal(from_pages(pages, group, layout), rows)
        one = to_pages(rows[:, group.entries_per_block : 2 * group.entries_per_block], group)
        assert torch.equal(one[0], pages[1])


@pytest.mark.parametrize("name", HYBRID)
def test_the_allocator_s_windows_go_while_its_entries_stay(name: str) -> None:
    prefixes, cache = blocks_of(name)
    text = prompt(rng_of(2), 70)
    finish(prefixes, text)
    last = max(cache.allocator.nodes(), key=lambda node: node.end_tokens)
    cache.allocator.evict(last, WINDOW)
    lease = prefixes.lease(text)
    assert (lease.verdict.kind, lease.resume) == (Kind.PARTIAL, 48)
    assert {reason.why for reason in lease.verdict.reasons} == {Why.WINDOW_GONE}
    _, committed = finish(prefixes, text)
    assert committed.boundaries == (64,)
    assert prefixes.match(text).resume == 64


@pytest.mark.parametrize("name", ["deepseek-v4", "qwen3"])
def test_blocks_of_two_runs_are_never_mixed(name: str) -> None:
    """Entries in the middle are gone, so all that comes behind them is made again, or nothing."""
    prefixes, cache = blocks_of(name)
    text, more = prompt(rng_of(3), 70), prompt(rng_of(4), 30)
    finish(prefixes, text)
    late = prefixes.lease([*text, *more])
    for node in sorted(cache.allocator.nodes(), key=lambda node: -node.end_tokens):
        if node.end_tokens > 16:
            for state in STATES:
                if state in node.cells:
                    cache.allocator.evict(node, state)
    again, _ = finish(prefixes, text, chunk=10)
    assert again.resume == 16
    lease, _ = finish(prefixes, [*text, *more])
    assert lease.resume == 64
    assert [len(chunk.tokens) for chunk in lease.provenance.chunks][1:] == [10] * 5
    run(prefixes.model, late.cache, [*text[64:], *more])
    refused = prefixes.commit(late, [*text, *more])
    assert not refused.boundaries
    assert [getattr(reason, "why", None) for reason in refused.reasons] == [Why.IDENTITY]
    finish(prefixes, [*text, *more, 5, 6, 7])


def test_without_room_less_is_kept_and_the_reason_is_a_guard() -> None:
    prefixes, cache = blocks_of("deepseek-v4", tokens=32)
    _, committed = finish(prefixes, prompt(rng_of(5), 70))
    assert committed.boundaries == (16, 32)
    assert [reason.guard for reason in committed.reasons if isinstance(reason, Refused)] == ["room"]
    assert known(cache) == [16, 32]
    assert not private(cache)
    _, committed = finish(prefixes, prompt(rng_of(6), 40))
    assert committed.boundaries == (16, 32)
    assert not committed.reasons


def test_a_prefix_that_cannot_be_held_while_it_is_copied_is_refused() -> None:
    prefixes, cache = blocks_of("qwen3", slots=1)
    text = prompt(rng_of(7), 40)
    finish(prefixes, text)
    before = known(cache)
    held = cache.lease(cache.match(prompt(rng_of(8), 5)))
    with pytest.raises(Refused, match="guard 'slot'"):
        prefixes.lease(text)
    held.release()
    assert known(cache) == before
    assert prefixes.lease(text).resume == 32


def test_other_weights_flush_every_block() -> None:
    on = tiny("gpt-oss")
    cache = cache_for(layout_of(on.config), TOKENS)
    prefixes = PrefixCache(on, store=cache)
    text = prompt(rng_of(9), 40)
    finish(prefixes, text)
    with torch.no_grad():
        next(on.parameters()).mul_(1.5)
    lease, _ = finish(prefixes, text)
    assert (lease.verdict.kind, cache.allocator.weights) == (Kind.MISS, 1)
    assert finish(prefixes, text)[0].resume == 32


def test_rows_whose_making_is_not_known_are_not_reused() -> None:
    prefixes, cache = blocks_of("qwen3")
    text = prompt(rng_of(10), 70)
    finish(prefixes, text)
    rows = prefixes._rows
    assert isinstance(rows, ByBlock)
    later = [digest for digest, node in rows.runs.items() if node.end > 32]
    for digest in later:
        del rows.runs[digest]
    assert finish(prefixes, text)[0].resume == 32
    assert known(cache) == [16, 32, 48, 64]
    assert finish(prefixes, text)[0].resume == 64


def test_who_starts_again_goes_on_from_copies_and_from_what_is_known_of_them() -> None:
    place = Blocks(model("deepseek-v4"))
    prefixes, cache = place.prefixes, place.cache
    text = prompt(rng_of(12), 70)
    finish(prefixes, text)
    place.offload()
    rows = prefixes._rows
    assert isinstance(rows, ByBlock)
    cache.allocator.crash()
    kept = ByBlock(prefixes.layout, cache, runs=rows.runs)
    lease, _ = finish(PrefixCache(prefixes.model, store=kept), text)
    assert (lease.verdict.kind, lease.resume) == (Kind.PARTIAL, 64)
    assert PrefixCache(prefixes.model, store=cache).match(text).kind is Kind.MISS


def test_a_cache_of_another_model_is_refused() -> None:
    cache = cache_for(layout_of(model("gpt-oss").config), TOKENS)
    with pytest.raises(ValueError, match="geometry 'gpt_oss' with other groups"):
        PrefixCache(model("qwen3"), store=cache)
    layout = layout_of(model("qwen3").config)
    periodic = Cache(cache_for(layout, TOKENS).allocator)
    with pytest.raises(ValueError, match="retention PERIODIC: FULL is allowed"):
        PrefixCache(model("qwen3"), store=periodic)
    small = cache_for(layout, TOKENS, page_bytes={"full": 64})
    with pytest.raises(ValueError, match="pool 'full': pages of"):
        PrefixCache(model("qwen3"), store=small)


def test_the_salt_is_part_of_a_block_s_key() -> None:
    layout = layout_of(model("qwen3").config)
    cache = cache_for(layout, TOKENS)
    text = prompt(rng_of(11), 40)
    finish(PrefixCache(model("qwen3"), store=cache, salt="a"), text)
    assert PrefixCache(model("qwen3"), store=cache, salt="b").match(text).kind is Kind.MISS
    assert {node.cells[COMPRESSED].device.name for node in cache.allocator.nodes()} == {"READY"}
