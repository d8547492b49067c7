"""Pages: rows as the pools of the reference allocator have them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fivestate.impl.models.layout import Layout
from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.pools import Pool
from fivestate.spec.need import blocks
from fivestate.spec.reuse import CacheGroup, Span

Table = tuple[int, list[int]]
"""The number of a group's first block, and the ids from there on."""


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


def read_part(pool: Pool, table: Table, end_tokens: int, layout: Layout, stamp: Stamp) -> Part:
    """Return a copy of the rows of a group in its blocks, up to a position."""
    (first, ids), size = table, pool.group.block_size
    start = first * size
    count = blocks(max(end_tokens - start, 0), size)
    pages = pool.read(np.array(ids[:count], np.int64))
    return Part(Span(start, start + count * size), from_pages(pages, pool.group, layout), stamp)


def write_part(pool: Pool, table: Table, start_tokens: int, rows: Tensor) -> None:
    """Fill whole blocks with rows, from the one that begins with a token on.

    Args:
        pool: the group's.
        table: which block has which tokens.
        start_tokens: the first token.
        rows: shape (layers, blocks * entries of a block, width).
    """
    pages = to_pages(rows, pool.group)
    first = start_tokens // pool.group.block_size - table[0]
    own = np.array(table[1][first : first + pages.shape[0]], np.int64)
    pool.write(own, pages.to(pool.storage.device))
