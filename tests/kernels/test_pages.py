"""Pages between tables, against one oracle: exact to the byte, and nothing else is touched."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.ways import (
    DEVICE,
    POISON,
    each_way,
    needs_interpreter,
    poisoned,
    random_bytes,
    running,
)

from fivestate.kernels.device.launch import launch
from fivestate.kernels.forms.layout import Layout
from fivestate.kernels.pages import gather, repack, scatter, zero_copy
from fivestate.kernels.parts import paged as module
from fivestate.kernels.parts.paged import Paged

PAGE_SIZES = (1, 8, 127, 128, 129, 130, 255, 256, 257, 1_728, 8_640, 32_832, 37_440)
"""Odd ones, those around a power of two, and the pages of dsv4-flash."""


def oracle(source: Paged, destination: Paged, rows: int) -> torch.Tensor:
    """Return the destination's pages after a copy, one byte after the other."""
    before = [bytes(page.tolist()) for page in source.pages.cpu()]
    after = [bytearray(page.tolist()) for page in destination.pages.cpu()]
    for row in range(rows):
        page, place = located(source, row)
        to_page, to_place = located(destination, row)
        if page < 0 or to_page < 0 or (to_page == 0 and destination.table is not None):
            continue
        for plane, to_plane in zip(source.layout.planes, destination.layout.planes, strict=True):
            start = plane.offset_bytes + place * plane.stride_bytes
            to_start = to_plane.offset_bytes + to_place * to_plane.stride_bytes
            part = before[page][start : start + plane.row_bytes]
            after[to_page][to_start : to_start + len(part)] = part
    return torch.tensor([list(page) for page in after], dtype=torch.uint8)


def located(side: Paged, row: int) -> tuple[int, int]:
    entry, place = divmod(side.first + row, side.layout.rows)
    return (entry if side.table is None else int(side.table[entry])), place


def check_repack(source: Paged, destination: Paged, rows: int) -> None:
    expected = oracle(source, destination, rows)
    repack(source, destination, rows)
    assert torch.equal(destination.pages.cpu(), expected)


def table_of(*entries: int, kind: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.tensor(entries, dtype=kind)


@each_way
@pytest.mark.parametrize("page_bytes", PAGE_SIZES)
def test_gather_takes_named_pages_and_leaves_inert_rows(way: str, page_bytes: int) -> None:
    with running(way) as device:
        pages = random_bytes(7, page_bytes, device=device)
        table = table_of(5, -1, 0, 6, 5, 1).to(device)
        out = poisoned(len(table), page_bytes, device=device)
        gather(pages, table, out)
        for row, page in zip(out, table, strict=True):
            assert torch.equal(row, pages[page] if page >= 0 else torch.full_like(row, POISON))


@each_way
@pytest.mark.parametrize("page_bytes", PAGE_SIZES)
def test_scatter_writes_named_pages_and_nothing_else(way: str, page_bytes: int) -> None:
    with running(way) as device:
        rows = random_bytes(6, page_bytes, device=device)
        table = table_of(5, -1, 0, 3, 0, 1, kind=torch.int64).to(device)
        pages = poisoned(7, page_bytes, device=device)
        scatter(rows, pages, table)
        expected = poisoned(7, page_bytes, device=device)
        for row, page in zip(rows, table, strict=True):
            if page > 0:
                expected[page] = row
        assert torch.equal(pages, expected)


@each_way
def test_the_null_block_is_read_but_never_written(way: str) -> None:
    with running(way) as device:
        pages = random_bytes(4, 64, device=device)
        before = pages.clone()
        scatter(poisoned(3, 64, device=device), pages, table_of(0, 0, -1).to(device))
        assert torch.equal(pages, before)
        out = poisoned(1, 64, device=device)
        gather(pages, table_of(0).to(device), out)
        assert torch.equal(out[0], pages[0])


@each_way
@pytest.mark.parametrize(
    "kind", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool]
)
def test_pages_of_any_dtype_are_bytes(way: str, kind: torch.dtype) -> None:
    with running(way) as device:
        content = random_bytes(5, 6, 64, device=device)
        if kind is torch.bool:
            content &= 1
        pages = content.view(kind)
        out = poisoned(3, 6, 64, device=device).view(kind)
        gather(pages, table_of(4, 1, 2).to(device), out)
        assert torch.equal(out.view(torch.uint8), content[[4, 1, 2]])
        scatter(out, pages, table_of(1, 2, 3).to(device))
        assert torch.equal(content[1:4], out.view(torch.uint8))


