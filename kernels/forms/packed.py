"""The packed page of entries: fp8 values under power-of-two scales, a bf16 rotary part.

A page of ``n`` entries holds ``n`` rows of 576 bytes, each 448 e4m3 values and 64 bf16 values
(low byte first); then, entry by entry, 8 scale bytes: the biased exponents of 7 tiles of 64
values, and one that is 0. It is padded to a multiple of 576 bytes.
Source: domain §1.11 (vLLM's fp8_ds_mla).

Values are encoded with integers: that is exact, the same on every device, and needs no fp8 unit.
"""

from __future__ import annotations

from typing import Any

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.launch import Pointer, Scalar, constexpr, jit, tl
from fivestate.spec.need import round_up

DIM = 512
"""Values of one entry."""

FP8_DIM = 448
"""Values that are stored as fp8; the rest is the rotary part."""

TILE = 64
"""Values that share a scale."""

ROW_BYTES = 576
"""Data bytes of one entry."""

SCALE_BYTES = 8
"""Scale bytes of one entry."""

NO_NUMBER = 0x7F
"""The e4m3 code that is no number; under scale byte 255 it says the same twice."""


def page_size_bytes(entries: int) -> int:
    """Return the bytes of a page of some entries, padding included."""
    return round_up(entries * (ROW_BYTES + SCALE_BYTES), ROW_BYTES)


