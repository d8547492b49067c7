"""Layouts: rows have their own bytes, inside the page, and equal layouts are equal bytes."""

from __future__ import annotations

from itertools import product

import pytest

from fivestate.kernels.forms.layout import Layout, Plane, same_bytes


def bytes_of(layout: Layout) -> list[int]:
    """Return the byte of the page for each byte of each row, in order."""
    return [
        plane.offset_bytes + row * plane.stride_bytes + byte
        for row in range(layout.rows)
        for plane in layout.planes
        for byte in range(plane.row_bytes)
    ]


@pytest.mark.parametrize("rows", [1, 2, 64])
@pytest.mark.parametrize("parts", [(8,), (576, 8), (448, 128, 8)])
def test_rows_fill_a_page_either_way(rows: int, parts: tuple[int, ...]) -> None:
    size = rows * sum(parts)
    for make in (Layout.joined, Layout.planar):
        layout = make(rows, *parts)
        assert sorted(bytes_of(layout)) == list(range(size))
        assert layout.page_bytes == size
        assert layout.parts == parts
        assert make(rows, *parts, page_bytes=size + 16).page_bytes == size + 16


def test_the_pages_of_dsv4_are_planar() -> None:
    """576 bytes of data for each of 64 entries, then their 8 bytes of scales, then padding."""
    layout = Layout.planar(64, 576, 8, page_bytes=37_440)
    assert layout.planes == (Plane(0, 576, 576), Plane(36_864, 8, 8))
    assert layout.planes[1].end(64) == 37_376


def test_layouts_have_the_same_bytes_exactly_if_each_row_byte_has_its_place() -> None:
    made = [
        make(rows, *parts, page_bytes=96)
        for make in (Layout.joined, Layout.planar)
        for rows in (1, 2, 4)
        for parts in ((8,), (8, 4), (12,), (4, 8))
    ]
    made.append(Layout(1, 96, (Plane(0, 8, 0),)))
    for one, other in product(made, made):
        same = bytes_of(one) == bytes_of(other) and one.parts == other.parts
        assert same_bytes(one, other) == same
    assert not same_bytes(Layout.joined(2, 8), Layout.joined(2, 8, page_bytes=32))


@pytest.mark.parametrize(
    ("rows", "page_bytes", "planes", "message"),
    [
        (0, 16, (Plane(0, 8, 8),), "0 rows in 1 planes"),
        (1, 16, (), "1 rows in 0 planes"),
        (2, 16, (Plane(0, 8, 7),), "rows overlap, or are empty"),
        (1, 16, (Plane(0, 0, 8),), "rows overlap, or are empty"),
        (2, 15, (Plane(0, 8, 8),), "leaves a page of 15 bytes"),
        (1, 16, (Plane(-1, 8, 8),), "leaves a page of 16 bytes"),
        (2, 32, (Plane(0, 8, 8), Plane(15, 1, 1)), "share bytes"),
        (2, 32, (Plane(0, 8, 12), Plane(6, 4, 12)), "share bytes"),
    ],
)
def test_a_layout_whose_bytes_are_not_its_own_is_refused(
    rows: int, page_bytes: int, planes: tuple[Plane, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Layout(rows, page_bytes, planes)
