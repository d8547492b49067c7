"""Layouts: where the rows of a page lie, plane by plane, and when two pages are the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise


@dataclass(frozen=True)
class Plane:
    """One part of every row: row ``i`` of a page has it at ``offset + i * stride``.

    Attributes:
        offset_bytes: where row 0 has it.
        row_bytes: how long it is.
        stride_bytes: from one row's part to that of the next.
    """

    offset_bytes: int
    row_bytes: int
    stride_bytes: int

    def end(self, rows: int) -> int:
        """Return the byte behind the last of so many rows."""
        return self.offset_bytes + (rows - 1) * self.stride_bytes + self.row_bytes


@dataclass(frozen=True)
class Layout:
    """A page of rows (entries, tokens, snapshots): part of the kernel ABI.

    The bytes of a page that are in no plane are padding: nobody reads or writes them.

    Attributes:
        rows: rows of a page, 1 or more.
        page_bytes: bytes of a page, padding included.
        planes: the parts of a row, in the order in which another layout has them as well.
    """

    rows: int
    page_bytes: int
    planes: tuple[Plane, ...]

    def __post_init__(self) -> None:
        """Check that every byte of a row is in the page and belongs to no other.

        Raises:
            ValueError: a plane leaves the page, or two rows or planes share a byte.
        """
        if self.rows < 1 or not self.planes:
            raise ValueError(f"layout: {self.rows} rows in {len(self.planes)} planes")
        for plane in self.planes:
            if plane.row_bytes < 1 or (self.rows > 1 and plane.stride_bytes < plane.row_bytes):
                raise ValueError(f"layout: {plane}: rows overlap, or are empty")
            if plane.offset_bytes < 0 or plane.end(self.rows) > self.page_bytes:
                raise ValueError(f"layout: {plane} leaves a page of {self.page_bytes} bytes")
        for one, other in combinations(self.planes, 2):
            if _meet(one, other, self.rows):
                raise ValueError(f"layout: {one} and {other} share bytes")

    @classmethod
    def joined(cls, rows: int, *parts: int, page_bytes: int = 0) -> Layout:
        """Return rows one behind the other, the parts of each beside each other."""
        row_bytes = sum(parts)
        offsets = [sum(parts[:at]) for at in range(len(parts))]
        planes = (Plane(at, part, row_bytes) for at, part in zip(offsets, parts, strict=True))
        return cls(rows, page_bytes or rows * row_bytes, tuple(planes))

    @classmethod
    def planar(cls, rows: int, *parts: int, page_bytes: int = 0) -> Layout:
        """Return all first parts, then all second parts, such as data and then scales."""
        offsets = [rows * sum(parts[:at]) for at in range(len(parts))]
        planes = (Plane(at, part, part) for at, part in zip(offsets, parts, strict=True))
        return cls(rows, page_bytes or rows * sum(parts), tuple(planes))

    @property
    def parts(self) -> tuple[int, ...]:
        """Bytes of each part of a row."""
        return tuple(plane.row_bytes for plane in self.planes)


def same_bytes(one: Layout, other: Layout) -> bool:
    """Whether a page of one layout is a page of the other: every row byte has the same place.

    Then a page can be used where it is (zero copy); else its rows have to be repacked. Pages of
    other sizes are never the same: a page table of one cannot name pages of the other.
    """
    if one.rows != other.rows or one.page_bytes != other.page_bytes or one.parts != other.parts:
        return False
    return all(
        mine.offset_bytes == its.offset_bytes
        and (one.rows == 1 or mine.stride_bytes == its.stride_bytes)
        for mine, its in zip(one.planes, other.planes, strict=True)
    )


def _meet(one: Plane, other: Plane, rows: int) -> bool:
    """Whether two planes of so many rows share a byte."""
    parts = sorted(
        (plane.offset_bytes + row * plane.stride_bytes, plane.row_bytes)
        for plane in (one, other)
        for row in range(rows)
    )
    return any(start + length > after for (start, length), (after, _) in pairwise(parts))