@each_way
@pytest.mark.parametrize("gap", [1, 2, 4, 8, 16, 100])
@pytest.mark.parametrize("offset", [0, 1, 2, 4, 8])
def test_strided_pages_keep_what_lies_between_them(way: str, gap: int, offset: int) -> None:
    with running(way) as device:
        memory = poisoned(6 * (96 + gap) + offset, device=device)
        pages = memory.as_strided((6, 96), (96 + gap, 1), offset)
        rows = random_bytes(3, 96, device=device)
        expected = memory.clone()
        expected.as_strided((6, 96), (96 + gap, 1), offset)[[4, 1, 3]] = rows
        scatter(rows, pages, table_of(4, 1, 3).to(device))
        assert torch.equal(memory, expected)


@each_way
def test_two_views_of_one_slab_are_apart_if_their_columns_are(way: str) -> None:
    with running(way) as device:  # B33: the index of a block lies behind its entries
        slab = random_bytes(5, 100, device=device)
        entries, index = slab[:, :80], slab[:, 80:]
        before = entries.clone()
        scatter(entries[:, :20], index, table_of(-1, 2, 1, 4, 3).to(device))
        assert torch.equal(index[1:], before[:, :20][[2, 1, 4, 3]])
        assert torch.equal(entries, before)


LAYOUTS = {
    "planar": Layout.planar(64, 576, 8, page_bytes=37_440),
    "joined": Layout.joined(64, 576, 8, page_bytes=37_440),
    "planar 16": Layout.planar(16, 576, 8, page_bytes=9_792),
    "joined 6": Layout.joined(6, 576, 8),
    "joined 1": Layout.joined(1, 576, 8),
}
"""Compressed entries as vLLM lays them out (data, then scales), and in other ways."""


def sides(
    one: Layout, other: Layout, rows: int, firsts: tuple[int, int], device: torch.device
) -> tuple[Paged, Paged]:
    """Return a source of random bytes and a poisoned destination, in random page order."""
    made = []
    for layout, first, seed in ((one, firsts[0], 1), (other, firsts[1], 2)):
        entries = -(-(first + rows) // layout.rows)
        order = torch.randperm(entries + 3, generator=torch.Generator().manual_seed(seed)) + 1
        pages = random_bytes(entries + 4, layout.page_bytes, seed=seed, device=device)
        made.append(Paged(pages, order[:entries].int().to(device), layout, first))
    made[1].pages.fill_(POISON)
    return made[0], made[1]


@each_way
@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_rows_keep_their_parts_between_any_two_layouts(way: str, one: str, other: str) -> None:
    with running(way) as device:
        source, destination = sides(LAYOUTS[one], LAYOUTS[other], 70, (0, 0), device)
        check_repack(source, destination, 70)


@each_way
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 11, 12, 13, 127, 128, 129, 130])
def test_any_number_of_rows_is_copied_to_the_last_and_no_further(way: str, rows: int) -> None:
    with running(way) as device:  # pages of 4 and 6 rows: their common multiple is 12
        one, other = Layout.planar(4, 16, 3), Layout.joined(6, 16, 3, page_bytes=128)
        check_repack(*sides(one, other, rows, (0, 0), device), rows)


@each_way
@pytest.mark.parametrize("firsts", [(1, 0), (0, 5), (3, 5), (4, 2), (64, 32), (63, 1)])
def test_a_misplaced_row_goes_where_the_consumer_looks(way: str, firsts: tuple[int, int]) -> None:
    with running(way) as device:
        one, other = Layout.joined(64, 24), Layout.joined(32, 24)
        check_repack(*sides(one, other, 70, firsts, device), 70)


