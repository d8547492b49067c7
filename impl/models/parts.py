"""Take a cache apart into the rows of each group, and put one together again at a position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, PreTrainedModel

from fivestate.impl.models.layers import Slot
from fivestate.impl.models.layout import Layout, Recorded, layout_of, recorded_layers
from fivestate.spec.need import blocks, entries
from fivestate.spec.reuse import CacheGroup, Shape, Span
from fivestate.spec.reuse.spans import missing


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the producer writes on rows: parts with different stamps do not belong together.

    Attributes:
        weights: epoch of the weights.
        run: the run that made them; of an index, the run that made its entries.
        kernels: what computed them; other kernels give other bits.
    """

    weights: int = 0
    run: str = ""
    kernels: str = ""


UNSTAMPED = Stamp()
"""Rows whose maker nobody asks for."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one group.

    Attributes:
        span: the tokens; of entries, whole groups of them.
        rows: shape (layers, rows or entries, width), contiguous.
        stamp: who made them.
    """

    span: Span
    rows: Tensor
    stamp: Stamp = UNSTAMPED


class RecordedCache(Cache):
    """A cache of transformers from which the rows of every earlier position can be read.

    It holds one sequence and serves as ``cache=`` of ``generate`` and of a forward.

    Attributes:
        layout: where its rows are.
        stamp: who makes them.
        chunk_lengths: tokens of each forward since it was made.
        recorded: its layers.
    """

    def __init__(
        self, model: PreTrainedModel, layout: Layout | None = None, stamp: Stamp = UNSTAMPED
    ) -> None:
        self.layout = layout or layout_of(model.config, dtype=model.dtype)
        self.stamp = stamp
        self.chunk_lengths: list[int] = []
        self.recorded: tuple[Recorded, ...] = tuple(recorded_layers(model.config))
        super().__init__(layers=[*self.recorded])

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        """Hand the rows to the layer; the first layer counts the chunks."""
        if layer_idx == 0:
            self.chunk_lengths.append(key_states.shape[-2])
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)

    def read(self, name: str, span: Span) -> Part:
        """Return the rows of some tokens of a group.

        Raises:
            ValueError: a layer did not keep them all, or its rows have another width or type.
        """
        group = self.layout.geometry.group(name)
        shape = (rows_of(group, span), self.layout.widths[name])
        found: list[Tensor] = []
        for layer, slot in self.layout.places[name]:
            absent = missing(span, (self.recorded[layer].kept(slot),))
            if absent:
                message = f"group {name!r}: rows {', '.join(map(str, absent))} of layer {layer}"
                raise ValueError(f"{message} are not there: they were never written, or let go")
            rows = self.recorded[layer].read(slot, span) if span.tokens else self._no_rows(name)
            if rows.shape != shape or rows.dtype is not self.layout.dtype:
                message = f"group {name!r}: layer {layer} writes {tuple(rows.shape)} {rows.dtype}"
                raise ValueError(f"{message}; its config says {shape} {self.layout.dtype}")
            found.append(rows)
        return Part(span, torch.stack(found), self.stamp)

    def _no_rows(self, name: str) -> Tensor:
        return torch.empty((0, self.layout.widths[name]), dtype=self.layout.dtype)


def rows_of(group: CacheGroup, span: Span) -> int:
    """Rows, or entries, that some tokens have in one layer."""
    ratio = group.ratio if group.shape is Shape.PREFIX else 1
    return max(blocks(span.end, ratio) - entries(span.start, ratio), 0)


def disassemble(cache: RecordedCache, position: int) -> dict[str, Part]:
    """Return of each group exactly the rows that a resume at ``position`` needs.

    Args:
        cache: a cache that was written to the position or further.
        position: the next token's; tokens ``0 .. position - 1`` are reused.

    Raises:
        ValueError: the position is not behind its first token, or rows are not there.
    """
    written = cache.get_seq_length()
    if not 0 < position <= written:
        raise ValueError(f"position = {position}: 1 .. {written} is allowed: so much is written")
    return {
        group.name: cache.read(group.name, group.need(position))
        for group in cache.layout.geometry.groups
    }


