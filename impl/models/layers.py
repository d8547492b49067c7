"""Cache layers of transformers that keep, by absolute position, every row they are given.

A layer of transformers holds what its model reads next and nothing else: a window slides, and a
compressor consumes its rows. So the rows are kept as they are written. Entries and full-attention
rows are append-only and are read from the layer itself. Source: transformers 5.24.0; domain §1.13.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NoReturn, Protocol

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.models.deepseek_v4.modeling_deepseek_v4 import (
    DeepseekV4CSACache,
    DeepseekV4HCACache,
)

from fivestate.impl.models.rows import RowLog
from fivestate.spec.need import entries
from fivestate.spec.reuse import Span


class Slot(Enum):
    """One kind of rows in a cache layer; a compressor's are called as the layer calls them."""

    KEYS = "keys"
    COMPRESSOR = "compressor"
    COMPRESSOR_ROWS = "compressor rows"
    INDEXER = "indexer"
    INDEXER_ROWS = "indexer rows"


ENTRIES = {"compressor": Slot.COMPRESSOR, "indexer": Slot.INDEXER}
RAW = {"compressor": Slot.COMPRESSOR_ROWS, "indexer": Slot.INDEXER_ROWS}

Given = Mapping[Slot, tuple[int, Tensor]]
"""For each slot the position of the first row, and rows or entries, shape (count, width)."""


class RecordedLayer(Protocol):
    """What a layer must offer so that its cache can be taken apart and put together again."""

    def kept(self, slot: Slot) -> Span:
        """Return the tokens whose rows or entries can be read."""
        ...

    def read(self, slot: Slot, span: Span) -> Tensor:
        """Return the rows, or entries, of whole groups of tokens: shape (count, width)."""
        ...

    def restore(self, position: int, given: Given, attention: nn.Module) -> None:
        """Become what the layer was when ``position`` tokens had been written."""
        ...


class OneSequence:
    """Refuses what would leave the rows kept at odds with the rows held."""

    is_croppable = False

    def crop(self, tokens_to_remove: int) -> None:
        """Refuse to drop tokens: ``disassemble`` at the earlier position and ``assemble``."""
        if tokens_to_remove:
            self._refuse(f"crop({tokens_to_remove})")

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Refuse: beams are several sequences."""
        del beam_idx
        self._refuse("reorder_cache")

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Refuse: copies are several sequences."""
        self._refuse(f"batch_repeat_interleave({repeats})")

    def batch_select_indices(self, indices: Tensor) -> None:
        """Refuse: a choice is made among several sequences."""
        del indices
        self._refuse("batch_select_indices")

    def activate_past_recording(self) -> None:
        """Refuse: drafts that are taken back would have been folded."""
        self._refuse("activate_past_recording")

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(
            f"{what}: a recorded cache holds one sequence and is never taken back; "
            "use one cache a sequence, without beams and without assisted generation"
        )


def flat(keys: Tensor, values: Tensor | None) -> Tensor:
    """Return rows, shape (tokens, width), from keys and values, shape (1, heads, tokens, size)."""
    if keys.shape[0] != 1:
        raise ValueError(f"batch of {keys.shape[0]} sequences: a recorded cache holds one")
    parts = [keys] if values is None else [keys, values]
    return torch.cat([part[0].transpose(0, 1).flatten(1) for part in parts], dim=1)


def unflat(rows: Tensor, heads: int, *, shared: bool) -> tuple[Tensor, Tensor]:
    """Return keys and values from rows: what ``flat`` undoes."""
    halves = (rows, rows) if shared else rows.chunk(2, dim=1)
    keys, values = (
        half.view(half.shape[0], heads, -1).transpose(0, 1).unsqueeze(0).contiguous()
        for half in halves
    )
    return keys, values