@each_way
def test_inert_entries_of_either_side_move_nothing(way: str) -> None:
    with running(way) as device:
        source, destination = sides(Layout.joined(4, 16), Layout.joined(2, 16), 24, (0, 0), device)
        assert source.table is not None
        assert destination.table is not None
        source.table[1], source.table[2] = -1, 0
        destination.table[0], destination.table[5], destination.table[6] = -1, 0, 0
        check_repack(source, destination, 24)


@each_way
def test_staging_needs_no_table(way: str) -> None:
    with running(way) as device:
        source, destination = sides(LAYOUTS["planar"], LAYOUTS["joined 1"], 100, (5, 0), device)
        check_repack(source, replace(destination, table=None), 100)
        back = Paged(random_bytes(6, 37_440, seed=9, device=device), source.table, source.layout, 5)
        check_repack(replace(destination, table=None), back, 100)


@each_way
def test_copy_on_write_stays_in_one_pool(way: str) -> None:
    with running(way) as device:
        layout = Layout.joined(4, 16)
        pool = random_bytes(6, layout.page_bytes, device=device)
        shared = Paged(pool, table_of(5, 2).to(device), layout)
        own = Paged(pool, table_of(1, 3).to(device), layout)
        check_repack(shared, own, 7)
        with pytest.raises(ValueError, match=r"destination\.table: 2 is read as well"):
            repack(shared, replace(own, table=table_of(1, 2).to(device)), 7)


sizes = st.integers(1, 9)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_kernel_and_reference_agree_on_any_shape(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 8, 16, 24]), min_size=1, max_size=3))
    made = []
    for _ in range(2):
        way = data.draw(st.sampled_from([Layout.joined, Layout.planar]))
        rows = data.draw(sizes)
        padding = data.draw(st.sampled_from([0, 1, 8, 16]))
        made.append(way(rows, *parts, page_bytes=rows * sum(parts) + padding))
    rows = data.draw(st.integers(0, 40))
    firsts = (data.draw(sizes) - 1, data.draw(sizes) - 1)
    found = []
    for way_to_run in ("reference", "kernel"):
        with running(way_to_run) as device:
            source, destination = sides(made[0], made[1], rows, firsts, device)
            expected = oracle(source, destination, rows)
            repack(source, destination, rows)
            found.append(destination.pages.cpu())
    assert torch.equal(found[0], expected)
    assert torch.equal(found[1], expected)


@each_way
def test_addresses_beyond_two_gigabytes_are_right(way: str) -> None:
    """The memory is never touched but at its ends, so it costs next to nothing."""
    if DEVICE.type != "cpu" and way == "reference":
        pytest.skip("the GPU's memory is for the kernel")
    with running(way) as device:
        pages = torch.empty((37, 1 << 26), dtype=torch.uint8, device=device)
        assert pages.numel() > 1 << 31
        narrow = pages[:, -64:]
        rows = random_bytes(2, 64, device=device)
        scatter(rows, narrow, table_of(36, 35).to(device))
        assert torch.equal(pages[36, -64:], rows[0])
        out = poisoned(2, 64, device=device)
        gather(narrow, table_of(35, 36).to(device), out)
        assert torch.equal(out, rows[[1, 0]])


def test_zero_copy_needs_the_same_bytes_aligned_from_the_first_row() -> None:
    planar, joined = LAYOUTS["planar"], LAYOUTS["joined"]
    memory = torch.empty(3 * 37_440 + 64, dtype=torch.uint8)
    start = -memory.data_ptr() % 64
    pages = memory[start : start + 2 * 37_440].view(2, 37_440)
    assert zero_copy(pages, planar, planar, alignment_bytes=16)
    assert not zero_copy(pages, planar, joined, alignment_bytes=16)
    assert not zero_copy(pages, planar, planar, alignment_bytes=16, first=1)
    assert not zero_copy(pages, planar, LAYOUTS["planar 16"], alignment_bytes=16)
    shifted = memory[start + 8 : start + 8 + 2 * 37_440].view(2, 37_440)
    assert not zero_copy(shifted, planar, planar, alignment_bytes=16)
    assert zero_copy(shifted, planar, planar, alignment_bytes=8)
    strided = memory[start:].as_strided((2, 37_440), (37_448, 1))
    assert not zero_copy(strided, planar, planar, alignment_bytes=16)


