"""Window rings (滑窗窗口): the row of a position lies in cell ``position mod capacity``.

A ring holds the last rows of one sequence. Where a row lies is a function of its position alone,
not of how the sequence was cut into appends, so a ring can be written from linear storage again
(B16). Ring -1 is inert padding, and ring 0 the null ring, which is never written.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.launch import (
    Pointer,
    Scalar,
    by_triton,
    constexpr,
    jit,
    launch,
    tl,
)
from fivestate.kernels.device.units import (
    MOST_BYTES,
    PROGRAM_UNITS,
    as_bytes,
    as_units,
    tile_units,
    unit_bytes,
)


def append_reference(
    rows: torch.Tensor,
    rings: torch.Tensor,
    ring: torch.Tensor,
    first: torch.Tensor,
    count: torch.Tensor,
) -> None:
    """Do what ``append`` does, in torch, to rows of integers."""
    capacity = rings.shape[1]
    row = torch.arange(rows.shape[1], device=rows.device)
    live = (row < count[:, None]) & (row >= count[:, None] - capacity) & (ring[:, None] > 0)
    cell = (first[:, None] + row) % capacity
    rings[ring[:, None].expand_as(cell)[live].long(), cell[live].long()] = rows[live]


def collect_reference(
    rings: torch.Tensor,
    out: torch.Tensor,
    ring: torch.Tensor,
    first: torch.Tensor,
    count: torch.Tensor,
) -> None:
    """Do what ``collect`` does, in torch, to rows of integers."""
    row = torch.arange(out.shape[1], device=out.device)
    live = (row < count[:, None]) & (ring[:, None] >= 0)
    cell = (first[:, None] + row) % rings.shape[1]
    out[live] = rings[ring[:, None].expand_as(cell)[live].long(), cell[live].long()]


@jit(any_value=("width", "total", "sequence_steps"))
def place_kernel(
    rows: Pointer,
    rings: Pointer,
    ring: Pointer,
    first: Pointer,
    count: Pointer,
    width: Scalar,
    total: Scalar,
    sequence_steps: Scalar,
    APPEND: constexpr,
    CAPACITY: constexpr,
    STEP: constexpr,
    ROW_STRIDE: constexpr,
    RING_STRIDE: constexpr,
    CELL_STRIDE: constexpr,
    SIZE: constexpr,
    ROWS: constexpr,
    TILE: constexpr,
) -> None:
    """Copy ROWS of ``width`` rows of each sequence to their cells, or back.

    From one sequence to the next there are so many steps of STEP units: chunks of every length
    share a kernel, which still knows what their addresses are multiples of.
    """
    at = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    sequence = at // width
    row = at % width
    live = at < total
    owner = tl.load(ring + sequence, mask=live, other=-1).to(tl.int64)
    rows_left = tl.load(count + sequence, mask=live, other=0).to(tl.int64)
    position = tl.load(first + sequence, mask=live, other=0).to(tl.int64) + row
    live = live & (row < rows_left) & (owner >= APPEND)
    if APPEND:  # a chunk longer than its ring would overwrite its own beginning: skip that
        live = live & (row >= rows_left - CAPACITY)
    linear = rows + (sequence * sequence_steps * STEP + row * ROW_STRIDE)[:, None]
    cell = rings + (owner * RING_STRIDE + position % CAPACITY * CELL_STRIDE)[:, None]
    for column in range(0, SIZE, TILE):
        unit = column + tl.arange(0, TILE)[None, :]
        there = live[:, None] & (unit < SIZE)
        if APPEND:
            tl.store(cell + unit, tl.load(linear + unit, mask=there), mask=there)
        else:
            tl.store(linear + unit, tl.load(cell + unit, mask=there), mask=there)


def append(
    rows: torch.Tensor,
    rings: torch.Tensor,
    ring: torch.Tensor,
    first: torch.Tensor,
    count: torch.Tensor,
) -> None:
    """Write rows of consecutive positions to their cells; of more rows than cells, the last.

    To restore a window from linear storage is the same: ``first`` is the position of the first
    stored row.

    Args:
        rows: shape (sequences, width, ...), any dtype; only the first ``count`` rows count.
        rings: shape (rings, capacity, ...), a row as long as one of ``rows``; any strides outside
            a row.
        ring: shape (sequences,), int32 or int64: the ring of each sequence, -1 or 0 for none.
        first: shape (sequences,), int32 or int64: the position of each sequence's first row.
        count: shape (sequences,), int32 or int64: how many rows of each sequence there are.

    Raises:
        ValueError: an argument has another dtype, shape or device, a ring does not exist or is
            written by two sequences, a position is negative, a count is not in ``0 .. width``,
            or ``rings`` shares memory with ``rows`` or cells with each other.
    """
    linear, cells = as_bytes("rows", rows, 2), as_bytes("rings", rings, 2)
    checks.shape("rows", linear, None, None, cells.shape[2])
    _check(linear, cells, ring, first, count, written="rings")
    checks.distinct("ring", ring)
    _run(linear, cells, ring, first, count, to_cells=True)


def collect(
    rings: torch.Tensor,
    out: torch.Tensor,
    ring: torch.Tensor,
    first: torch.Tensor,
    count: torch.Tensor,
) -> None:
    """Copy the cells of consecutive positions to rows one behind the other.

    Args:
        rings: shape (rings, capacity, ...), any dtype.
        out: shape (sequences, width, ...), a row as long as one of ``rings``; rows from ``count``
            on stay as they are.
        ring: shape (sequences,), int32 or int64: the ring of each sequence, -1 for none.
        first: shape (sequences,), int32 or int64: the first position wanted of each sequence.
        count: shape (sequences,), int32 or int64: how many positions of each; a ring has no more
            than its capacity.

    Raises:
        ValueError: an argument has another dtype, shape or device, a ring does not exist, a
            position is negative, a count is not in ``0 .. width`` or above the capacity, or
            ``out`` shares memory with ``rings`` or its rows with each other.
    """
    linear, cells = as_bytes("out", out, 2), as_bytes("rings", rings, 2)
    checks.shape("out", linear, None, None, cells.shape[2])
    _check(linear, cells, ring, first, count, written="out")
    checks.values("count", count, 0, cells.shape[1])
    _run(linear, cells, ring, first, count, to_cells=False)


def _check(
    linear: torch.Tensor,
    cells: torch.Tensor,
    ring: torch.Tensor,
    first: torch.Tensor,
    count: torch.Tensor,
    written: str,
) -> None:
    checks.number("rings: capacity", cells.shape[1], 1)
    checks.number("rings: bytes of a row", cells.shape[2], 0, MOST_BYTES)
    for name, numbers in (("ring", ring), ("first", first), ("count", count)):
        checks.dtype(name, numbers, *checks.INTEGERS)
        checks.shape(name, numbers, len(linear))
        checks.dense(name, numbers)
    checks.same_device(rings=cells, rows=linear, ring=ring, first=first, count=count)
    checks.values("ring", ring, -1, len(cells) - 1)
    checks.values("first", first, 0, _LAST_POSITION)
    checks.values("count", count, 0, linear.shape[1])
    if written == "out":
        checks.apart("out", linear)
        checks.disjoint(out=linear, rings=cells)
    else:
        checks.apart("rings", cells)
        checks.disjoint(rings=cells, rows=linear)


_LAST_POSITION = (1 << 62) - 1


def _run(
    linear: torch.Tensor,
    cells: torch.Tensor,
    ring: torch.Tensor,
    first: torch.Tensor,
    count: torch.Tensor,
    *,
    to_cells: bool,
) -> None:
    """Copy between rows and cells of bytes, in the widest units that both allow."""
    unit = unit_bytes(linear, cells)
    linear, cells = as_units(linear, unit), as_units(cells, unit)
    if not by_triton(linear):
        if to_cells:
            append_reference(linear, cells, ring, first, count)
        else:
            collect_reference(cells, linear, ring, first, count)
        return
    sequences, width, size = linear.shape
    total = sequences * width if size else 0
    fixed = constants(linear, cells, to_cells=to_cells)
    programs = -(-total // fixed["ROWS"])
    steps = linear.stride(0) // fixed["STEP"]
    launch(
        place_kernel, (programs,), linear, cells, ring, first, count, width, total, steps, **fixed
    )


def constants(linear: torch.Tensor, cells: torch.Tensor, *, to_cells: bool) -> dict[str, Any]:
    """Return the constants with which rows are copied."""
    tile = tile_units(linear.shape[2])
    return {
        "APPEND": int(to_cells),
        "CAPACITY": cells.shape[1],
        "STEP": max(math.gcd(linear.stride(0), linear.stride(1)), 1),
        "ROW_STRIDE": linear.stride(1),
        "RING_STRIDE": cells.stride(0),
        "CELL_STRIDE": cells.stride(1),
        "SIZE": linear.shape[2],
        "ROWS": PROGRAM_UNITS // tile,
        "TILE": tile,
    }
