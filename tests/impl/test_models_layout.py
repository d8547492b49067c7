"""What a model's cache holds is read from its config, as the presets have it, or is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.impl.model_examples import HYBRID, PLAIN, model, prompt, rng_of
from transformers import (
    DeepseekV4Config,
    DynamicCache,
    GptOssConfig,
    Llama4TextConfig,
    Qwen3NextConfig,
)
from transformers.cache_utils import DYNAMIC_LAYER_TYPE_MAPPING, DynamicLayer
from transformers.models.deepseek_v4.modeling_deepseek_v4 import (
    DeepseekV4CSACache,
    DeepseekV4HCACache,
)

from fivestate.impl.models.layout import layout_of
from fivestate.impl.models.parts import RecordedCache
from fivestate.impl.models.replay import run
from fivestate.spec.reuse import CacheGroup, Geometry, Role, Span
from fivestate.spec.reuse.files import preset

FLASH = [0, 0, *[4, 128] * 20, 4]
"""DeepSeek-V4-Flash: 2 layers without a compressor, 21 with CSA, 20 with HCA."""


def shape(group: CacheGroup) -> CacheGroup:
    """Return what a group is, without what an engine chooses and how a row is packed."""
    return replace(
        group,
        block_size=group.ratio,
        page_alignment=1,
        bytes_per_entry=1,
        role=Role.REQUIRED,
        of="",
        unverified=(),
    )


def shapes(geometry: Geometry) -> dict[str, CacheGroup]:
    return {group.name: shape(group) for group in geometry.voting}


def test_deepseek_v4_flash_has_the_groups_of_its_preset() -> None:
    config = DeepseekV4Config.from_dict({"num_hidden_layers": 43, "compress_ratios": FLASH})
    found = shapes(layout_of(config, block_size=256).geometry)
    assert found == shapes(preset("dsv4-flash"))


def test_gpt_oss_has_the_groups_of_its_preset() -> None:
    found = shapes(layout_of(GptOssConfig()).geometry)
    assert found == shapes(preset("gpt-oss-120b"))


def test_equal_rates_are_two_groups() -> None:
    config = model("deepseek-v4").config
    rates = dict.fromkeys(config.compress_rates, 4)
    twice = DeepseekV4Config(**{**config.to_dict(), "compress_rates": rates})
    names = [group.name for group in layout_of(twice).geometry.groups]
    assert {"c4", "c4_state", "c4_dense", "c4_dense_state"} < set(names)


@pytest.mark.parametrize(("asked", "given"), [(1, 8), (8, 8), (9, 16), (256, 256)])
def test_a_block_is_rounded_up_to_whole_groups(asked: int, given: int) -> None:
    layout = layout_of(model("deepseek-v4").config, block_size=asked)
    assert layout.geometry.scheduler_block_size == given


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_rows_have_the_bytes_that_the_geometry_counts(name: str) -> None:
    cache = RecordedCache(model(name))
    run(model(name), cache, prompt(rng_of(0), 40))
    for group in cache.layout.geometry.groups:
        for span in (group.need(32), group.need(37), Span(16, 32)):
            assert cache.read(group.name, span).rows.nbytes == group.bytes_for(span)


def test_a_cache_of_another_kind_is_refused_with_what_to_do() -> None:
    linear = Qwen3NextConfig(num_hidden_layers=4)
    with pytest.raises(ValueError, match=r"LinearAttentionLayer.*known are Deep.*layout\.py"):
        layout_of(linear)
    chunked = Llama4TextConfig(num_hidden_layers=4)
    with pytest.raises(ValueError, match=r"rows of its own chunk.*without a prefix cache"):
        layout_of(chunked)


def test_a_subclass_of_a_known_layer_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Quantized(DynamicLayer):
        """Keeps something else."""

    monkeypatch.setitem(DYNAMIC_LAYER_TYPE_MAPPING, "full_attention", Quantized)
    with pytest.raises(ValueError, match="layer 0 keeps its cache as a Quantized"):
        layout_of(model("qwen3").config)


def test_a_model_that_writes_other_rows_than_its_config_says_is_refused() -> None:
    on = model("qwen3")
    cache = RecordedCache(on, layout_of(on.config, dtype=torch.bfloat16))
    run(on, cache, prompt(rng_of(0), 4))
    with pytest.raises(ValueError, match=r"'full': layer 0 writes.*its config says"):
        cache.read("full", Span(0, 4))


def test_transformers_goes_on_making_its_own_layers() -> None:
    """A subclass with a layer type would be taken for every cache that is made from then on."""
    kinds = {type(layer) for layer in DynamicCache(config=model("deepseek-v4").config).layers}
    assert {DeepseekV4CSACache, DeepseekV4HCACache} < kinds


def test_a_recorded_cache_is_never_taken_back() -> None:
    on = model("gpt-oss")
    cache = RecordedCache(on)
    run(on, cache, prompt(rng_of(0), 20))
    beams: Any = torch.tensor([0])
    for what in (
        lambda: cache.crop(-1),
        lambda: cache.reorder_cache(beams),
        lambda: cache.batch_repeat_interleave(2),
        lambda: cache.batch_select_indices(beams),
        cache.activate_past_recording,
    ):
        with pytest.raises(ValueError, match="holds one sequence and is never taken back"):
            what()
    with pytest.raises(ValueError, match="batch of 2 sequences"):
        on(torch.ones((2, 3), dtype=torch.long), cache=RecordedCache(on), use_cache=True)
