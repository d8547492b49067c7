"""The bench resumes where it says; weights are told apart by what they are."""

from __future__ import annotations

import pytest
import torch

from fivestate.impl.models.bench import QUESTION_TOKENS, FirstToken, first_token
from fivestate.impl.models.tiny import tiny
from fivestate.impl.models.weights import Watch, weights_of


def test_the_bench_reuses_all_whole_blocks_before_the_question() -> None:
    rows = list(first_token((100, 64), model="qwen3", rounds=1))
    assert [row.prompt_tokens for row in rows] == [64, 100]
    assert [row.resumed_tokens for row in rows] == [64 - QUESTION_TOKENS, 80]
    assert all(row.reuse_seconds > 0 and row.recompute_seconds > 0 for row in rows)
    assert FirstToken(64, 48, 0.5, 2.0).ratio == 4


def test_a_prompt_with_nothing_to_reuse_and_a_model_that_is_none_are_refused() -> None:
    with pytest.raises(ValueError, match="prompt of 32 tokens: 33 or more"):
        list(first_token((32,)))
    with pytest.raises(ValueError, match="model 'gpt-5': one of deepseek-v4, "):
        tiny("gpt-5")


def test_weights_are_told_apart_by_every_byte_and_by_their_names() -> None:
    one, other = tiny("qwen3"), tiny("qwen3")
    assert weights_of(one) == weights_of(other)
    assert weights_of(one) != weights_of(tiny("qwen3", seed=1))
    weight = other.get_parameter("lm_head.weight")
    with torch.no_grad():
        weight.view(-1)[-1] += 1e-3
    assert weights_of(one) != weights_of(other)
    assert weights_of(torch.nn.ModuleDict({"a": torch.nn.Linear(1, 1)})) != weights_of(
        torch.nn.ModuleDict({"b": torch.nn.Linear(1, 1)})
    )


def test_a_watch_sees_writes_and_other_tensors_and_not_what_goes_through_data() -> None:
    on = tiny("qwen3")
    watch = Watch(on)
    seen = [watch.weights]
    weight = on.get_parameter("lm_head.weight")
    with torch.no_grad():
        weight.mul_(2)
    seen.append(watch.weights)
    on.load_state_dict(tiny("qwen3", seed=2).state_dict())
    seen.append(watch.weights)
    weight.data.mul_(2)
    assert watch.weights == seen[-1]
    watch.look_again()
    seen.append(watch.weights)
    assert len(set(seen)) == 4
