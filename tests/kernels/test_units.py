"""Bytes as integers: the widest units, and tiles that leave few lanes idle."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.ways import random_bytes

from fivestate.kernels.device.launch import power_of_2
from fivestate.kernels.device.units import (
    INTEGERS,
    PROGRAM_UNITS,
    as_bytes,
    as_units,
    tile_units,
    unit_bytes,
)

MEMORY = random_bytes(4_096)


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 5), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_units_are_the_same_bytes_and_no_wider_ones_are(
    count: int, size: int, gap: int, offset: int
) -> None:
    tensor = as_bytes("rows", MEMORY.as_strided((count, size), (size + gap, 1), offset))
    unit = unit_bytes(tensor)
    assert torch.equal(as_units(tensor, unit).contiguous().view(torch.uint8), tensor)
    places = [tensor.data_ptr() + row * tensor.stride(0) for row in range(count)] + [size]
    wider = [each for each in INTEGERS if each > unit]
    assert not any(all(place % each == 0 for place in places) for each in wider if size)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_items_of_any_dtype_and_shape_become_bytes_in_place(kind: torch.dtype) -> None:
    tensor = torch.zeros(4, 3, 5, 2, dtype=kind)[1:, :, 1:]
    with pytest.raises(ValueError, match="rows: stride"):
        as_bytes("rows", tensor)
    found = as_bytes("rows", tensor, 2)
    assert found.shape == (3, 3, 8 * tensor.element_size())
    found[2, 1] = 1
    assert tensor[2, 1].contiguous().view(torch.uint8).flatten().tolist() == found[2, 1].tolist()


def test_a_tile_is_fine_enough_and_no_finer() -> None:
    for size in (*range(2_000), 4_104, 4_680, 10**6):
        tile, widest = tile_units(size), min(PROGRAM_UNITS, power_of_2(size))
        assert tile & (tile - 1) == 0
        assert tile <= widest
        assert -size % tile * 8 <= size or tile <= 128
        assert tile == widest or -size % (tile * 2) * 8 > size


def test_tiles_of_the_pages_of_dsv4() -> None:
    assert [tile_units(size // 8) for size in (1_728, 8_640, 32_832, 37_440)] == [
        128,
        128,
        512,
        1_024,
    ]
