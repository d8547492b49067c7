"""Tiny models with random weights, made from a config: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from transformers import (
    DeepseekV4Config,
    DeepseekV4ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GptOssConfig,
    GptOssForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 97
"""Tokens that every tiny model knows."""

SPREAD = 0.35
"""Standard deviation of a tiny model's weights: large enough that a wrong row shows in logits."""


def tiny(name: str, seed: int = 0) -> PreTrainedModel:
    """Return a tiny model; equal names and seeds give equal weights.

    Raises:
        ValueError: there is no such model.
    """
    if name not in TINY:
        raise ValueError(f"model {name!r}: one of {', '.join(TINY)} is allowed")
    model = TINY[name]()
    model.train(mode=False)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator) * SPREAD
            weight.copy_(1 + noise if "norm" in key else noise)
    return model


def _deepseek_v4() -> PreTrainedModel:
    """Every kind of layer it has; four of its entries are routed to."""
    return DeepseekV4ForCausalLM(
        DeepseekV4Config(
            vocab_size=VOCABULARY,
            hidden_size=32,
            moe_intermediate_size=16,
            num_hidden_layers=4,
            num_attention_heads=4,
            head_dim=16,
            partial_rotary_factor=0.5,
            q_lora_rank=16,
            n_routed_experts=4,
            num_experts_per_tok=2,
            layer_types=[
                "sliding_attention",
                "compressed_sparse_attention",
                "heavily_compressed_attention",
                "compressed_sparse_attention",
            ],
            compress_rates={"compressed_sparse_attention": 4, "heavily_compressed_attention": 8},
            mlp_layer_types=["hash_moe", "moe", "moe", "moe"],
            sliding_window=8,
            o_groups=2,
            o_lora_rank=16,
            index_n_heads=2,
            index_head_dim=16,
            index_topk=4,
            hc_mult=2,
            hc_sinkhorn_iters=3,
            max_position_embeddings=65536,
        )
    )


def _gpt_oss() -> PreTrainedModel:
    return GptOssForCausalLM(
        GptOssConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=16,
            num_hidden_layers=4,
            num_local_experts=4,
            num_experts_per_tok=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            sliding_window=8,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            max_position_embeddings=65536,
        )
    )


def _gemma3() -> PreTrainedModel:
    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            sliding_window=8,
            layer_types=[
                "sliding_attention",
                "sliding_attention",
                "full_attention",
                "sliding_attention",
            ],
            max_position_embeddings=65536,
            pad_token_id=None,
        )
    )


def _qwen3() -> PreTrainedModel:
    """One kind of layer: scheme A."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            max_position_embeddings=65536,
        )
    )


TINY: Mapping[str, Callable[[], PreTrainedModel]] = MappingProxyType(
    {
        "deepseek-v4": _deepseek_v4,
        "gpt-oss": _gpt_oss,
        "gemma3": _gemma3,
        "qwen3": _qwen3,
    }
)
"""The tiny models, by name."""
