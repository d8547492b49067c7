"""Pages: rows as the pools of the reference allocator have them."""

from __future__ import annotations

import torch
from torch import Tensor

from fivestate.impl.models.layout import Layout
from fivestate.spec.reuse import CacheGroup


def to_pages(rows: Tensor, group: CacheGroup) -> Tensor:
    """Return rows as pages: in each all layers, one after the other.

    Args:
        rows: shape (layers, blocks * entries of a block, width).
        group: whose they are.

    Returns:
        Shape (blocks, page_bytes), dtype uint8.
    """
    layers, _, width = rows.shape
    by_block = rows.reshape(layers, -1, group.entries_per_block, width).transpose(0, 1)
    return by_block.contiguous().flatten(1).view(torch.uint8)


def from_pages(pages: Tensor, group: CacheGroup, layout: Layout) -> Tensor:
    """Return pages as rows, shape (layers, blocks * entries of a block, width)."""
    width = layout.widths[group.name]
    shape = (-1, group.layers, group.entries_per_block, width)
    by_block = pages.cpu().contiguous().view(layout.dtype).reshape(shape)
    return by_block.transpose(0, 1).reshape(group.layers, -1, width).contiguous()