class RecordedFull(OneSequence, DynamicLayer):
    """Full attention: nothing is ever dropped, so nothing has to be kept beside it."""

    def __init__(self, heads: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        self.heads = heads

    def kept(self, slot: Slot) -> Span:
        """Return all tokens so far."""
        del slot
        return Span(0, self.get_seq_length())

    def read(self, slot: Slot, span: Span) -> Tensor:
        """Return keys and values side by side."""
        del slot
        cut = slice(span.start, span.end)
        if self.keys is None or self.values is None:
            raise ValueError(f"rows {span}: nothing is written")
        return flat(self.keys[:, :, cut], self.values[:, :, cut])

    def restore(self, position: int, given: Given, attention: nn.Module) -> None:
        """Take the rows of all tokens."""
        del position, attention
        keys, values = unflat(given[Slot.KEYS][1], self.heads, shared=False)
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values


class RecordedWindow(OneSequence, DynamicSlidingWindowLayer):
    """A sliding window.

    Attributes:
        heads: key heads.
        shared: whether values are the keys, so that one of them is enough.
    """

    def __init__(self, sliding_window: int, heads: int, *, shared: bool) -> None:
        super().__init__(sliding_window)
        self.watch(heads, shared=shared)

    def watch(self, heads: int, *, shared: bool) -> None:
        """Start to keep rows, from position 0 on."""
        self.heads, self.shared = heads, shared
        self.window = RowLog()

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Keep the rows, and let the window slide."""
        self.window.append(flat(key_states, None if self.shared else value_states))
        return super().update(key_states, value_states, *args, **kwargs)

    def kept(self, slot: Slot) -> Span:
        """Return the tokens whose rows were kept."""
        del slot
        return self.window.kept

    def read(self, slot: Slot, span: Span) -> Tensor:
        """Return rows, whether the window still holds them or not."""
        del slot
        return self.window.read(span)

    def restore(self, position: int, given: Given, attention: nn.Module) -> None:
        """Take the rows of the window."""
        del attention
        first, rows = given[Slot.KEYS]
        self.window = RowLog(first)
        self.window.append(rows)
        newest = rows[max(rows.shape[0] - self.sliding_window + 1, 0) :]
        keys, values = unflat(newest, self.heads, shared=self.shared)
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        self.cumulative_length = position


class RecordedHCA(RecordedWindow, DeepseekV4HCACache):
    """A window beside entries of whole groups (heavily compressed attention)."""

    # transformers makes its caches of the last subclass that has a layer type: this one has none
    _layer_type = None  # type: ignore[assignment]  # its base says str

    def __init__(self, config: Any) -> None:
        DeepseekV4HCACache.__init__(self, config)
        self.watch(1, shared=True)

    def watch(self, heads: int, *, shared: bool) -> None:
        """Start to keep rows of window and compressors, from position 0 on."""
        super().watch(heads, shared=shared)
        self.raw = {name: RowLog() for name in self.entry_count}

    def store_compression_weights(
        self, name: str, kv: Tensor, gate: Tensor
    ) -> tuple[Tensor, Tensor, int]:
        """Keep the compressor's rows, and let it consume them."""
        self.raw[name].append(torch.cat((kv, gate), dim=-1)[0])
        return super().store_compression_weights(name, kv, gate)

    def kept(self, slot: Slot) -> Span:
        """Return the tokens whose rows were kept, or that are folded."""
        for name in self.entry_count:
            if slot is RAW[name]:
                return self.raw[name].kept
            if slot is ENTRIES[name]:
                return Span(0, self.entry_count[name] * self.compress_rate)
        return super().kept(slot)

    def read(self, slot: Slot, span: Span) -> Tensor:
        """Return rows, whether they are consumed or not, or entries."""
        for name in self.entry_count:
            if slot is RAW[name]:
                return self.raw[name].read(span)
            if slot is ENTRIES[name]:
                first, last = (entries(token, self.compress_rate) for token in span)
                held = self.compressed_kv[name]
                if held is None:
                    raise ValueError(f"entries of {span}: nothing is written")
                return held[0, first:last].clone()
        return super().read(slot, span)

    def restore(self, position: int, given: Given, attention: nn.Module) -> None:
        """Take window, entries and the rows of the open group."""
        super().restore(position, given, attention)
        self.values = self.keys  # the layer relies on there being one tensor
        folded = entries(position, self.compress_rate) * self.compress_rate
        for name in self.entry_count:
            first, rows = given[RAW[name]]
            self.raw[name] = RowLog(first)
            self.raw[name].append(rows)
            open_rows = rows[folded - first :].unsqueeze(0).chunk(2, dim=-1)
            self.buffer_kv[name], self.buffer_gate[name] = (half.contiguous() for half in open_rows)
            made = given[ENTRIES[name]][1][: entries(position, self.compress_rate)]
            self.compressed_kv[name] = made.unsqueeze(0).contiguous()
            self.entry_count[name] = made.shape[0]


class RecordedCSA(RecordedHCA, DeepseekV4CSACache):
    """A window beside entries of overlapping groups, and an index (compressed sparse attention)."""

    _layer_type = None  # type: ignore[assignment]  # as above

    def __init__(self, config: Any) -> None:
        DeepseekV4CSACache.__init__(self, config)
        self.watch(1, shared=True)

    def restore(self, position: int, given: Given, attention: nn.Module) -> None:
        """Take the group before the open one too: the next fold overlaps it.

        The layer holds the overlapping half, with the compressor's bias already on the gate.
        """
        super().restore(position, given, attention)
        compressor = attention.get_submodule("compressor")
        modules = {"compressor": compressor, "indexer": compressor.get_submodule("indexer")}
        ratio = self.compress_rate
        folded = entries(position, ratio) * ratio
        for name, module in modules.items():
            if not folded:
                continue
            first, rows = given[RAW[name]]
            kv, gate = rows[folded - ratio - first : folded - first].unsqueeze(0).chunk(2, dim=-1)
            half = kv.shape[-1] // 2
            biased = gate + module.get_parameter("position_bias")
            self.overlap_kv[name] = kv[..., :half].clone()
            self.overlap_gate[name] = biased[..., :half].detach().clone()