def pack(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Encode entries.

    A tile's scale is the smallest power of two, from 2^-126 on, that brings the tile within
    ±448. A tile with a value that is not finite is no number as a whole.

    Args:
        values: shape (n, 512), dtype float32.

    Returns:
        Data, shape (n, 576), and scales, shape (n, 8), dtype uint8.
    """
    tiles = values[:, :FP8_DIM].reshape(len(values), FP8_DIM // TILE, TILE)
    most = (tiles.contiguous().view(torch.int32) & 0x7FFFFFFF).amax(2)
    scale = encode_scale(most)
    inverse = ((254 - scale).clamp(min=0) << 23).view(torch.float32)
    codes = encode_e4m3(tiles * inverse.unsqueeze(2))
    codes = torch.where((scale == 255).unsqueeze(2), NO_NUMBER, codes).reshape(len(values), FP8_DIM)
    rotary = encode_bf16(values[:, FP8_DIM:])
    halves = torch.stack((rotary & 0xFF, rotary >> 8), 2).reshape(len(values), ROW_BYTES - FP8_DIM)
    data = torch.cat((codes, halves), 1).to(torch.uint8)
    return data, torch.nn.functional.pad(scale, (0, 1)).to(torch.uint8)


def unpack(data: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Decode entries: the inverse of `pack` on what it gives.

    Args:
        data: shape (n, 576), dtype uint8.
        scales: shape (n, 8), dtype uint8.

    Returns:
        Values, shape (n, 512), dtype float32.
    """
    factors = decode_scale(scales[:, :7].to(torch.int32)).repeat_interleave(TILE, 1)
    plain = decode_e4m3(data[:, :FP8_DIM].to(torch.int32)) * factors
    halves = data[:, FP8_DIM:].to(torch.int32).reshape(len(data), DIM - FP8_DIM, 2)
    rotary = ((halves[:, :, 0] << 16) | (halves[:, :, 1] << 24)).view(torch.float32)
    return torch.cat((plain, rotary), 1)


def put(
    pages: torch.Tensor,
    page: torch.Tensor,
    row: torch.Tensor,
    values: torch.Tensor,
    per_page: int,
) -> None:
    """Write entries into packed pages; other bytes stay.

    Args:
        pages: shape (num_pages, page_size_bytes), dtype uint8.
        page: shape (n,): the page of each entry.
        row: shape (n,): its place in the page.
        values: shape (n, 512), dtype float32.
        per_page: entries of one page.
    """
    data, scales = pack(values)
    byte = torch.arange(ROW_BYTES, device=pages.device)
    pages[page[:, None], row[:, None] * ROW_BYTES + byte] = data
    first = per_page * ROW_BYTES + row[:, None] * SCALE_BYTES
    pages[page[:, None], first + byte[:SCALE_BYTES]] = scales


def get(
    pages: torch.Tensor,
    page: torch.Tensor,
    row: torch.Tensor,
    per_page: int,
) -> torch.Tensor:
    """Read entries from packed pages, as `put` writes them."""
    byte = torch.arange(ROW_BYTES, device=pages.device)
    data = pages[page[:, None], row[:, None] * ROW_BYTES + byte]
    first = per_page * ROW_BYTES + row[:, None] * SCALE_BYTES
    return unpack(data, pages[page[:, None], first + byte[:SCALE_BYTES]])


def check_packed(argument: str, pages: torch.Tensor, per_page: int) -> None:
    """Refuse what are no packed pages.

    Raises:
        ValueError: something does not fit.
    """
    checks.dtype(argument, pages, torch.uint8)
    checks.shape(argument, pages, None, page_size_bytes(per_page))
    checks.dense(argument, pages)
    if pages.data_ptr() % 2 or pages.stride(0) % 2:
        given = f"address {pages.data_ptr()} and stride {pages.stride(0)}"
        raise ValueError(f"{argument}: {given} are given, multiples of 2 are wanted")


def encode_scale(most: torch.Tensor) -> torch.Tensor:
    """Return the scale bytes of tiles whose largest magnitudes have these bits, as int32."""
    # 448 is 1.75 · 2^8: a mantissa beyond 1.75 carries into the exponent.
    scale = (((most + 0x1FFFFF) >> 23) - 8).clamp(min=1)
    return torch.where(most >= 0x7F800000, 255, scale)


def decode_scale(scale: torch.Tensor) -> torch.Tensor:
    """Return the factors that scale bytes stand for; 255 is no number."""
    return torch.where(scale == 255, 0x7FC00000, scale << 23).to(torch.int32).view(torch.float32)


def encode_e4m3(values: torch.Tensor) -> torch.Tensor:
    """Round values within ±448 to e4m3, halves to even, and return the codes as int32."""
    bits = values.contiguous().view(torch.int32)
    size = bits & 0x7FFFFFFF
    normal = ((size + 0x7FFFF + ((size >> 20) & 1)) >> 20) - 960
    # Below 2^-6 a step is 2^-9, which is what a float next to 2^14 counts in.
    tiny = (size.view(torch.float32) + 16384.0).view(torch.int32) - 0x46800000
    return torch.where(size < 0x3C800000, tiny, normal) | ((bits >> 24) & 0x80)


def decode_e4m3(codes: torch.Tensor) -> torch.Tensor:
    """Return the values of e4m3 codes, given as int32."""
    size = codes & 0x7F
    normal = ((size << 20) + (120 << 23)).to(torch.int32).view(torch.float32)
    value = torch.where(size < 8, size.to(torch.float32) * 2.0**-9, normal)
    value = torch.where(size == NO_NUMBER, torch.nan, value)
    return torch.where(codes >= 0x80, -value, value)


def encode_bf16(values: torch.Tensor) -> torch.Tensor:
    """Round float32 values to bf16, halves to even, and return the 16 bits as int32."""
    bits = values.contiguous().view(torch.int32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF
    return torch.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, rounded)


@jit
def scale_code(most: Scalar) -> Any:
    """Return the scale byte of a tile whose largest magnitude has these bits."""
    scale = tl.maximum(((most + 0x1FFFFF) >> 23) - 8, 1)
    return tl.where(most >= 0x7F800000, 255, scale)


@jit
def scale_inverse(scale: Scalar) -> Any:
    """Return the factor that brings a tile within ±448."""
    return (tl.maximum(254 - scale, 0) << 23).to(tl.float32, bitcast=True)


@jit
def scale_factor(scale: Scalar) -> Any:
    """Return the factor that a scale byte stands for."""
    return tl.where(scale == 255, 0x7FC00000, scale << 23).to(tl.float32, bitcast=True)


@jit
def e4m3_code(values: Scalar) -> Any:
    """Return the e4m3 codes of values within ±448."""
    bits = values.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    normal = ((size + 0x7FFFF + ((size >> 20) & 1)) >> 20) - 960
    tiny = (size.to(tl.float32, bitcast=True) + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    return tl.where(size < 0x3C800000, tiny, normal) | ((bits >> 24) & 0x80)


@jit
def e4m3_value(codes: Scalar) -> Any:
    """Return the values of e4m3 codes."""
    size = codes & 0x7F
    normal = ((size << 20) + (120 << 23)).to(tl.float32, bitcast=True)
    value = tl.where(size < 8, size.to(tl.float32) * 0.001953125, normal)
    value = tl.where(size == 0x7F, float("nan"), value)
    return tl.where(codes >= 0x80, -value, value)


@jit
def bf16_code(values: Scalar) -> Any:
    """Return the 16 bits of values rounded to bf16."""
    bits = values.to(tl.int32, bitcast=True)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF
    return tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, rounded)


@jit
def store_packed(
    page: Pointer,
    row: Scalar,
    values: Scalar,
    PART: Scalar,
    PER_PAGE: constexpr,
    BLOCK_DIM: constexpr,
) -> None:
    """Store part number PART of an entry, BLOCK_DIM values, with their scales."""
    tiles: constexpr = BLOCK_DIM // 64
    column = PART * BLOCK_DIM + tl.arange(0, BLOCK_DIM)
    size = (values.to(tl.int32, bitcast=True) & 0x7FFFFFFF).reshape(tiles, 64)
    scale = scale_code(tl.max(size, 1))
    inverse = scale_inverse(scale)[:, None].broadcast_to(tiles, 64).reshape(BLOCK_DIM)
    broken = (scale == 255)[:, None].broadcast_to(tiles, 64).reshape(BLOCK_DIM)
    code = tl.where(broken, 0x7F, e4m3_code(values * inverse))
    data = page + row * 576
    tl.store(data + column, code.to(tl.uint8), column < 448)
    rotary = (data + 448).to(tl.pointer_type(tl.int16), bitcast=True)
    tl.store(rotary + (column - 448), bf16_code(values).to(tl.int16), column >= 448)
    tile = PART * tiles + tl.arange(0, tiles)
    place = page + PER_PAGE * 576 + row * 8 + tile
    tl.store(place, tl.where(tile < 7, scale, 0).to(tl.uint8))


@jit
def load_packed(
    page: Scalar,
    row: Scalar,
    column: Scalar,
    there: Scalar,
    PER_PAGE: constexpr,
    BLOCK: constexpr,
) -> Any:
    """Load entries, [BLOCK, 512], from the pages at these addresses."""
    data = page[:, None] + row[:, None] * 576
    plain = (column < 448)[None, :]
    code = tl.load(data + column[None, :], there[:, None] & plain, 0).to(tl.int32)
    place = page[:, None] + PER_PAGE * 576 + row[:, None] * 8 + tl.arange(0, 8)[None, :]
    factor = scale_factor(tl.load(place, there[:, None], 0).to(tl.int32))
    factor = factor[:, :, None].broadcast_to(BLOCK, 8, 64).reshape(BLOCK, 512)
    rotary = (data + 448).to(tl.pointer_type(tl.int16), bitcast=True)
    half = tl.load(rotary + (column - 448)[None, :], there[:, None] & (plain == 0), 0)
    half = (half.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    return tl.where(plain, e4m3_value(code) * factor, half)
