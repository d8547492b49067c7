"""Window rings, against an oracle that appends one row after the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.ways import (
    DEVICE,
    POISON,
    WAYS,
    each_way,
    needs_interpreter,
    poisoned,
    random_bytes,
    running,
    stores,
)

from fivestate.kernels import window as module
from fivestate.kernels.device.launch import launch
from fivestate.kernels.window import append, collect
from fivestate.spec.need import window_start
from fivestate.spec.reuse.scenarios import read_scenarios

SCENARIOS = Path(__file__).parents[1] / "scenarios" / "public-faults.jsonl"
WINDOW = 128
COUNTS = (0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 130, 255, 256, 257)

Chunks = list[tuple[int, int, int]]
"""For each sequence: its ring, the position of its first row, and how many rows there are."""


def numbers(values: list[int], device: torch.device) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64, device=device)


def columns(chunks: Chunks, device: torch.device) -> tuple[torch.Tensor, ...]:
    return tuple(numbers(list(column), device) for column in zip(*chunks, strict=True))


def appended(rows: torch.Tensor, rings: torch.Tensor, chunks: Chunks) -> torch.Tensor:
    """Return the rings after each row was written on its own, in order."""
    after = rings.clone()
    for sequence, (ring, first, count) in enumerate(chunks):
        for row in range(count):
            if ring > 0:
                after[ring, (first + row) % after.shape[1]] = rows[sequence, row]
    return after


def collected(rings: torch.Tensor, out: torch.Tensor, chunks: Chunks) -> torch.Tensor:
    """Return the rows after each was looked up on its own."""
    after = out.clone()
    for sequence, (ring, first, count) in enumerate(chunks):
        for row in range(count):
            if ring >= 0:
                after[sequence, row] = rings[ring, (first + row) % rings.shape[1]]
    return after


def check_append(rows: torch.Tensor, rings: torch.Tensor, chunks: Chunks) -> None:
    expected = appended(rows.cpu(), rings.cpu(), chunks)
    append(rows, rings, *columns(chunks, rings.device))
    assert torch.equal(rings.cpu(), expected)


def check_collect(rings: torch.Tensor, out: torch.Tensor, chunks: Chunks) -> None:
    expected = collected(rings.cpu(), out.cpu(), chunks)
    collect(rings, out, *columns(chunks, rings.device))
    assert torch.equal(out.cpu(), expected)


@each_way
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("first", [0, 1, WINDOW - 1, 1_000_003])
def test_a_chunk_of_any_length_leaves_its_last_rows(way: str, count: int, first: int) -> None:
    with running(way) as device:
        rows = random_bytes(2, max(count, 1), 9, seed=count, device=device)
        check_append(rows, poisoned(4, WINDOW, 9, device=device), [(3, first, count), (1, 5, 1)])


@each_way
def test_how_a_sequence_is_cut_into_chunks_does_not_show(way: str) -> None:
    with running(way) as device:
        rows = random_bytes(1, 40, 24, device=device)
        images = []
        for cuts in ((0, 40), (0, 1, 2, 40), (0, 7, 8, 9, 24, 40), tuple(range(41))):
            rings = poisoned(2, 8, 24, device=device)
            for start, end in pairwise(cuts):
                part = rows[:, start:end]
                append(part, rings, *columns([(1, start, end - start)], device))
            images.append(rings)
        assert all(torch.equal(image, images[0]) for image in images)


@needs_interpreter
@pytest.mark.parametrize("count", [127, 128, 129, 257, 600])
def test_no_cell_is_written_twice_in_one_launch(count: int) -> None:
    """Programs run in any order, so the last row to be written would be anybody's."""
    with running("kernel") as device, stores() as written:
        rows, rings = random_bytes(1, count, 8), poisoned(2, WINDOW, 8)
        append(rows, rings, *columns([(1, 77, count)], device))
    assert len(written) == len(set(written)) == min(count, WINDOW)


@each_way
@pytest.mark.parametrize("position", [1, WINDOW - 1, WINDOW, WINDOW + 1, 255, 256, 257])
def test_a_window_comes_back_as_the_query_reads_it(way: str, position: int) -> None:
    with running(way) as device:
        rows = random_bytes(1, position, 16, device=device)
        rings = poisoned(2, WINDOW, 16, device=device)
        append(rows, rings, *columns([(1, 0, position)], device))
        start = window_start(position, WINDOW)
        out = poisoned(1, WINDOW, 16, device=device)
        check_collect(rings, out, [(1, start, position - start)])
        assert torch.equal(out[0, : position - start], rows[0, start:])
        assert bool((out[0, position - start :] == POISON).all())


@each_way
def test_inert_sequences_and_the_null_ring_stay_as_they_are(way: str) -> None:
    with running(way) as device:
        rows = random_bytes(4, 3, 16, device=device)
        rings = random_bytes(3, 4, 16, seed=1, device=device)
        chunks = [(-1, 0, 3), (0, 5, 3), (2, 7, 0), (0, 1, 2)]
        before = rings.clone()
        check_append(rows, rings, chunks)
        assert torch.equal(rings, before)
        out = poisoned(4, 3, 16, device=device)
        check_collect(rings, out, chunks)
        assert bool((out[0] == POISON).all())
        assert torch.equal(out[1], rings[0, [1, 2, 3]])


