"""Places: byte ranges are disjoint, aligned, and stay where they belong (H-4)."""

from __future__ import annotations

from collections.abc import Iterator

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.numbers import Numbers
from fivestate.checker.prove.signature import Expression, numbers
from fivestate.checker.prove.theorem import Question, theorem
from fivestate.spec.reuse.availability import Place
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup

PRESETS = "all pages; every group of every preset"
SIZES = "all addresses, all sizes"


@theorem("H-4", PRESETS)
def pages_are_aligned(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Every page of a pool that starts aligned starts aligned."""
    for where, group in _groups(geometries):
        page, start = numbers("page start")
        given = (page >= 0, start % group.page_alignment == 0)
        at = start + page * group.page_size_bytes
        yield Question(where, given, at % group.page_alignment == 0, {"page": page})


@theorem("H-4", PRESETS)
def pages_are_disjoint(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """No byte of a pool belongs to two pages."""
    for where, group in _groups(geometries):
        one, other, byte = numbers("page other byte")
        given = (one >= 0, other >= 0, _in_page(group, one, byte), _in_page(group, other, byte))
        yield Question(where, given, one == other, {"page": one, "other": other, "byte": byte})


@theorem("H-4", PRESETS)
def entries_stay_in_their_page(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Every entry of a page lies inside it, and no byte belongs to two entries."""
    for where, group in _groups(geometries):
        one, other, byte = numbers("entry other byte")
        given = (
            z3.And(one >= 0, one < group.entries_per_block),
            z3.And(other >= 0, other < group.entries_per_block),
            _in_entry(group, one, byte),
            _in_entry(group, other, byte),
        )
        claim = z3.And(one == other, byte >= 0, byte < group.page_size_bytes)
        yield Question(where, given, claim, {"entry": one, "other": other, "byte": byte})


@theorem("H-4", PRESETS)
def padding_is_the_least(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A page is padded to its alignment and no further."""
    for where, group in _groups(geometries):
        size = z3.Int("size")
        needed = group.entries_per_block * group.bytes_per_entry
        given = (size >= needed, size % group.page_alignment == 0)
        claim = z3.And(
            size >= group.page_size_bytes,
            z3.BoolVal(group.padding_bytes == group.page_size_bytes - needed >= 0),
        )
        yield Question(where, given, claim, {"size": size})


@theorem("H-4", SIZES)
def copies_stay_in_their_region(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Where the first and last byte of a copy are in its region, every byte of every block is."""
    del geometries
    n, place, block, byte = _copy()
    inside = z3.And(n.z3(place.region_start) <= byte, byte < n.z3(place.region_end))
    touched = _touched(n, place, block, byte)
    ends = (
        n.z3(place.region_start) <= n.z3(place.address),
        n.z3(place.last) <= n.z3(place.region_end),
    )
    n.ordered(n.z3(place.stride), block, n.z3(place.count) - 1)
    yield Question("", (*n.given, *ends, touched), inside, {"block": block, "byte": byte})


@theorem("H-4", SIZES)
def blocks_of_a_copy_are_disjoint(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Blocks that are a payload or more apart have no byte in common."""
    del geometries
    n, place, block, byte = _copy()
    other = n.z3(n.new("other"))
    both = (_touched(n, place, block, byte), _touched(n, place, other, byte))
    apart = n.z3(place.stride) >= n.z3(place.payload)
    n.ordered(n.z3(place.stride), block, other)
    shown = {"block": block, "other": other, "byte": byte}
    yield Question("", (*n.given, *both, apart), block == other, shown)


@theorem("H-4", SIZES, fails=True)
def blocks_need_their_distance(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Blocks that are less than a payload apart can share bytes: equal sizes say nothing (B34)."""
    del geometries
    n, place, block, byte = _copy()
    other = n.z3(n.new("other"))
    both = (_touched(n, place, block, byte), _touched(n, place, other, byte))
    shown = {"stride": n.z3(place.stride), "payload": n.z3(place.payload), "byte": byte}
    yield Question("", (*n.given, *both), block == other, shown)


@theorem("H-4", SIZES)
def aligned_copies_have_aligned_blocks(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Where address and stride are aligned, every block is."""
    del geometries
    alignment, first, step, block, address, stride = numbers(
        "alignment first step block address stride",
    )
    given = (alignment >= 1, address == alignment * first, stride == alignment * step)
    claim = address + block * stride == alignment * (first + block * step)
    yield Question("", given, claim, {"block": block, "alignment": alignment})


def _groups(geometries: tuple[Geometry, ...]) -> Iterator[tuple[str, CacheGroup]]:
    for geometry in geometries:
        for group in geometry.groups:
            yield f"{geometry.name}, {group.name}", group


def _in_page(group: CacheGroup, page: Expression, byte: Expression) -> Expression:
    size = group.page_size_bytes
    used = group.entries_per_block * group.bytes_per_entry
    return z3.And(page * size <= byte, byte < page * size + used)


def _in_entry(group: CacheGroup, entry: Expression, byte: Expression) -> Expression:
    size = group.bytes_per_entry
    return z3.And(entry * size <= byte, byte < (entry + 1) * size)


def _copy() -> tuple[Numbers, Place, Expression, Expression]:
    """Return a copy of any size in any place, one of its blocks, and some byte."""
    n = Numbers()
    names = ("address", "stride", "payload", "count", "region start", "region end")
    place = Place(*(n.new(name, int(name in {"payload", "count", "stride"})) for name in names))
    block, byte = n.z3(n.new("block")), n.z3(n.new("byte"))
    n.given.append(block < n.z3(place.count))
    return n, place, block, byte


def _touched(n: Numbers, place: Place, block: Expression, byte: Expression) -> Expression:
    first = n.z3(place.address) + block * n.z3(place.stride)
    return z3.And(first <= byte, byte < first + n.z3(place.payload))


THEOREMS = (
    pages_are_aligned,
    pages_are_disjoint,
    entries_stay_in_their_page,
    padding_is_the_least,
    copies_stay_in_their_region,
    blocks_of_a_copy_are_disjoint,
    blocks_need_their_distance,
    aligned_copies_have_aligned_blocks,
)
