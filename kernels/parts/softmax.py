"""Softmax in parts: keys are taken a block at a time, and parts are joined in their order."""

from __future__ import annotations

from typing import Any

import torch

from fivestate.kernels.device.launch import Pointer, Scalar, constexpr, jit, launch, power_of_2, tl
from fivestate.kernels.forms.packed import bf16_code


@jit
def take(
    asked: Scalar,
    rows: Scalar,
    valid: Scalar,
    most: Scalar,
    total: Scalar,
    mixed: Scalar,
    scale: Scalar,
    UPCAST: constexpr,
) -> Any:
    """Take some keys into the running softmax."""
    if UPCAST:
        rows = rows.to(tl.float32)
        logits = tl.dot(asked, tl.trans(rows), input_precision="tf32x3") * scale
    else:
        rows = rows.to(asked.dtype)
        logits = tl.dot(asked, tl.trans(rows)) * scale
    logits = tl.where(valid[None, :], logits, float("-inf"))
    new = tl.maximum(most, tl.max(logits, 1))
    base = tl.where(new == float("-inf"), 0.0, new)
    share = tl.exp(logits - base[:, None])
    fade = tl.exp(most - base)
    total = total * fade + tl.sum(share, 1)
    if UPCAST:
        mixed = tl.dot(share, rows, mixed * fade[:, None], input_precision="tf32x3")
    else:
        mixed = tl.dot(share.to(rows.dtype), rows, mixed * fade[:, None])
    return new, total, mixed


@jit(any_value=("splits",))
def join_kernel(
    parts: Pointer,
    mosts: Pointer,
    totals: Pointer,
    sinks: Pointer,
    positions: Pointer,
    out: Pointer,
    out_query: Scalar,
    out_head: Scalar,
    splits: Scalar,
    HEADS: constexpr,
    DIM: constexpr,
    BLOCK_DIM: constexpr,
    SINKS: constexpr,
    BF16: constexpr,
) -> None:
    """Join the splits of one head of one query."""
    query = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    if tl.load(positions + query) >= 0:
        column = tl.arange(0, BLOCK_DIM)
        first = query * splits * HEADS + head
        most = tl.full((), float("-inf"), tl.float32)
        if SINKS:
            most = tl.load(sinks + head)
        for split in range(splits):
            most = tl.maximum(most, tl.load(mosts + first + split * HEADS))
        most = tl.where(most == float("-inf"), 0.0, most)
        total = tl.full((), 0.0, tl.float32)
        if SINKS:
            total = tl.exp(tl.load(sinks + head) - most)
        mixed = tl.zeros((BLOCK_DIM,), tl.float32)
        # One after another: then splits that hold nothing, and so have no part, change no bit.
        for split in range(splits):
            place = first + split * HEADS
            fade = tl.exp(tl.load(mosts + place) - most)
            share = tl.load(totals + place)
            total += fade * share
            there = (column < DIM) & (tl.zeros((BLOCK_DIM,), tl.float32) + share != 0.0)
            mixed += fade * tl.load(parts + place * DIM + column, there, 0.0)
        result = mixed / total
        where = out + query * out_query + head * out_head + column
        if BF16:
            tl.store(where, bf16_code(result).to(tl.int16), column < DIM)
        else:
            tl.store(where, result, column < DIM)


def join(
    parts: torch.Tensor,
    mosts: torch.Tensor,
    totals: torch.Tensor,
    sinks: torch.Tensor | None,
    positions: torch.Tensor,
    out: torch.Tensor,
) -> None:
    """Join the splits of all heads of all queries, and write what is no padding."""
    count, splits, heads, dim = parts.shape
    launch(
        join_kernel,
        (count, heads),
        parts,
        mosts,
        totals,
        mosts if sinks is None else sinks,
        positions,
        out.view(torch.int16) if out.dtype == torch.bfloat16 else out,
        *out.stride()[:2],
        splits,
        HEADS=heads,
        DIM=dim,
        BLOCK_DIM=power_of_2(dim),
        SINKS=sinks is not None,
        BF16=out.dtype == torch.bfloat16,
    )
