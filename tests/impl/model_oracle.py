"""A cache that never forgets, written apart from the one under test: rewinding it is slicing.

It serves a model as transformers' own cache does (a test compares the two bit for bit), but keeps
every row it was given, so the state at any earlier position is a slice of what it has.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.models.deepseek_v4.modeling_deepseek_v4 import (
    DeepseekV4CSACache,
    DeepseekV4HCACache,
)

from fivestate.impl.models.provenance import Provenance
from fivestate.impl.models.replay import run

NAMES = ("compressor", "indexer")


class FullOracle(DynamicLayer):
    """Full attention."""

    def rewind(self, position: int) -> None:
        """Slice what is there."""
        keys, values = self.keys, self.values
        assert keys is not None
        assert values is not None
        self.keys, self.values = keys[:, :, :position], values[:, :, :position]


class WindowOracle(DynamicSlidingWindowLayer):
    """A window over rows that stay."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Return the rows of the window before the new ones, and these."""
        del args, kwargs
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.all_rows = key_states[:, :, :0], value_states[:, :, :0]
        pairs = zip(self.all_rows, (key_states, value_states), strict=True)
        keys, values = (torch.cat(pair, dim=2) for pair in pairs)
        self.all_rows = keys, values
        first = max(self.cumulative_length - self.sliding_window + 1, 0)
        self.cumulative_length += key_states.shape[2]
        return keys[:, :, first:].contiguous(), values[:, :, first:].contiguous()

    def rewind(self, position: int) -> None:
        """Slice what is there; the window is found when it is asked for."""
        keys, values = self.all_rows
        self.all_rows = keys[:, :, :position], values[:, :, :position]
        self.cumulative_length = position


class HCAOracle(WindowOracle, DeepseekV4HCACache):
    """A compressor over rows that stay."""

    _layer_type = None  # type: ignore[assignment]  # its base says str

    def __init__(self, config: Any) -> None:
        DeepseekV4HCACache.__init__(self, config)
        self.all_raw: dict[str, tuple[Tensor, Tensor]] = {}
        self.all_windows: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in NAMES}

    def store_compression_weights(
        self, name: str, kv: Tensor, gate: Tensor
    ) -> tuple[Tensor, Tensor, int]:
        """Return the rows of the groups that are whole now."""
        if name in self.all_raw:
            kv, gate = (
                torch.cat(p, dim=1) for p in zip(self.all_raw[name], (kv, gate), strict=True)
            )
        self.all_raw[name] = kv, gate
        first = self.entry_count[name] * self.compress_rate
        end = kv.shape[1] // self.compress_rate * self.compress_rate
        return kv[:, first:end], gate[:, first:end], first

    def rewind(self, position: int) -> None:
        """Slice rows and entries; the open group is found when it is asked for."""
        super().rewind(position)
        count = position // self.compress_rate
        for name, (kv, gate) in self.all_raw.items():
            self.all_raw[name] = kv[:, :position], gate[:, :position]
            held = self.compressed_kv[name]
            assert held is not None
            self.compressed_kv[name] = held[:, :count].contiguous()
            self.entry_count[name] = count
            self.all_windows[name] = self.all_windows[name][:count]


class CSAOracle(HCAOracle, DeepseekV4CSACache):
    """Windows that were folded stay, so that any of them can be overlapped again."""

    _layer_type = None  # type: ignore[assignment]  # its base says str

    def __init__(self, config: Any) -> None:
        DeepseekV4CSACache.__init__(self, config)
        self.all_raw = {}
        self.all_windows = {name: [] for name in NAMES}

    def update_overlap_state(
        self, name: str, chunk_kv: Tensor, chunk_gate: Tensor, head_dim: int
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return the last window before, and keep the new ones."""
        before = self.all_windows[name]
        prior = before[-1] if before else (None, None)
        windows = zip(chunk_kv.unbind(1), chunk_gate.unbind(1), strict=True)
        self.all_windows[name] = before + [
            (kv[..., :head_dim].clone(), gate[..., :head_dim].clone()) for kv, gate in windows
        ]
        return prior


class Oracle(Cache):
    """The cache that never forgets."""

    def __init__(self, model: PreTrainedModel) -> None:
        made: list[Any] = []
        for layer in DynamicCache(config=model.config).layers:
            if isinstance(layer, DeepseekV4CSACache):
                made.append(CSAOracle(model.config))
            elif isinstance(layer, DeepseekV4HCACache):
                made.append(HCAOracle(model.config))
            elif isinstance(layer, DynamicSlidingWindowLayer):
                made.append(WindowOracle(layer.sliding_window))
            else:
                made.append(FullOracle())  # type: ignore[no-untyped-call]  # transformers'
        super().__init__(layers=made)

    def rewind(self, position: int) -> None:
        """Go back to an earlier position."""
        layers: list[Any] = self.layers
        for layer in layers:
            layer.rewind(position)


def oracle(model: PreTrainedModel, provenance: Provenance) -> tuple[Tensor, Oracle]:
    """Return the logits of each token of a provenance, and the oracle behind the last."""
    cache, logits = Oracle(model), []
    for chunk, kept in provenance.steps():
        logits.append(run(model, cache, chunk.tokens)[:kept])
        if kept < len(chunk.tokens):
            cache.rewind(chunk.start + kept)
    return torch.cat(logits), cache
