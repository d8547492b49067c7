"""The page of index keys: fp8 values, and behind them one float32 scale for each key.

A page of ``n`` keys holds ``n`` rows of 128 e4m3 values; then ``n`` float32 scales, least byte
first: a key is its values times its scale, which is never negative. Behind them is padding: 64
keys of 132 bytes are 8,448 bytes, and a page of dsv4-flash has 8,640.
Source: domain §1.11; where the scales lie: FlashInfer's documentation of ``fp8_paged_mqa_logits``,
and what vLLM's ``indexer_k_quant_and_cache`` writes.

Which scale a writer takes is its own affair; `put` takes powers of two. Not read are the mxfp4
page (68 bytes a key), and pages that are shuffled for a matrix unit, as ROCm's may be.
"""

from __future__ import annotations

from typing import Any

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.launch import Scalar, constexpr, jit, tl
from fivestate.kernels.forms.packed import (
    NO_NUMBER,
    decode_e4m3,
    decode_scale,
    encode_e4m3,
    encode_scale,
)
from fivestate.spec.need import round_up

DIM = 128
"""Values of one key."""

SCALE_BYTES = 4
"""Bytes of its scale."""

ALIGNMENT = 576
"""Bytes to a multiple of which vLLM pads a page; others may not."""


def page_size_bytes(entries: int) -> int:
    """Return the bytes of a page of some keys, padding included."""
    return round_up(entries * (DIM + SCALE_BYTES), ALIGNMENT)


def put(
    pages: torch.Tensor,
    page: torch.Tensor,
    row: torch.Tensor,
    keys: torch.Tensor,
    per_page: int,
) -> None:
    """Write keys into pages; other bytes stay.

    A key's scale is the smallest power of two, from 2^-126 on, that brings it within ±448. One
    with a value that is not finite is no number as a whole.

    Args:
        pages: shape (num_pages, bytes), dtype uint8.
        page: shape (n,): the page of each key.
        row: shape (n,): its place in the page.
        keys: shape (n, 128), dtype float32.
        per_page: keys of one page.
    """
    most = (keys.contiguous().view(torch.int32) & 0x7FFFFFFF).amax(1)
    scale = encode_scale(most)
    inverse = ((254 - scale).clamp(min=0) << 23).view(torch.float32)
    codes = encode_e4m3(keys * inverse.unsqueeze(1))
    codes = torch.where((scale == 255).unsqueeze(1), NO_NUMBER, codes)
    byte = torch.arange(DIM, device=pages.device)
    pages[page[:, None], row[:, None] * DIM + byte] = codes.to(torch.uint8)
    first = per_page * DIM + row[:, None] * SCALE_BYTES
    bits = decode_scale(scale).view(torch.int32)[:, None] >> 8 * byte[:SCALE_BYTES]
    pages[page[:, None], first + byte[:SCALE_BYTES]] = (bits & 0xFF).to(torch.uint8)


def get(
    pages: torch.Tensor, page: torch.Tensor, row: torch.Tensor, per_page: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read keys: values, shape (n, 128), and scales, shape (n,), both float32."""
    byte = torch.arange(DIM, device=pages.device)
    codes = pages[page[:, None], row[:, None] * DIM + byte].to(torch.int32)
    first = per_page * DIM + row[:, None] * SCALE_BYTES
    scale = pages[page[:, None], first + byte[:SCALE_BYTES]].to(torch.int32)
    bits = (scale << 8 * byte[:SCALE_BYTES]).sum(1).to(torch.int32)
    return decode_e4m3(codes), bits.view(torch.float32)


def check(argument: str, pages: torch.Tensor, per_page: int) -> None:
    """Refuse what are no pages of so many keys.

    Raises:
        ValueError: something does not fit.
    """
    checks.dtype(argument, pages, torch.uint8)
    checks.shape(argument, pages, None, None)
    checks.number(f"{argument}: bytes of a page", pages.shape[1], per_page * (DIM + SCALE_BYTES))
    checks.dense(argument, pages)
    if pages.data_ptr() % SCALE_BYTES or pages.stride(0) % SCALE_BYTES:
        given = f"address {pages.data_ptr()} and stride {pages.stride(0)}"
        raise ValueError(f"{argument}: {given} are given, multiples of 4 are wanted")


@jit
def load_keys(page: Scalar, row: Scalar, there: Scalar, PER_PAGE: constexpr) -> Any:
    """Load keys from the pages at these addresses: values [128, keys], and scales."""
    column = tl.arange(0, 128)
    code = tl.load(page[None, :] + row[None, :] * 128 + column[:, None], there[None, :], 0)
    places = (page + PER_PAGE * 128).to(tl.pointer_type(tl.float32), bitcast=True)
    return _value(code.to(tl.int32)), tl.load(places + row, there, 0.0)


@jit
def _value(codes: Scalar) -> Any:
    """Return the values of e4m3 codes, in fewer registers than `packed.e4m3_value` takes here.

    Seven bits of a code, moved to the top of a float's exponent and mantissa, are the value times
    2^-120, also where both are subnormal: the product is exact.
    """
    bits = ((codes & 0x80) << 24) | ((codes & 0x7F) << 20)
    value = bits.to(tl.float32, bitcast=True) * 1.329227995784916e36
    return tl.where((codes & 0x7F) == 0x7F, float("nan"), value)
