"""Pages between page tables: gather (load back), scatter, and repack, the slow way of H-4.

A table's entry of -1 is inert padding: its rows are neither read nor written. Page 0 is the null
block: it may be read, and is never written, so the padded table of a captured graph does no
harm. What no table names stays as it was. Contents are bytes: pages may have any dtype.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.units import MOST_BYTES, as_bytes
from fivestate.kernels.forms.layout import Layout, same_bytes
from fivestate.kernels.parts.paged import Paged, copy


def gather(pages: torch.Tensor, table: torch.Tensor, out: torch.Tensor) -> None:
    """Copy the pages that a table names to rows one behind the other: row ``i`` is ``table[i]``.

    Args:
        pages: shape (pages, ...), any dtype, a page without gaps; pages may be strided.
        table: shape (rows,), int32 or int64; a row of -1 stays as it is.
        out: shape (rows, ...), a row as long as a page, any dtype; rows may be strided.

    Raises:
        ValueError: an argument has another dtype, shape or device, a page does not exist, or
            ``out`` shares memory with ``pages`` or its rows with each other.
    """
    source, rows = as_bytes("pages", pages), as_bytes("out", out)
    checks.shape("table", table, len(rows))
    checks.shape("out", rows, None, source.shape[1])
    layout = _whole("pages", source)
    _checked(
        Paged(source, table, layout),
        Paged(rows, None, layout),
        len(table),
        ("pages", "table", "out", ""),
    )


def scatter(rows: torch.Tensor, pages: torch.Tensor, table: torch.Tensor) -> None:
    """Copy rows to the pages that a table names: row ``i`` becomes page ``table[i]``.

    Args:
        rows: shape (rows, ...), a row as long as a page, any dtype; rows may be strided.
        pages: shape (pages, ...), any dtype, a page without gaps; pages may be strided.
        table: shape (rows,), int32 or int64; a row of -1 or 0 goes nowhere.

    Raises:
        ValueError: an argument has another dtype, shape or device, a page does not exist or is
            named twice, or ``pages`` shares memory with ``rows`` or pages with each other.
    """
    source, target = as_bytes("rows", rows), as_bytes("pages", pages)
    checks.shape("table", table, len(source))
    checks.shape("rows", source, None, target.shape[1])
    layout = _whole("pages", target)
    _checked(
        Paged(source, None, layout),
        Paged(target, table, layout),
        len(table),
        ("rows", "", "pages", "table"),
    )


def repack(source: Paged, destination: Paged, rows: int) -> None:
    """Copy rows between pages of other sizes or layouts, part by part.

    Padding of the destination's pages stays as it is. Within one pool the pages that are read
    and those that are written must be different ones: that is copy on write.

    Args:
        source: where the rows are.
        destination: where they go; an entry of 0 is inert here.
        rows: how many.

    Raises:
        ValueError: an argument has another dtype, shape or device, the layouts' parts differ, a
            table has too few entries, a page does not exist, is written twice, or is both read
            and written, or pages that are written share memory.
    """
    names = ("source.pages", "source.table", "destination.pages", "destination.table")
    sides = []
    for side, name in ((source, names[0]), (destination, names[2])):
        pages = as_bytes(name, side.pages)
        checks.shape(name, pages, None, side.layout.page_bytes)
        checks.number(f"{name}: bytes of a page", side.layout.page_bytes, 1, MOST_BYTES)
        checks.number(name.replace("pages", "first"), side.first, 0)
        sides.append(replace(side, pages=pages))
    if source.layout.parts != destination.layout.parts:
        parts = f"{destination.layout.parts} is given, {source.layout.parts} is wanted"
        raise ValueError(f"destination.layout: parts of {parts} bytes")
    checks.number("rows", rows, 0)
    _checked(sides[0], sides[1], rows, names)


def zero_copy(
    pages: torch.Tensor, stored: Layout, wanted: Layout, alignment_bytes: int = 1, first: int = 0
) -> bool:
    """Whether pages can be used where they are: same bytes, aligned, from a page's first row on.

    Otherwise their rows have to be repacked (H-4).

    Args:
        pages: shape (pages, ...), any dtype, a page without gaps.
        stored: where they have their rows.
        wanted: where the consumer looks for them.
        alignment_bytes: what its kernel wants the address and the stride of pages to divide by.
        first: the row of the first page with which the consumer begins.
    """
    places = as_bytes("pages", pages)
    aligned = math.gcd(alignment_bytes, places.data_ptr(), places.stride(0)) == alignment_bytes
    return aligned and first == 0 and same_bytes(stored, wanted)


def _whole(argument: str, pages: torch.Tensor) -> Layout:
    """Return the layout of pages that are copied as they are."""
    checks.number(f"{argument}: bytes of a page", pages.shape[1], 0, MOST_BYTES)
    return Layout.joined(1, max(pages.shape[1], 1))


def _checked(
    source: Paged, destination: Paged, rows: int, names: tuple[str, str, str, str]
) -> None:
    """Check both sides, whose pages are bytes, and copy."""
    tensors = {}
    for side, name, table_name in (
        (source, *names[:2]),
        (destination, *names[2:]),
    ):
        tensors[name] = side.pages
        if side.table is not None:
            tensors[table_name] = side.table
            checks.dtype(table_name, side.table, *checks.INTEGERS)
            checks.shape(table_name, side.table, None)
            checks.dense(table_name, side.table)
        entries = -(-(side.first + rows) // side.layout.rows)
        there = len(side.pages) if side.table is None else len(side.table)
        if entries > there:
            where = name if side.table is None else table_name
            raise ValueError(f"{where}: {there} entries, {entries} are needed")
    checks.same_device(**tensors)
    checks.apart(names[2], destination.pages)
    if not rows or not source.pages.shape[1]:
        return
    _check_values(source, destination, rows, names)
    copy(source, destination, rows)


def _check_values(
    source: Paged, destination: Paged, rows: int, names: tuple[str, str, str, str]
) -> None:
    """Check the pages that are named, as far as they may be looked at, and that none is both."""
    read, written = _entries(source, rows), _entries(destination, rows)
    if read is not None:
        checks.values(names[1], read, -1, len(source.pages) - 1)
    if written is not None:
        checks.values(names[3], written, -1, len(destination.pages) - 1)
        checks.distinct(names[3], written)
    if _same(source.pages, destination.pages) and read is not None and written is not None:
        if checks.readable(read):
            both = written[(written > 0) & torch.isin(written, read)]
            if len(both):
                raise ValueError(f"{names[3]}: {int(both[0])} is read as well")
        return
    checks.disjoint(**{names[2]: destination.pages, names[0]: source.pages})


def _entries(side: Paged, rows: int) -> torch.Tensor | None:
    """Return the part of a table that is used."""
    if side.table is None:
        return None
    return side.table[side.first // side.layout.rows : -(-(side.first + rows) // side.layout.rows)]


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    places = [(each.data_ptr(), each.shape, each.stride()) for each in (one, other)]
    return places[0] == places[1]
