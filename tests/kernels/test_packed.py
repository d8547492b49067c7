"""The packed page: exact bytes, against another encoder and against the nearest code."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivestate.kernels.forms.packed import (
    DIM,
    decode_e4m3,
    encode_bf16,
    encode_e4m3,
    encode_scale,
    get,
    page_size_bytes,
    put,
)
from fivestate.spec.reuse.files import preset


def e4m3(code: int) -> float:
    """Return what an e4m3 code stands for, by the format's definition."""
    exponent, mantissa = code >> 3 & 15, code & 7
    size = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    size = math.nan if code & 0x7F == 0x7F else size
    return -size if code & 0x80 else size


def nearest(value: float) -> int:
    """Return the code whose value is nearest, of two the one with an even mantissa."""
    sign = 0x80 if math.copysign(1, value) < 0 else 0
    return sign | min(range(0x7F), key=lambda code: (abs(e4m3(code) - abs(value)), code & 1))


def row_bytes(values: torch.Tensor) -> tuple[bytes, bytes]:
    """Encode one finite entry as the format says, value by value."""
    data, scales = bytearray(), bytearray()
    for tile in values[:448].reshape(7, 64).tolist():
        most = max(map(abs, tile))
        exponent = next(e for e in range(-126, 128) if most <= 448 * 2.0**e)
        scales.append(exponent + 127)
        data += bytes(nearest(value / 2.0**exponent) for value in tile)
    data += values[448:].to(torch.bfloat16).contiguous().view(torch.uint8).numpy().tobytes()
    return bytes(data), bytes(scales) + b"\0"


def entries(count: int, seed: int) -> torch.Tensor:
    """Draw entries whose tiles differ in size by many powers of two."""
    source = torch.Generator().manual_seed(seed)
    sizes = torch.randint(-40, 40, (count, 8, 1), generator=source).float().exp2()
    return (torch.randn((count, 8, 64), generator=source) * sizes).reshape(count, DIM)


def test_every_code_stands_for_what_the_format_says() -> None:
    codes = torch.arange(256, dtype=torch.int32)
    found = decode_e4m3(codes)
    expected = torch.tensor([e4m3(code) for code in range(256)])
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(torch.signbit(found), codes >= 0x80)


def test_values_are_rounded_to_the_nearest_code_and_halves_to_even() -> None:
    sizes = [e4m3(code) for code in range(0x7F)]
    halves = [(a + b) / 2 for a, b in pairwise(sizes)]
    near = [math.nextafter(h, way) for h in halves for way in (-math.inf, math.inf)]
    values = torch.tensor([*sizes, *halves, *near, 2.0**-10, 2.0**-11, 1e-30, 1e-45])
    values = torch.cat((values, -values))
    found = encode_e4m3(values).tolist()
    assert found == [nearest(value) for value in values.tolist()]
    assert found == values.to(torch.float8_e4m3fn).view(torch.uint8).tolist()


def test_a_scale_is_the_smallest_that_is_enough() -> None:
    edges = [448 * 2.0**e for e in range(-126, 119, 7)]
    floats = torch.tensor([0.0, 1e-45, *edges]).repeat_interleave(3)
    floats[1::3] = torch.nextafter(floats[1::3], torch.tensor(torch.inf))
    floats[2::3] = torch.nextafter(floats[2::3], torch.tensor(0.0))
    found = encode_scale(floats.view(torch.int32)).tolist()
    assert found == [
        127 + next(e for e in range(-126, 128) if most <= 448 * 2.0**e) for most in floats.tolist()
    ]
    broken = torch.tensor([torch.inf, torch.nan]).view(torch.int32)
    assert encode_scale(broken).tolist() == [255, 255]


def test_bf16_is_what_torch_rounds_to() -> None:
    values = entries(20, 3).reshape(-1)
    odd = [0.0, -0.0, torch.inf, -torch.inf, 1.00390625, 1.01171875, 3.4e38]
    values = torch.cat((values, torch.tensor(odd)))
    expected = values.to(torch.bfloat16).view(torch.int16).to(torch.int32) & 0xFFFF
    assert torch.equal(encode_bf16(values), expected)
    # Which of its many codes no number has, is ours to say: torch's own ways differ.
    assert encode_bf16(torch.tensor([torch.nan])).item() == 0x7FC0


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 4))
def test_a_page_has_its_bytes_in_their_places(seed: int, per_page: int, spare: int) -> None:
    values = entries(per_page, seed)
    pages = torch.full((3, page_size_bytes(per_page)), 0xA5, dtype=torch.uint8)
    order = torch.randperm(per_page, generator=torch.Generator().manual_seed(seed))
    kept = order[: max(per_page - spare, 1)]
    page = torch.ones_like(kept)
    put(pages, page, kept, values[kept], per_page)
    expected = bytearray(b"\xa5" * pages.shape[1])
    for row in kept.tolist():
        data, scales = row_bytes(values[row])
        expected[row * 576 : row * 576 + 576] = data
        expected[per_page * 576 + row * 8 : per_page * 576 + row * 8 + 8] = scales
    assert bytes(pages[1].tolist()) == bytes(expected)
    assert (pages[[0, 2]] == 0xA5).all()
    again = pages.clone()
    put(again, page, kept, get(pages, page, kept, per_page), per_page)
    # What was decoded is encoded to the same values, though a tile may take a smaller scale.
    assert torch.equal(get(again, page, kept, per_page), get(pages, page, kept, per_page))


def test_a_page_is_as_large_as_the_presets_say() -> None:
    geometry = preset("dsv4-flash")
    for name in ("c4", "c128", "swa"):
        group = geometry.group(name)
        assert page_size_bytes(group.entries_per_block) == group.page_size_bytes


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_a_value_that_is_no_number_makes_its_tile_none(bad: float) -> None:
    values = entries(1, 5)
    values[0, 70] = bad
    values[0, 500] = bad
    pages = torch.zeros((1, page_size_bytes(1)), dtype=torch.uint8)
    none = torch.zeros(1, dtype=torch.int64)
    put(pages, none, none, values, 1)
    found = get(pages, none, none, 1)[0]
    assert found[64:128].isnan().all()
    assert found[:64].isfinite().all()
    assert found[128:448].isfinite().all()
    assert torch.equal(found[500].isnan(), values[0, 500].isnan())
    assert not found[500].isfinite()
