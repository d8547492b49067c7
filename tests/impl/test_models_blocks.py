"""The reference allocator keeps the rows of real models, in blocks, and says no by its guards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.impl.model_examples import HYBRID, PLAIN, model, prompt, rng_of
from tests.impl.model_oracle import oracle
from tests.impl.model_places import STATES, Blocks

from fivestate.impl.allocator import Memory
from fivestate.impl.cache import Cache
from fivestate.impl.models.by_block import ByBlock, cache_for
from fivestate.impl.models.folder import Folder
from fivestate.impl.models.layout import layout_of
from fivestate.impl.models.pages import from_pages, to_pages
from fivestate.impl.models.prefix_cache import Committed, Lease, PrefixCache
from fivestate.impl.models.replay import run
from fivestate.impl.models.tiny import tiny
from fivestate.impl.pools import Owner
from fivestate.impl.recoveries import Recovery, Task
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Kind, Why
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, WINDOW

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
    lease, _ = finish(PrefixCache(prefixes.model, store=cache), text)
    assert (lease.verdict.kind, lease.resume) == (Kind.PARTIAL, 64)
    rows.runs.clear()
    assert PrefixCache(prefixes.model, store=cache).match(text).kind is Kind.MISS


def test_a_cache_of_another_model_is_refused() -> None:
    cache = cache_for(layout_of(model("gpt-oss").config), TOKENS)
    with pytest.raises(ValueError, match="geometry 'gpt_oss' with other groups"):
        PrefixCache(model("qwen3"), store=cache)
    layout = layout_of(model("qwen3").config)
    periodic = Cache(cache_for(layout, TOKENS).allocator)
    with pytest.raises(ValueError, match="retention PERIODIC: FULL is allowed"):
        PrefixCache(model("qwen3"), store=periodic)
    unnamed = cache_for(layout, TOKENS, host=Memory())
    with pytest.raises(ValueError, match=r"do not name the run of their rows.*see cache_for"):
        PrefixCache(model("qwen3"), store=unnamed)
    apart = cache_for(layout, TOKENS, disk=Memory())
    with pytest.raises(ValueError, match="do not name the run of their rows"):
        PrefixCache(model("qwen3"), store=apart)
    halved = layout_of(model("qwen3").config, dtype=torch.float16)
    of_half = ByBlock(halved, cache_for(halved, TOKENS))
    with pytest.raises(ValueError, match=r"blocks of 'qwen3', float16 .*model are float32"):
        PrefixCache(model("qwen3"), store=of_half)
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


def test_a_copy_that_does_not_check_costs_its_block_and_nothing_is_computed_from_it() -> None:
    for state in (COMPRESSED, INDEXER):
        place = Blocks(model("deepseek-v4"))
        text = prompt(rng_of(13), 70)
        finish(place.prefixes, text)
        place.offload()
        place.cache.allocator.crash()
        last = max(place.cache.allocator.nodes(), key=lambda node: node.end_tokens)
        copied = last.cells[state].copy
        assert copied is not None
        place.host.damaged.add(copied.key)
        assert place.prefixes.match(text).resume == 64
        assert finish(place.prefixes, text)[0].resume == 48
        assert finish(place.prefixes, text)[0].resume == 64


def test_what_may_not_be_loaded_now_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_recovery: Recovery, task: Task) -> None:
        raise Refused("A-41", "load_begin", "in_budget", {"task": task})

    place = Blocks(model("qwen3"))
    text = prompt(rng_of(13), 70)
    finish(place.prefixes, text)
    place.offload()
    place.cache.allocator.crash()
    monkeypatch.setattr(Recovery, "begin", never)
    lease = place.prefixes.lease(text)
    assert (lease.verdict.kind, lease.resume, lease.verdict.plan.resume) == (Kind.MISS, 0, 0)
    monkeypatch.undo()
    assert finish(place.prefixes, text)[0].resume == 64


def test_a_prefix_that_has_lost_something_since_it_was_leased_is_not_built_upon() -> None:
    prefixes, cache = blocks_of("gpt-oss")
    text, more = prompt(rng_of(14), 70), prompt(rng_of(15), 30)
    finish(prefixes, text)
    lease = prefixes.lease([*text, *more])
    last = max(cache.allocator.nodes(), key=lambda node: node.end_tokens)
    cache.allocator.evict(last, WINDOW)
    run(prefixes.model, lease.cache, [*text[64:], *more])
    committed = prefixes.commit(lease, [*text, *more])
    assert not committed.boundaries
    assert {getattr(reason, "why", None) for reason in committed.reasons} == {Why.WINDOW_GONE}


def test_a_second_commit_of_one_run_finds_it_kept() -> None:
    prefixes, cache = blocks_of("qwen3")
    text = prompt(rng_of(16), 70)
    lease, committed = finish(prefixes, text)
    assert committed.boundaries == (16, 32, 48, 64)
    assert not prefixes.commit(lease, text).boundaries
    assert known(cache) == [16, 32, 48, 64]


def test_more_than_there_is_room_for_is_resumed_as_far_as_it_fits(tmp_path: Path) -> None:
    """A folder outlives the process, and the next one has less memory."""
    text = prompt(rng_of(17), 130)
    on = model("deepseek-v4")
    with PrefixCache(on, store=Folder(path=tmp_path)) as prefixes:
        finish(prefixes, text)
    with PrefixCache(on, store=Folder(path=tmp_path, device_tokens=80)) as prefixes:
        assert prefixes.match(text).resume == 128
        lease = prefixes.lease(text)
        assert lease.resume == 64
        assert (lease.verdict.kind, lease.verdict.plan.resume) == (Kind.PARTIAL, 64)
        wanted, _ = oracle(on, lease.provenance.then(text[64:]))
        assert torch.equal(run(on, lease.cache, text[64:]), wanted[64:])


def test_a_backend_that_is_ready_is_taken_as_it_is() -> None:
    prefixes, cache = blocks_of("qwen3")
    text = prompt(rng_of(18), 40)
    finish(prefixes, text)
    again = PrefixCache(model("qwen3"), store=ByBlock(prefixes.layout, cache))
    assert finish(again, text)[0].resume == 32