def test_what_is_zero_copy_is_what_a_repack_would_not_change() -> None:
    for one in LAYOUTS.values():
        for other in LAYOUTS.values():
            source, destination = sides(one, other, 64, (0, 0), torch.device("cpu"))
            same = zero_copy(source.pages, one, other)
            with running("reference"):
                repack(source, destination, 64)
            if source.pages.shape[1] != destination.pages.shape[1]:
                assert not same
                continue
            used = one.rows * sum(one.parts)
            whole = 64 // one.rows
            assert source.table is not None
            assert destination.table is not None
            before = source.pages[source.table[:whole].long(), :used]
            after = destination.pages[destination.table[:whole].long(), :used]
            assert same == torch.equal(before, after)


def huge() -> torch.Tensor:
    """Return a page that is never touched."""
    return torch.empty(1, 1 << 31, dtype=torch.uint8)


def wrong_arguments() -> dict[str, tuple[object, str]]:
    """Return calls with one bad argument each, and how they are refused."""
    pages, rows, good = poisoned(4, 64), poisoned(2, 64), table_of(1, 2)
    layout = Layout.joined(4, 16)
    side, to_side = Paged(pages, good, layout), Paged(poisoned(4, 64), good, layout)
    return {
        "table of floats": (
            lambda: gather(pages, good.float(), rows),
            "table: float32 is given, int32 or int64 is wanted",
        ),
        "table of another length": (
            lambda: gather(pages, table_of(1), rows),
            r"table: shape \(1,\) is given, \(2\) is wanted",
        ),
        "table with gaps": (
            lambda: gather(pages, table_of(1, 0, 2, 0)[::2], rows),
            "table: stride 2 in dimension 0, 1 is wanted",
        ),
        "page that does not exist": (
            lambda: gather(pages, table_of(1, 4), rows),
            r"table\[1\]: 4 is given, -1 .. 3 is wanted",
        ),
        "page below the padding": (
            lambda: scatter(rows, pages, table_of(-2, 1)),
            r"table\[0\]: -2 is given, -1 .. 3 is wanted",
        ),
        "page written twice": (
            lambda: scatter(rows, pages, table_of(3, 3)),
            "table: 3 is given more than once",
        ),
        "rows of another size": (
            lambda: scatter(poisoned(2, 63), pages, good),
            r"rows: shape \(2, 63\) is given, \(any, 64\) is wanted",
        ),
        "out of another size": (
            lambda: gather(pages, good, poisoned(2, 65)),
            r"out: shape \(2, 65\) is given, \(any, 64\) is wanted",
        ),
        "pages with gaps inside": (
            lambda: gather(poisoned(4, 128)[:, ::2], good, rows),
            "pages: stride 2 in dimension 1, 1 is wanted",
        ),
        "rows with gaps inside": (
            lambda: scatter(poisoned(2, 128)[:, ::2], pages, good),
            "rows: stride 2 in dimension 1, 1 is wanted",
        ),
        "out inside the pages": (
            lambda: gather(pages, good, pages[1:3]),
            "out: shares memory with pages",
        ),
        "rows inside the pages": (
            lambda: scatter(pages[1:3], pages, good),
            "pages: shares memory with rows",
        ),
        "rows of out that are one": (
            lambda: gather(pages, good, rows[:1].expand(2, 64)),
            "out: a stride of 0 lets what it holds overlap",
        ),
        "pages that overlap": (
            lambda: scatter(rows, pages.view(-1).as_strided((4, 64), (32, 1)), good),
            "pages: a stride of 32 lets what it holds overlap",
        ),
        "page too large": (
            lambda: gather(huge(), table_of(0), huge()),
            "pages: bytes of a page: 2147483648 is given, 0 .. 2147418112 is wanted",
        ),
        "out without a dimension": (
            lambda: gather(pages, good, torch.tensor(1)),
            "out: 0 dimensions are given, 1 is least",
        ),
        "pages without a dimension": (
            lambda: gather(torch.tensor(1), good, rows),
            "pages: 0 dimensions are given, 1 is least",
        ),
        "device of the table": (
            lambda: gather(pages, good.to("meta"), rows),
            "table: on meta, but pages is on cpu",
        ),
        "device of the pages": (
            lambda: scatter(rows, pages.to("meta"), good),
            "pages: on meta, but rows is on cpu",
        ),
        "too few source entries": (
            lambda: repack(side, to_side, 9),
            r"source\.table: 2 entries, 3 are needed",
        ),
        "too few destination entries": (
            lambda: repack(replace(side, table=None), to_side, 9),
            r"destination\.table: 2 entries, 3 are needed",
        ),
        "too few pages": (
            lambda: repack(replace(side, table=None), to_side, 17),
            r"source\.pages: 4 entries, 5 are needed",
        ),
        "negative rows": (lambda: repack(side, to_side, -1), "rows: -1 is given, 0 .. is wanted"),
        "negative first row": (
            lambda: repack(replace(side, first=-1), to_side, 1),
            r"source\.first: -1 is given, 0 .. is wanted",
        ),
        "page of another size": (
            lambda: repack(side, replace(to_side, pages=poisoned(4, 65)), 1),
            r"destination\.pages: shape \(4, 65\) is given, \(any, 64\) is wanted",
        ),
        "other parts": (
            lambda: repack(side, replace(to_side, layout=Layout.joined(4, 8, 8)), 1),
            r"destination\.layout: parts of \(8, 8\) is given, \(16,\) is wanted bytes",
        ),
        "destination written twice": (
            lambda: repack(side, replace(to_side, table=table_of(1, 1)), 8),
            r"destination\.table: 1 is given more than once",
        ),
    }


