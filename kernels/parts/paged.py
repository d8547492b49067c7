"""Rows in pages that tables name: the copy of them, as reference and as kernel.

A table's entry of -1 is inert padding: its rows are neither read nor written. Page 0 is the null
block: it may be read, and is never written. ``pages`` has the wrappers, which check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch

from fivestate.kernels.device.launch import (
    Pointer,
    Scalar,
    by_triton,
    constexpr,
    jit,
    launch,
    tl,
)
from fivestate.kernels.device.units import PROGRAM_UNITS, as_units, tile_units, unit_bytes
from fivestate.kernels.forms.layout import Layout, Plane


@dataclass(frozen=True)
class Paged:
    """Rows in pages that a table names, from a first row on.

    Attributes:
        pages: shape (pages, ...), any dtype, a page without gaps; pages may be strided.
        table: shape (entries,), int32 or int64, a page or -1; without a table, entry ``i`` is
            page ``i``, and there is no null block.
        layout: where a page has its rows.
        first: the row to begin with, counted from the first row of the first entry.
    """

    pages: torch.Tensor
    table: torch.Tensor | None
    layout: Layout
    first: int = 0

    def places(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the page of each row, -1 where it is inert, and its place in that page."""
        row = torch.arange(self.first, self.first + rows, device=self.pages.device)
        entry = row // self.layout.rows
        page = entry if self.table is None else self.table[entry].long()
        return page, row % self.layout.rows

    def view(self, plane: Plane) -> torch.Tensor:
        """Return a plane of all pages: shape (pages, rows, units); ``pages`` are units."""
        unit = self.pages.element_size()
        shape = (len(self.pages), self.layout.rows, plane.row_bytes // unit)
        strides = (self.pages.stride(0), plane.stride_bytes // unit, 1)
        offset = self.pages.storage_offset() + plane.offset_bytes // unit
        return self.pages.as_strided(shape, strides, offset)


def copy_reference(source: Paged, destination: Paged, rows: int) -> None:
    """Do what ``repack`` does, in torch, to pages of integers."""
    page, place = source.places(rows)
    to_page, to_place = destination.places(rows)
    live = page >= 0
    if destination.table is not None:
        live &= to_page > 0
    page, place, to_page, to_place = (each[live] for each in (page, place, to_page, to_place))
    for plane, to_plane in zip(source.layout.planes, destination.layout.planes, strict=True):
        destination.view(to_plane)[to_page, to_place] = source.view(plane)[page, place]


@jit(any_value=("rows", "source_first", "destination_first"))
def copy_kernel(
    source: Pointer,
    source_table: Pointer,
    destination: Pointer,
    destination_table: Pointer,
    rows: Scalar,
    source_first: Scalar,
    destination_first: Scalar,
    SOURCE_TABLE: constexpr,
    SOURCE_ROWS: constexpr,
    SOURCE_STRIDE: constexpr,
    DESTINATION_TABLE: constexpr,
    DESTINATION_ROWS: constexpr,
    DESTINATION_STRIDE: constexpr,
    PLANES: constexpr,
    RUN: constexpr,
    RUNS: constexpr,
    TILE: constexpr,
) -> None:
    """Copy RUNS runs of RUN rows; a run lies in one page on both sides.

    PLANES has for each plane its offset and stride in the source, the same in the destination,
    and its size; these and the pages' strides count units.
    """
    row = (tl.program_id(0).to(tl.int64) * RUNS + tl.arange(0, RUNS)) * RUN
    live = row < rows
    page = (row + source_first) // SOURCE_ROWS
    start = (row + source_first) % SOURCE_ROWS
    if SOURCE_TABLE:
        page = tl.load(source_table + page, mask=live, other=-1).to(tl.int64)
        live = live & (page >= 0)
    to_page = (row + destination_first) // DESTINATION_ROWS
    to_start = (row + destination_first) % DESTINATION_ROWS
    if DESTINATION_TABLE:
        to_page = tl.load(destination_table + to_page, mask=live, other=-1).to(tl.int64)
        live = live & (to_page > 0)
    left = tl.where(live, tl.minimum(rows - row, RUN), 0)[:, None]
    page = page * SOURCE_STRIDE
    to_page = to_page * DESTINATION_STRIDE
    for plane in tl.static_range(len(PLANES)):
        _copy_plane(
            source + (page + start * PLANES[plane][1] + PLANES[plane][0])[:, None],
            destination + (to_page + to_start * PLANES[plane][3] + PLANES[plane][2])[:, None],
            left,
            PLANES[plane][1],
            PLANES[plane][3],
            PLANES[plane][4],
            RUN,
            TILE,
        )


@jit
def _copy_plane(
    source: Pointer,
    destination: Pointer,
    left: Scalar,
    STRIDE: constexpr,
    TO_STRIDE: constexpr,
    SIZE: constexpr,
    RUN: constexpr,
    TILE: constexpr,
) -> None:
    """Copy one plane of runs, of each so many rows as are left."""
    for column in range(0, RUN * SIZE, TILE):
        unit = column + tl.arange(0, TILE)[None, :]
        bits = tl.load(source + _place(unit, STRIDE, SIZE), mask=unit < left * SIZE)
        tl.store(destination + _place(unit, TO_STRIDE, SIZE), bits, mask=unit < left * SIZE)


@jit
def _place(unit: Scalar, STRIDE: constexpr, SIZE: constexpr) -> Scalar:
    """Return where a unit of a run is, counted from the run's start."""
    if STRIDE == SIZE:
        return unit
    else:  # noqa: RET505 -- Triton compiles one of two branches, not what comes after them
        return unit // SIZE * STRIDE + unit % SIZE


def copy(source: Paged, destination: Paged, rows: int) -> None:
    """Copy rows between pages of bytes, in the widest units that both sides allow.

    Nothing is checked.

    Args:
        source: shape (pages, bytes), dtype uint8, and what ``Paged`` says.
        destination: shape (pages, bytes), dtype uint8, and what ``Paged`` says.
        rows: how many.
    """
    planes = [each for side in (source, destination) for each in side.layout.planes]
    sizes = [(each.offset_bytes, each.row_bytes, each.stride_bytes) for each in planes]
    unit = unit_bytes(source.pages, destination.pages, sizes=tuple(sum(sizes, ())))
    source = replace(source, pages=as_units(source.pages, unit))
    destination = replace(destination, pages=as_units(destination.pages, unit))
    if not by_triton(source.pages):
        copy_reference(source, destination, rows)
        return
    fixed = constants(source, destination, unit)
    runs = -(-rows // fixed["RUN"])
    launch(
        copy_kernel,
        (-(-runs // fixed["RUNS"]),),
        source.pages,
        source.pages if source.table is None else source.table,
        destination.pages,
        destination.pages if destination.table is None else destination.table,
        rows,
        source.first,
        destination.first,
        **fixed,
    )


def constants(source: Paged, destination: Paged, unit: int) -> dict[str, Any]:
    """Return the constants with which rows of so wide units are copied."""
    run = math.gcd(source.layout.rows, destination.layout.rows, source.first, destination.first)
    pairs = zip(source.layout.planes, destination.layout.planes, strict=True)
    planes = tuple(
        (
            *_start_and_stride(plane, source.layout, unit),
            *_start_and_stride(to_plane, destination.layout, unit),
            plane.row_bytes // unit,
        )
        for plane, to_plane in pairs
    )
    longest = max(size for *_, size in planes)
    tile = tile_units(run * longest)
    return {
        "SOURCE_TABLE": source.table is not None,
        "SOURCE_ROWS": source.layout.rows,
        "SOURCE_STRIDE": source.pages.stride(0),
        "DESTINATION_TABLE": destination.table is not None,
        "DESTINATION_ROWS": destination.layout.rows,
        "DESTINATION_STRIDE": destination.pages.stride(0),
        "PLANES": planes,
        "RUN": run,
        "RUNS": PROGRAM_UNITS // tile,
        "TILE": tile,
    }


def _start_and_stride(plane: Plane, layout: Layout, unit: int) -> tuple[int, int]:
    """Return a plane's offset and stride in units; a page of one row has no gap behind it."""
    stride = plane.stride_bytes if layout.rows > 1 else plane.row_bytes
    return plane.offset_bytes // unit, stride // unit
