"""What goes wrong when one form of a prefix is missing and the hit is used all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4CSACache

from fivestate.impl.models.layers import RecordedHCA, RecordedWindow
from fivestate.impl.models.parts import Part, RecordedCache

Blind = Callable[[RecordedCache], None]
"""Turns a cache that is right into what an engine has that did not look."""


def _windows(cache: RecordedCache) -> Iterator[RecordedWindow]:
    yield from (layer for layer in cache.recorded if isinstance(layer, RecordedWindow))


def window_dropped(cache: RecordedCache) -> None:
    """The window's page went to somebody else, and reads as zeros."""
    for layer in _windows(cache):
        held: Any = layer.keys
        layer.keys = layer.values = torch.zeros_like(held)


def tail_dropped(cache: RecordedCache) -> None:
    """Nobody kept the rows of the open group."""
    for layer in _windows(cache):
        if isinstance(layer, RecordedHCA):
            for name in layer.buffer_kv:
                layer.buffer_kv[name] = layer.buffer_gate[name] = None


def overlap_dropped(cache: RecordedCache) -> None:
    """The boundary was aligned, so nobody kept a tail at all."""
    for layer in _windows(cache):
        if isinstance(layer, DeepseekV4CSACache):
            for name in layer.overlap_kv:
                layer.overlap_kv[name] = layer.overlap_gate[name] = None


def index_dropped(cache: RecordedCache) -> None:
    """The index was not restored: its keys are zeros, so every entry scores alike."""
    for layer in _windows(cache):
        if isinstance(layer, DeepseekV4CSACache):
            held: Any = layer.compressed_kv["indexer"]
            layer.compressed_kv["indexer"] = torch.zeros_like(held)


DROPPED: Mapping[str, tuple[Blind, tuple[str, ...], int]] = MappingProxyType(
    {
        "window dropped": (window_dropped, ("swa",), 48),
        "tail dropped": (tail_dropped, ("c4_state", "c4_index_state", "c8_state"), 46),
        "overlap dropped on a boundary": (overlap_dropped, ("c4_state", "c4_index_state"), 48),
        "index dropped": (index_dropped, ("c4_index",), 48),
    }
)
"""What is missing: how it is used blindly, the groups that ``assemble`` is not given, and where."""


def passed_off(
    parts: Mapping[str, Part], others: Mapping[str, Part], groups: tuple[str, ...]
) -> dict[str, Part]:
    """Return parts of which some groups are another run's, with a stamp that hides it."""
    return {
        name: replace(others[name], stamp=part.stamp) if name in groups else part
        for name, part in parts.items()
    }