def assemble(
    model: PreTrainedModel,
    parts: Mapping[str, Part],
    position: int,
    *,
    layout: Layout | None = None,
    weights: int | None = None,
) -> RecordedCache:
    """Return a cache that goes on at ``position`` as if the tokens before it had been computed.

    A part may have more than is needed. The rows are copied.

    Args:
        model: the model that will read the cache.
        parts: of each group rows that cover its need.
        position: the next token's.
        layout: of the parts; by default the model's own.
        weights: the epoch of the model's weights, if it is to be compared.

    Raises:
        ValueError: a group's rows do not cover what is needed, or have another shape; the parts
            were made by different runs, or with other weights.
    """
    if position < 1:
        raise ValueError(f"position = {position}: 1 or more is allowed; 0 is an empty cache")
    layout = layout or layout_of(model.config, dtype=model.dtype)
    stamp = _one_stamp(layout, parts, position, weights)
    cache = RecordedCache(model, layout, stamp)
    given: dict[int, dict[Slot, tuple[int, Tensor]]] = {}
    for group in layout.geometry.groups:
        start, rows = _checked(layout, group, parts.get(group.name), position)
        for number, (index, slot) in enumerate(layout.places[group.name]):
            given.setdefault(index, {})[slot] = (start, rows[number].to(model.device))
    for index, layer in enumerate(cache.recorded):
        layer.restore(position, given[index], attention_of(model, index))
    return cache


def attention_of(model: PreTrainedModel, layer: int) -> nn.Module:
    """Return the attention module of a layer."""
    decoder: nn.Module = model.get_decoder()
    return decoder.get_submodule(f"layers.{layer}.self_attn")


def _checked(
    layout: Layout, group: CacheGroup, part: Part | None, position: int
) -> tuple[int, Tensor]:
    """Return the first position and the rows of a part that covers what is needed."""
    need, name = group.need(position), group.name
    if not need.tokens and part is None:
        shape = (len(layout.places[name]), 0, layout.widths[name])
        return position, torch.empty(shape, dtype=layout.dtype)
    absent = (need,) if part is None else missing(need, (part.span,))
    if absent or part is None:
        rows = ", ".join(map(str, absent))
        message = f"group {name!r}: rows {rows} are missing: a resume at {position} needs {need}"
        raise ValueError(f"{message}, and {part.span if part else 'nothing'} is given")
    shape = (len(layout.places[name]), rows_of(group, part.span), layout.widths[name])
    if part.rows.shape != shape or part.rows.dtype is not layout.dtype:
        message = f"group {name!r}: rows of {part.span} have shape {tuple(part.rows.shape)}"
        raise ValueError(f"{message} {part.rows.dtype}; {shape} {layout.dtype} is allowed")
    last = need.end if need.tokens else position
    return part.span.start, part.rows[:, : rows_of(group, Span(part.span.start, last))]


def _one_stamp(
    layout: Layout, parts: Mapping[str, Part], position: int, weights: int | None
) -> Stamp:
    """Return the stamp of all parts: entries of one run with the index of another are wrong."""
    first: tuple[str, Stamp] | None = None
    for name, part in parts.items():
        layout.geometry.group(name)
        if weights is not None and part.stamp.weights != weights:
            message = f"group {name!r}: rows {part.span} were made with weights"
            raise ValueError(f"{message} {part.stamp.weights:#x}; the model has {weights:#x} now")
        first = first or (name, part.stamp)
        if part.stamp != first[1]:
            message = f"group {name!r}: rows {part.span} are of run {part.stamp.run!r}, weights"
            other = f"{first[0]!r} of run {first[1].run!r}, weights {first[1].weights:#x}"
            raise ValueError(f"{message} {part.stamp.weights:#x}, but {other}: at {position} too")
    return first[1] if first else Stamp()
