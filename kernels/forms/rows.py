"""Rows behind page tables: dense ones, or packed as fp8 with a bf16 rotary part."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from fivestate.kernels.device.launch import Pointer, Scalar, constexpr, jit, tl
from fivestate.kernels.forms.packed import get, load_packed


class Pages(NamedTuple):
    """Rows behind a page table: each row is a key, and the value too.

    Attributes:
        pages: shape (num_pages, per_page, dim), dtype of the queries; or packed, shape (num_pages,
            bytes), dtype uint8 (see `fivestate.kernels.forms.packed`). Page 0 is null.
        table: shape (queries, columns), dtype int32: page by position // per_page; -1 is padding.
            Queries of one sequence may share a row (``expand``).
        per_page: rows of one page.
    """

    pages: torch.Tensor
    table: torch.Tensor
    per_page: int

    @property
    def packed(self) -> bool:
        """Whether the pages are packed."""
        return self.pages.dtype == torch.uint8


def pages_of(
    table: torch.Tensor,
    line: torch.Tensor | int,
    column: torch.Tensor,
    num_pages: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pages in some columns of a table's line, and whether they are there.

    A page that is null, padding, out of range or behind the table is not, and null is returned.
    """
    listed = (column >= 0) & (column < table.shape[1])
    if not table.shape[1]:  # without a column there is nothing to look into
        table = table.new_zeros((len(table), 1))
    page = table[line, torch.where(listed, column, 0)].long()
    there = listed & (page > 0) & (page < num_pages)
    return torch.where(there, page, 0), there


def rows_of(held: Pages, query: int, position: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of one query by position, as float32, and whether they are there."""
    page, there = pages_of(held.table, query, position // held.per_page, len(held.pages))
    row = position % held.per_page
    if held.packed:
        return get(held.pages, page, row, held.per_page), there
    return held.pages[page, row].float(), there


@jit
def load_rows(
    pages: Pointer,
    line: Pointer,
    position: Scalar,
    wanted: Scalar,
    columns: Scalar,
    num_pages: Scalar,
    column: Scalar,
    inside: Scalar,
    stride_page: Scalar,
    stride_row: Scalar,
    PER_PAGE: constexpr,
    PACKED: constexpr,
    BLOCK: constexpr,
) -> Any:
    """Load the wanted rows by position, [BLOCK, dim], and count those that are not there."""
    position = tl.where(wanted, position, 0)
    listed = wanted & (position // PER_PAGE < columns)
    page = tl.load(line + position // PER_PAGE, listed, 0)
    there = listed & (page > 0) & (page < num_pages)
    start = pages + tl.where(there, page, 0).to(tl.int64) * stride_page
    row = position % PER_PAGE
    if PACKED:
        rows = load_packed(start, row, column, there, PER_PAGE, BLOCK)
    else:
        place = start[:, None] + row.to(tl.int64)[:, None] * stride_row + column[None, :]
        rows = tl.load(place, there[:, None] & inside[None, :], 0.0)
    return rows, tl.sum((wanted & (there == 0)).to(tl.int32), 0)