@each_way
@pytest.mark.parametrize("row_bytes", [1, 2, 4, 8, 16, 127, 128, 129, 576, 584, 8_192])
def test_rows_of_any_size_and_stride_keep_what_lies_between_them(way: str, row_bytes: int) -> None:
    with running(way) as device:
        for gap, offset in ((0, 0), (1, 3), (8, 8)):
            step = row_bytes + gap
            memory = poisoned(3 * (5 * step + 16) + offset, device=device)
            rings = memory.as_strided((3, 5, row_bytes), (5 * step + 16, step, 1), offset)
            source = random_bytes(2, 7, step, device=device)[:, :, :row_bytes]
            chunks = [(2, 3, 7), (1, 11, 2)]
            expected = memory.clone()
            view = expected.as_strided(rings.shape, rings.stride(), offset)
            view.copy_(appended(source.cpu(), rings.cpu(), chunks))
            append(source, rings, *columns(chunks, device))
            assert torch.equal(memory, expected)
            check_collect(rings, poisoned(2, 6, row_bytes, device=device), [(2, 5, 5), (1, 11, 2)])


@each_way
def test_a_ring_that_is_restored_from_linear_storage_takes_the_next_row_rightly(way: str) -> None:
    """B16: the cells of 6..9 are 2, 3, 0, 1; packed from cell 0 on, row 10 would overwrite 8."""
    said = read_scenarios(SCENARIOS.read_text("utf-8"))["B16"]
    assert "cell=pos%4" in said.right
    with running(way) as device:
        written = random_bytes(1, 11, 16, device=device)
        ring = poisoned(2, 4, 16, device=device)
        append(written[:, :10], ring, *columns([(1, 0, 10)], device))
        stored = poisoned(1, 4, 16, device=device)
        collect(ring, stored, *columns([(1, 6, 4)], device))
        assert torch.equal(stored[0], written[0, 6:10])

        elsewhere = poisoned(2, 4, 16, device=device)
        append(stored, elsewhere, *columns([(1, 6, 4)], device))
        assert torch.equal(elsewhere, ring)
        append(written[:, 10:], elsewhere, *columns([(1, 10, 1)], device))
        read = poisoned(1, 4, 16, device=device)
        collect(elsewhere, read, *columns([(1, 7, 4)], device))
        assert torch.equal(read[0], written[0, 7:11])

        naive = poisoned(2, 4, 16, device=device)
        naive[1] = stored[0]
        append(written[:, 10:], naive, *columns([(1, 10, 1)], device))
        collect(naive, read, *columns([(1, 7, 4)], device))
        assert not torch.equal(read[0], written[0, 7:11])


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_kernel_and_reference_agree_on_any_shape(data: st.DataObject) -> None:
    capacity, width = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    row_bytes = data.draw(st.sampled_from([1, 2, 3, 4, 8, 12, 16, 40]))
    order = data.draw(st.permutations([1, 2, 3]))
    owners = [data.draw(st.sampled_from([-1, 0, ring])) for ring in order]
    firsts = [data.draw(st.integers(0, 1 << 40)) for _ in owners]
    counts = [data.draw(st.integers(0, width)) for _ in owners]
    chunks = list(zip(owners, firsts, counts, strict=True))
    fewer = [(ring, first, min(count, capacity)) for ring, first, count in chunks]
    for way in WAYS:
        with running(way) as device:
            rows = random_bytes(3, width, row_bytes, seed=width, device=device)
            rings = random_bytes(4, capacity, row_bytes, seed=capacity, device=device)
            check_append(rows, rings, chunks)
            check_collect(rings, poisoned(3, width, row_bytes, device=device), fewer)


@each_way
def test_addresses_beyond_two_gigabytes_are_right(way: str) -> None:
    """The memory is never touched but at its ends, so it costs next to nothing."""
    if DEVICE.type != "cpu" and way == "reference":
        pytest.skip("the GPU's memory is for the kernel")
    with running(way) as device:
        rings = torch.empty((3, 1 << 25, 32), dtype=torch.uint8, device=device)
        assert rings.stride(0) * 2 + (1 << 24) * 32 > 1 << 31
        rows = random_bytes(1, 2, 32, device=device)
        first = (7 << 25) + (1 << 25) - 1  # the last cell, then the first one
        append(rows, rings, *columns([(2, first, 2)], device))
        assert torch.equal(rings[2, [-1, 0]], rows[0])
        out = poisoned(1, 2, 32, device=device)
        collect(rings, out, *columns([(2, first, 2)], device))
        assert torch.equal(out, rows)


Call = Callable[[], None]


def huge() -> torch.Tensor:
    """Return a row that is never touched."""
    return torch.empty(1, 1, 1 << 31, dtype=torch.uint8)