@pytest.mark.parametrize("case", wrong_arguments())
def test_a_bad_argument_is_named_before_anything_is_launched(case: str) -> None:
    call, message = wrong_arguments()[case]
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()


def test_entries_that_are_not_used_may_be_anything() -> None:
    layout = Layout.joined(4, 16)
    source = Paged(random_bytes(4, 64), table_of(99, 1, 99), layout, 4)
    with running("reference"):
        check_repack(source, Paged(poisoned(4, 64), table_of(2, 99), layout), 4)


def test_a_reference_that_takes_the_wrong_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Paged.places

    def naive(self: Paged, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        page, place = places(replace(self, first=0), rows)  # B36: equal bytes, another place
        return page, place

    monkeypatch.setattr(Paged, "places", naive)
    with running("reference"), pytest.raises(AssertionError):
        test_a_misplaced_row_goes_where_the_consumer_looks("reference", (3, 5))


@needs_interpreter
def test_a_kernel_that_writes_the_null_block_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = module.constants

    def faulty(source: Paged, destination: Paged, unit: int) -> dict[str, object]:
        return {**constants(source, destination, unit), "DESTINATION_TABLE": False}

    monkeypatch.setattr(module, "constants", faulty)
    with pytest.raises(AssertionError):
        test_the_null_block_is_read_but_never_written("kernel")


@needs_interpreter
def test_a_kernel_that_goes_on_behind_the_last_row_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def faulty(kernel: Any, grid: tuple[int], *arguments: Any, **constants: Any) -> None:
        most = constants["RUN"] * math.prod(grid) * constants["RUNS"]
        launch(kernel, grid, *arguments[:4], most, *arguments[5:], **constants)

    monkeypatch.setattr("fivestate.kernels.parts.paged.launch", faulty)
    with running("kernel") as device:
        one = Layout.joined(4, 16)
        source, destination = sides(one, one, 5, (0, 0), device)
        with pytest.raises((AssertionError, ValueError)):
            check_repack(source, destination, 5)
