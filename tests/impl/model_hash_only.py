"""Reuse by hash alone: whatever the cache object of an earlier prompt holds now is taken."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from transformers import Cache
from transformers.cache_utils import DynamicSlidingWindowLayer
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4HCACache


def taken_as_it_is(donor: Cache, position: int) -> Cache:
    """Return the donor's cache for a prompt that shares its first ``position`` tokens.

    What is there by position is cut to length; window, open group and overlap are what they are.
    """
    cache = deepcopy(donor)
    layers: list[Any] = cache.layers
    for layer in layers:
        if isinstance(layer, DynamicSlidingWindowLayer):
            layer.cumulative_length = position
            rows = min(position, layer.sliding_window - 1)
            held: Any = layer
            held.keys, held.values = held.keys[:, :, -rows:], held.values[:, :, -rows:]
        else:
            layer.keys, layer.values = layer.keys[:, :, :position], layer.values[:, :, :position]
        if isinstance(layer, DeepseekV4HCACache):
            layer.values = layer.keys
            for name, count in layer.entry_count.items():
                layer.entry_count[name] = min(count, position // layer.compress_rate)
                held = layer.compressed_kv[name]
                if held is not None:
                    layer.compressed_kv[name] = held[:, : layer.entry_count[name]]
    return cache
