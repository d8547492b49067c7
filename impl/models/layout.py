"""The layout of one model: its geometry, and where in its cache the rows of each group are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.models.deepseek_v4.modeling_deepseek_v4 import (
    DeepseekV4CSACache,
    DeepseekV4HCACache,
)

from fivestate.impl.models.layers import (
    RecordedCSA,
    RecordedFull,
    RecordedHCA,
    RecordedWindow,
    Slot,
)
from fivestate.spec.need import round_up
from fivestate.spec.reuse import CacheGroup, Geometry
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, CacheState

BLOCK = 16
"""Tokens in a block where nothing else is asked for."""

Recorded = RecordedFull | RecordedWindow
"""Any layer that can be taken apart; those of DeepSeek-V4 are windows with more beside them."""


@dataclass(frozen=True)
class Layout:
    """Where the rows of each cache group are.

    Attributes:
        geometry: the groups.
        places: for each group the layers that have it, and the slot it has there.
        widths: for each group the numbers in one row or entry.
        dtype: of all rows.
    """

    geometry: Geometry
    places: Mapping[str, tuple[tuple[int, Slot], ...]]
    widths: Mapping[str, int]
    dtype: torch.dtype

    @property
    def signature(self) -> str:
        """What has to be equal so that rows of one layout can be read in another."""
        parts = (f"{name}:{len(at)}x{self.widths[name]}" for name, at in self.places.items())
        return " ".join((str(self.dtype).removeprefix("torch."), *parts))


@dataclass(frozen=True)
class _Rows:
    """One kind of rows of one layer: the group it belongs to, all but its layers and sizes."""

    group: str
    slot: Slot
    state: CacheState
    width: int
    ratio: int = 1
    lookback: int = 0
    window: int = 0
    of: str = ""


def layout_of(
    config: PreTrainedConfig, *, block_size: int = BLOCK, dtype: torch.dtype = torch.float32
) -> Layout:
    """Return the layout of the model that a transformers config describes.

    Every recovery that these models' caches allow is a load or a recompute, so no group is
    rebuildable: rows made again in chunks of another size would differ in their last bits.

    Args:
        config: the model's config.
        block_size: tokens of a block of entries; rounded up to whole groups of every compressor.
        dtype: of the rows the model writes.

    Raises:
        ValueError: a layer keeps its cache in a way that is not known, or ``block_size`` < 1.
    """
    if block_size < 1:
        raise ValueError(f"block_size = {block_size}: 1 or more tokens are allowed")
    decoder = config.get_text_config(decoder=True)
    layers = DynamicCache(config=decoder).layers
    kinds = [_rows(decoder, index, layer, layers) for index, layer in enumerate(layers)]
    found: dict[str, _Rows] = {}
    places: dict[str, list[tuple[int, Slot]]] = {}
    for index, kind in enumerate(kinds):
        for rows in kind:
            if found.setdefault(rows.group, rows) != rows:
                message = f"layers {places[rows.group][0][0]} and {index} of a {decoder.model_type}"
                raise ValueError(f"{message} differ in {rows.group!r}: one shape is supported")
            places.setdefault(rows.group, []).append((index, rows.slot))
    block = round_up(block_size, lcm(*(rows.ratio for rows in found.values())))
    groups = [_group(rows, len(places[rows.group]), block, dtype) for rows in found.values()]
    return Layout(
        Geometry(str(decoder.model_type), tuple(groups), source="transformers config"),
        {name: tuple(at) for name, at in places.items()},
        {rows.group: rows.width for rows in found.values()},
        dtype,
    )


def recorded_layers(config: PreTrainedConfig) -> list[Recorded]:
    """Return an empty layer that records for each layer of the model.

    Raises:
        ValueError: a layer keeps its cache in a way that is not known.
    """
    decoder = config.get_text_config(decoder=True)
    layers = DynamicCache(config=decoder).layers
    made: list[Recorded] = []
    for index, layer in enumerate(layers):
        _rule(decoder, index, layer)
        heads = int(decoder.num_key_value_heads)
        if isinstance(layer, DeepseekV4CSACache):
            made.append(RecordedCSA(decoder))
        elif isinstance(layer, DeepseekV4HCACache):
            made.append(RecordedHCA(decoder))
        elif isinstance(layer, DynamicSlidingWindowLayer):
            shared = _shares(layers)
            made.append(RecordedWindow(layer.sliding_window, heads, shared=shared))
        else:
            made.append(RecordedFull(heads))
    return made


def _group(rows: _Rows, layers: int, block: int, dtype: torch.dtype) -> CacheGroup:
    """Windows take blocks of up to 64 tokens and tails of up to 8, as engines have them."""
    smaller = {WINDOW: gcd(block, 64), TAIL: gcd(rows.ratio, 8)}
    return CacheGroup(
        name=rows.group,
        state=rows.state,
        block_size=smaller.get(rows.state, block),
        ratio=rows.ratio,
        lookback=rows.lookback,
        window=rows.window,
        layers=layers,
        bytes_per_entry=rows.width * dtype.itemsize,
        of=rows.of,
    )


def _rows(config: Any, index: int, layer: object, layers: Sequence[object]) -> tuple[_Rows, ...]:
    return _rule(config, index, layer)(config, layer, layers)


def _rule(config: Any, index: int, layer: object) -> Callable[..., tuple[_Rows, ...]]:
    rule = _RULES.get(type(layer))
    chunked = "chunked_attention" in (getattr(config, "layer_types", None) or ())
    if rule is None or chunked:
        known = ", ".join(sorted(kind.__name__ for kind in _RULES))
        kept = "rows of its own chunk" if chunked else f"a {type(layer).__name__}"
        raise ValueError(
            f"model_type = {config.model_type!r}: layer {index} keeps its cache as {kept}, and "
            f"nobody has said what a resume needs of it; known are {known}: run this model "
            "without a prefix cache, or give its layer a recording subclass in "
            "fivestate/impl/models/layers.py and a rule in layout.py"
        )
    return rule


def _shares(layers: Sequence[object]) -> bool:
    """DeepSeek-V4 reads one tensor as key and as value, in its sliding layers too."""
    return any(isinstance(layer, DeepseekV4HCACache) for layer in layers)


def _head(config: Any) -> int:
    return int(
        getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    )


def _full(config: Any, layer: DynamicLayer, layers: Sequence[object]) -> tuple[_Rows, ...]:
    del layer, layers
    width = 2 * int(config.num_key_value_heads) * _head(config)
    return (_Rows("full", Slot.KEYS, COMPRESSED, width),)


def _window(
    config: Any, layer: DynamicSlidingWindowLayer, layers: Sequence[object]
) -> tuple[_Rows, ...]:
    span = layer.sliding_window
    if span < 2:
        raise ValueError(f"sliding_window = {span}: 2 or more is allowed: the query reads itself")
    if _shares(layers):
        return (_Rows("swa", Slot.KEYS, WINDOW, _head(config), window=span),)
    width = 2 * int(config.num_key_value_heads) * _head(config)
    return (_Rows("local", Slot.KEYS, WINDOW, width, window=span),)


def _hca(config: Any, layer: DeepseekV4HCACache, layers: Sequence[object]) -> tuple[_Rows, ...]:
    rates = config.compress_rates
    ratio, head = layer.compress_rate, _head(config)
    twice = rates["compressed_sparse_attention"] == rates["heavily_compressed_attention"]
    name = f"c{ratio}_dense" if twice else f"c{ratio}"
    return (
        *_window(config, layer, layers),
        _Rows(name, Slot.COMPRESSOR, COMPRESSED, head, ratio),
        _Rows(f"{name}_state", Slot.COMPRESSOR_ROWS, TAIL, 2 * head, ratio, of=name),
    )


def _csa(config: Any, layer: DeepseekV4CSACache, layers: Sequence[object]) -> tuple[_Rows, ...]:
    """Its rows are twice as wide: one half is folded with the group, one with the next."""
    ratio, head, index = layer.compress_rate, _head(config), int(config.index_head_dim)
    own, key = f"c{ratio}", f"c{ratio}_index"
    return (
        *_window(config, layer, layers),
        _Rows(own, Slot.COMPRESSOR, COMPRESSED, head, ratio),
        _Rows(f"{own}_state", Slot.COMPRESSOR_ROWS, TAIL, 4 * head, ratio, ratio, of=own),
        _Rows(key, Slot.INDEXER, INDEXER, index, ratio, of=own),
        _Rows(f"{key}_state", Slot.INDEXER_ROWS, TAIL, 4 * index, ratio, ratio, of=key),
    )


_RULES: dict[type, Callable[..., tuple[_Rows, ...]]] = {
    DynamicLayer: _full,
    DynamicSlidingWindowLayer: _window,
    DeepseekV4HCACache: _hca,
    DeepseekV4CSACache: _csa,
}
"""The cache layers that are known, by their exact class: a subclass may keep something else."""