def wrong_arguments() -> dict[str, tuple[Call, str]]:
    """Return calls with one bad argument each, and how they are refused."""
    rows, rings = poisoned(2, 3, 16), poisoned(4, 8, 16)
    cpu = torch.device("cpu")
    ring, first, count = columns([(1, 0, 3), (2, 0, 3)], cpu)
    return {
        "rows of another size": (
            lambda: append(poisoned(2, 3, 15), rings, ring, first, count),
            r"rows: shape \(2, 3, 15\) is given, \(any, any, 16\) is wanted",
        ),
        "out of another size": (
            lambda: collect(rings, poisoned(2, 3, 17), ring, first, count),
            r"out: shape \(2, 3, 17\) is given, \(any, any, 16\) is wanted",
        ),
        "rows of one dimension": (
            lambda: append(poisoned(2), rings, ring, first, count),
            "rows: 1 dimensions are given, 2 is least",
        ),
        "rings with gaps inside a row": (
            lambda: append(rows, poisoned(4, 8, 32)[:, :, ::2], ring, first, count),
            "rings: stride 2 in dimension 2, 1 is wanted",
        ),
        "rings without cells": (
            lambda: append(rows, poisoned(4, 0, 16), ring, first, count),
            "rings: capacity: 0 is given, 1 .. is wanted",
        ),
        "ring of floats": (
            lambda: append(rows, rings, ring.float(), first, count),
            "ring: float32 is given, int32 or int64 is wanted",
        ),
        "first of another length": (
            lambda: append(rows, rings, ring, first[:1], count),
            r"first: shape \(1,\) is given, \(2\) is wanted",
        ),
        "count with gaps": (
            lambda: append(rows, rings, ring, first, count.repeat(2)[::2]),
            "count: stride 2 in dimension 0, 1 is wanted",
        ),
        "ring elsewhere": (
            lambda: append(rows, rings, ring.to("meta"), first, count),
            "ring: on meta, but rings is on cpu",
        ),
        "ring that does not exist": (
            lambda: append(rows, rings, ring + 2, first, count),
            r"ring\[1\]: 4 is given, -1 .. 3 is wanted",
        ),
        "ring written twice": (
            lambda: append(rows, rings, ring * 0 + 3, first, count),
            "ring: 3 is given more than once",
        ),
        "negative position": (
            lambda: append(rows, rings, ring, first - 1, count),
            r"first\[0\]: -1 is given, 0 .. ",
        ),
        "count above the width": (
            lambda: append(rows, rings, ring, first, count + 1),
            r"count\[0\]: 4 is given, 0 .. 3 is wanted",
        ),
        "negative count": (
            lambda: collect(rings, rows, ring, first, count - 4),
            r"count\[0\]: -1 is given, 0 .. 3 is wanted",
        ),
        "count above the capacity": (
            lambda: collect(rings, poisoned(2, 12, 16), ring, first, count * 3),
            r"count\[0\]: 9 is given, 0 .. 8 is wanted",
        ),
        "rings that are one": (
            lambda: append(rows, rings[:1].expand(4, 8, 16), ring, first, count),
            "rings: a stride of 0 lets what it holds overlap",
        ),
        "rows of out that are one": (
            lambda: collect(rings, rows[:, :1].expand(2, 3, 16), ring, first, count),
            "out: a stride of 0 lets what it holds overlap",
        ),
        "row too large": (
            lambda: append(huge(), huge(), ring, first, count),
            "rings: bytes of a row: 2147483648 is given, 0 .. 2147418112 is wanted",
        ),
        "rows inside the rings": (
            lambda: append(rings[1:3, :3], rings, ring, first, count),
            "rings: shares memory with rows",
        ),
        "out inside the rings": (
            lambda: collect(rings, rings[1:3, :3], ring, first, count),
            "out: shares memory with rings",
        ),
    }


@pytest.mark.parametrize("case", wrong_arguments())
def test_a_bad_argument_is_named_before_anything_is_launched(case: str) -> None:
    call, message = wrong_arguments()[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_reference_that_packs_from_cell_0_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = module.append_reference

    def naive(
        rows: torch.Tensor,
        rings: torch.Tensor,
        ring: torch.Tensor,
        first: torch.Tensor,
        count: torch.Tensor,
    ) -> None:
        reference(rows, rings, ring, first * 0, count)

    monkeypatch.setattr(module, "append_reference", naive)
    with pytest.raises(AssertionError):
        test_a_ring_that_is_restored_from_linear_storage_takes_the_next_row_rightly("reference")


@needs_interpreter
def test_a_kernel_with_another_ring_size_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(kernel: Any, grid: tuple[int], *arguments: Any, **constants: Any) -> None:
        constants["CAPACITY"] = 7
        launch(kernel, grid, *arguments, **constants)

    monkeypatch.setattr("fivestate.kernels.window.launch", faulty)
    with pytest.raises(AssertionError):
        test_a_chunk_of_any_length_leaves_its_last_rows("kernel", 257, 1)
