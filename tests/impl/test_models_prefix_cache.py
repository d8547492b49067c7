"""The prefix cache that is given to ``generate``: what it gives, what it refuses, and why."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.impl.model_examples import HYBRID, PLAIN, model, prompt, rng_of
from tests.impl.model_oracle import oracle
from torch import Tensor
from transformers import Cache, DeepseekV4Config, DeepseekV4ForCausalLM

from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.models.prefix_cache import Committed, Lease, PrefixCache
from fivestate.impl.models.replay import run
from fivestate.impl.models.store import DictStore, Key
from fivestate.impl.models.tiny import tiny
from fivestate.spec.reuse import Kind, Means, Why

ENTRIES = ("c4", "c8", "full")


def generate(on: Any, text: Tensor, cache: Cache | None) -> tuple[Tensor, Tensor]:
    """Return what greedy decoding makes of a prompt: tokens, and the logits of each step."""
    made: Any = on.generate(
        text,
        cache=cache,
        max_new_tokens=8,
        do_sample=False,
        eos_token_id=None,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return made.sequences, torch.cat(made.logits)


def finish(prefixes: PrefixCache, text: list[int]) -> tuple[Lease, Committed]:
    """Lease, compute the rest as one chunk and two tokens behind it, and commit."""
    lease = prefixes.lease(text)
    run(prefixes.model, lease.cache, text[lease.resume :])
    more = [1, 2]
    for token in more:
        run(prefixes.model, lease.cache, [token])
    return lease, prefixes.commit(lease, [*text, *more])


def right(prefixes: PrefixCache, lease: Lease) -> bool:
    """Say whether a leased cache goes on as the oracle does."""
    on = prefixes.model
    wanted, _ = oracle(on, lease.provenance.then(lease.tokens[lease.resume :]))
    given = run(on, lease.cache, lease.tokens[lease.resume :])
    return torch.equal(given, wanted[lease.resume :])


def whys(lease: Lease) -> set[tuple[Why, str]]:
    return {(reason.why, reason.group) for reason in lease.verdict.reasons}


def on_device(store: DictStore, group: str) -> list[Key]:
    return [key for key in store if key.group == group]


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_generate_goes_on_bit_for_bit_from_a_leased_cache(name: str) -> None:
    on = model(name)
    prefixes = PrefixCache(on)
    text = torch.tensor([prompt(rng_of(1), 50)])
    for turn in range(3):
        lease = prefixes.lease(text)
        baseline = oracle(on, lease.provenance)[1] if lease.resume else None
        sequences, logits = generate(on, text, lease.cache)
        wanted, wanted_logits = generate(on, text, baseline)
        assert torch.equal(sequences, wanted)
        assert torch.equal(logits, wanted_logits)
        committed = prefixes.commit(lease, sequences)
        assert lease.verdict.kind is (Kind.HIT if turn else Kind.MISS)
        assert lease.resume == (0, 48, 64)[turn]
        assert committed.boundaries[-1] == (48, 64, 80)[turn]
        text = torch.cat([sequences, torch.tensor([prompt(rng_of(turn), 7)])], dim=1)


@pytest.mark.parametrize("name", HYBRID)
def test_windows_can_go_while_entries_stay_and_the_resume_falls_to_the_last_window(
    name: str,
) -> None:
    prefixes = PrefixCache(model(name), store=DictStore())
    text = prompt(rng_of(2), 70)
    finish(prefixes, text)
    assert prefixes.match(text).kind is Kind.HIT
    store, window = prefixes.store, "swa" if name == "deepseek-v4" else "local"
    assert isinstance(store, DictStore)
    store.evict(on_device(store, window)[-1])
    lease = prefixes.lease(text)
    assert lease.verdict.kind is Kind.PARTIAL
    assert lease.resume == 48
    assert whys(lease) == {(Why.WINDOW_GONE, window)}
    assert [step.means for step in lease.verdict.plan.steps] == [Means.RECOMPUTE]
    assert right(prefixes, lease)
    for key in on_device(store, window):
        store.evict(key)
    lease = prefixes.lease(text)
    assert lease.verdict.kind is Kind.MISS
    assert right(prefixes, lease)


def test_capacity_is_each_group_s_own_and_the_root_goes_last() -> None:
    store = DictStore({"swa": 2})
    prefixes = PrefixCache(model("deepseek-v4"), store=store)
    first, second = prompt(rng_of(2), 70), prompt(rng_of(3), 40)
    finish(prefixes, first)
    assert len(on_device(store, "swa")) == 2
    assert len(on_device(store, "c4")) == 4
    assert prefixes.match(first).kind is Kind.HIT
    finish(prefixes, second)
    assert prefixes.match(second).kind is Kind.HIT
    assert prefixes.match(first).kind is Kind.MISS
    assert (Why.WINDOW_GONE, "swa") in whys(prefixes.lease(first))


def test_what_was_used_last_goes_last() -> None:
    prefixes = PrefixCache(model("qwen3"), store=DictStore({"full": 5}))
    one, other, third = (prompt(rng_of(seed), 40) for seed in (20, 21, 22))
    finish(prefixes, one)
    finish(prefixes, other)
    assert prefixes.lease(one).resume == 32
    finish(prefixes, third)
    assert [prefixes.match(text).resume for text in (one, other, third)] == [32, 0, 32]


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_after_a_crash_what_was_offloaded_is_loaded_back_and_nothing_damaged_is_used(
    name: str,
) -> None:
    store = DictStore()
    prefixes = PrefixCache(model(name), store=store)
    text = prompt(rng_of(4), 70)
    finish(prefixes, text)
    for key in list(store):
        store.offload(key)
    restarted = PrefixCache(model(name), store=DictStore(kept=store.bytes))
    lease = restarted.lease(text)
    assert (lease.verdict.kind, lease.resume) == (Kind.PARTIAL, 64)
    assert Means.LOAD_BACK in {step.means for step in lease.verdict.plan.steps}
    assert right(restarted, lease)
    assert restarted.lease(text).verdict.kind is Kind.HIT
    for at in (-1, -40, 9, 200):
        damaged = dict(store.bytes)
        for key in [key for key in damaged if key.group in ENTRIES]:
            blob = bytearray(damaged[key])
            blob[at] ^= 4
            damaged[key] = bytes(blob)
        broken = PrefixCache(model(name), store=DictStore(kept=damaged))
        lease = broken.lease(text)
        assert lease.verdict.kind is Kind.MISS, at
        assert right(broken, lease)


def test_rows_of_other_weights_are_refused_with_the_reason() -> None:
    on = tiny("gpt-oss")
    text = prompt(rng_of(5), 70)
    prefixes = PrefixCache(on)
    _, committed = finish(prefixes, text)
    assert not committed.reasons
    before = prefixes.lease(text)
    weight = next(on.parameters())
    with torch.no_grad():
        weight.mul_(1.5)
    lease = prefixes.lease(text)
    assert lease.verdict.kind is Kind.MISS
    assert {(Why.WEIGHTS, "full"), (Why.WEIGHTS, "local")} <= whys(lease)
    assert right(prefixes, lease)
    run(on, before.cache, text[before.resume :])
    refused = prefixes.commit(before, text)
    assert [str(reason)[:11] for reason in refused.reasons] == ["H-2 weights"]
    assert not refused.boundaries
    finish(prefixes, text)
    assert prefixes.match(text).kind is Kind.HIT
    weight.data.mul_(1.5)
    prefixes.new_weights()
    assert prefixes.match(text).kind is Kind.MISS


def test_an_epoch_that_the_caller_counts_is_taken_at_its_word() -> None:
    prefixes = PrefixCache(model("qwen3"), weights=7)
    text = prompt(rng_of(5), 40)
    finish(prefixes, text)
    assert prefixes.match(text).kind is Kind.HIT
    prefixes.new_weights(8)
    assert prefixes.match(text).kind is Kind.MISS
    assert (Why.WEIGHTS, "full") in whys(prefixes.lease(text))
    prefixes.new_weights(7)
    assert prefixes.match(text).kind is Kind.HIT


def test_an_index_of_another_run_is_out_of_step() -> None:
    store = DictStore()
    prefixes = PrefixCache(model("deepseek-v4"), store=store)
    text = prompt(rng_of(6), 70)
    finish(prefixes, text)
    key = on_device(store, "c4_index")[-1]
    part = store.get(key)
    assert part is not None
    store.put(key, Part(part.span, part.rows, Stamp(part.stamp.weights, "another")))
    lease = prefixes.lease(text)
    assert lease.resume == 48
    assert (Why.INDEX_OUT_OF_STEP, "c4_index") in whys(lease)
    assert right(prefixes, lease)


@pytest.mark.parametrize(("group", "resume"), [("c4_state", 48), ("swa", 48), ("c8", 48)])
def test_rows_of_another_run_are_as_good_as_none(group: str, resume: int) -> None:
    store = DictStore()
    prefixes = PrefixCache(model("deepseek-v4"), store=store)
    text = prompt(rng_of(6), 70)
    finish(prefixes, text)
    key = on_device(store, group)[-1]
    part = store.get(key)
    assert part is not None
    zeros = torch.zeros_like(part.rows)
    store.put(key, Part(part.span, zeros, Stamp(part.stamp.weights, "another")))
    lease = prefixes.lease(text)
    assert lease.resume == resume
    assert right(prefixes, lease)


def test_rows_of_two_runs_are_never_mixed() -> None:
    """The same tokens computed again in other chunks replace what there was, window by window."""
    store = DictStore()
    prefixes = PrefixCache(model("deepseek-v4"), store=store)
    text = prompt(rng_of(7), 70)
    finish(prefixes, text)
    late = prefixes.lease(text)
    for key in on_device(store, "swa"):
        store.evict(key)
    again = prefixes.lease(text)
    assert again.verdict.kind is Kind.MISS
    for start in range(0, 70, 10):
        run(prefixes.model, again.cache, text[start : start + 10])
    prefixes.commit(again, text)
    lease = prefixes.lease(text)
    assert (lease.verdict.kind, lease.resume) == (Kind.HIT, 64)
    assert [len(chunk.tokens) for chunk in lease.provenance.chunks] == [10] * 7
    assert right(prefixes, lease)
    run(prefixes.model, late.cache, [*text[64:], *prompt(rng_of(8), 20)])
    refused = prefixes.commit(late, [*text, *prompt(rng_of(8), 20)])
    assert [str(reason)[:12] for reason in refused.reasons] == ["H-0 identity"]
    assert prefixes.match([*text, *prompt(rng_of(8), 20)]).resume == 64


def test_another_salt_or_another_model_is_another_prefix() -> None:
    store = DictStore()
    text = prompt(rng_of(9), 40)
    finish(PrefixCache(model("qwen3"), store=store), text)
    assert PrefixCache(model("qwen3"), store=store).match(text).kind is Kind.HIT
    for other in (
        PrefixCache(model("qwen3"), store=store, salt="b"),
        PrefixCache(model("gemma3"), store=store),
    ):
        assert {r.why for r in other.match(text).reasons} == {Why.UNKNOWN}


def test_a_prompt_that_matches_to_its_end_computes_its_last_token() -> None:
    prefixes = PrefixCache(model("deepseek-v4"))
    text = prompt(rng_of(10), 64)
    finish(prefixes, text)
    lease = prefixes.lease(text)
    assert lease.resume == 48
    assert (Why.LAST_TOKEN, "") in whys(lease)
    assert right(prefixes, lease)


def test_what_is_leased_is_a_copy_that_no_eviction_reaches() -> None:
    store = DictStore()
    prefixes = PrefixCache(model("deepseek-v4"), store=store)
    text = prompt(rng_of(11), 70)
    finish(prefixes, text)
    lease = prefixes.lease(text)
    for key in list(store):
        part = store.get(key)
        assert part is not None
        part.rows.fill_(7.0)
        store.evict(key)
    assert right(prefixes, lease)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "none is given"),
        (torch.zeros((2, 5), dtype=torch.long), r"shape \(2, 5\): one sequence is allowed"),
    ],
)
def test_a_prompt_that_is_none_or_several_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PrefixCache(model("qwen3")).lease(wrong)


def test_a_prompt_with_padding_is_refused() -> None:
    """``generate`` masks the pad token, so the rows behind it would be another prompt's."""
    on = tiny("qwen3")
    on.generation_config.pad_token_id = 0
    with pytest.raises(ValueError, match="position 2 is the pad token 0"):
        PrefixCache(on).lease([5, 6, 0, 7])


def test_tokens_that_were_not_written_are_not_committed() -> None:
    store = DictStore()
    prefixes = PrefixCache(model("qwen3"), store=store)
    text = prompt(rng_of(12), 40)
    lease = prefixes.lease(text)
    run(prefixes.model, lease.cache, text)
    for wrong in (text[:30], [*text[:39], (text[39] + 1) % 97]):
        with pytest.raises(ValueError, match="are written"):
            prefixes.commit(lease, wrong)
    assert not list(store)
    assert prefixes.match(text).kind is Kind.MISS


def test_beams_are_refused_and_nothing_is_kept_of_them() -> None:
    on: Any = model("qwen3")
    prefixes = PrefixCache(on)
    text = torch.tensor([prompt(rng_of(13), 20)])
    lease = prefixes.lease(text)
    with pytest.raises(ValueError, match="a recorded cache holds one"):
        on.generate(text, cache=lease.cache, num_beams=2, max_new_tokens=2)
    assert prefixes.match(text).kind is Kind.MISS


def test_entries_that_could_be_folded_again_are_not_counted_on() -> None:
    """With blocks of one group a tail has all the rows of its entry, but these caches fold once."""
    config = model("deepseek-v4").config.to_dict()
    config |= {"num_hidden_layers": 2, "layer_types": config["layer_types"][:2]}
    config |= {"mlp_layer_types": config["mlp_layer_types"][:2], "per_layer_config": None}
    on = DeepseekV4ForCausalLM(DeepseekV4Config.from_dict(config))
    store = DictStore()
    prefixes = PrefixCache(on, store=store, block_size=4)
    text = prompt(rng_of(14), 30)
    finish(prefixes, text)
    store.evict(on_device(store, "c4")[-1])
    store.evict(on_device(store, "c4")[0])
    lease = prefixes.lease(text)
    assert lease.verdict.kind is Kind.MISS
    assert right(prefixes, lease)


def test_what_goes_on_from_a_replaced_block_goes_with_it() -> None:
    store = DictStore()
    prefixes = PrefixCache(model("qwen3"), store=store)
    text = prompt(rng_of(15), 70)
    finish(prefixes, text)
    assert len(list(store)) == 4
    store.evict(on_device(store, "full")[0])
    finish(prefixes, text[:34])
    assert len(list(store)) == 2
