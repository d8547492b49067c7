"""Revalidate: the generations of a lease's blocks are compared on the device, after the read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.launch import (
    Pointer,
    Scalar,
    by_triton,
    constexpr,
    jit,
    launch,
    power_of_2,
    tl,
)


class Lease(NamedTuple):
    """What requests lease of one pool.

    Attributes:
        blocks: shape (requests, blocks), dtype int32: ids in the pool; null 0 and padding -1 are
            not compared.
        generations: shape (requests, blocks), dtype int64: of each block when it was leased.
        pool: shape (num_blocks,), dtype int64: the pool's own, each bumped when its block is
            given back.
    """

    blocks: torch.Tensor
    generations: torch.Tensor
    pool: torch.Tensor


def revalidate_reference(
    leases: Sequence[Lease],
    ok: torch.Tensor,
    output: torch.Tensor,
    *,
    poison: float = math.nan,
) -> None:
    """Revalidate as `revalidate` does, in plain torch."""
    ok.fill_(1)
    for blocks, generations, pool in leases:
        inside = (blocks > 0) & (blocks < len(pool))
        now = pool[torch.where(inside, blocks, 0).long()]
        unused = (blocks == 0) | (blocks == -1)
        ok.mul_((unused | (inside & (now == generations))).all(1).int())
    output[ok == 0] = poison


@jit(any_value=("count", "num_blocks"))
def compare_kernel(
    blocks: Pointer,
    generations: Pointer,
    pool: Pointer,
    ok: Pointer,
    count: Scalar,
    num_blocks: Scalar,
    blocks_request: Scalar,
    generations_request: Scalar,
    FIRST: constexpr,
    BLOCK: constexpr,
) -> None:
    """Compare one request's blocks in one pool."""
    request = tl.program_id(0).to(tl.int64)
    wrong = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, count, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        block = tl.load(blocks + request * blocks_request + lane, lane < count, -1)
        then = tl.load(generations + request * generations_request + lane, lane < count, 0)
        used = (block != 0) & (block != -1)
        inside = (block > 0) & (block < num_blocks)
        now = tl.load(pool + block, inside, 0)
        wrong = wrong | (used & ((inside == 0) | (now != then))).to(tl.int32)
    right = 1 - tl.max(wrong, 0)
    if not FIRST:
        right = right & tl.load(ok + request)
    tl.store(ok + request, right)


@jit(any_value=("count",))
def poison_kernel(
    ok: Pointer,
    output: Pointer,
    poison: Scalar,
    count: Scalar,
    output_request: Scalar,
    BLOCK: constexpr,
) -> None:
    """Poison part of one request's output, unless its lease held."""
    request = tl.program_id(0).to(tl.int64)
    if tl.load(ok + request) == 0:
        lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        value = tl.full((BLOCK,), poison, tl.float32).to(output.dtype.element_ty)
        tl.store(output + request * output_request + lane, value, lane < count)


def revalidate(
    leases: Sequence[Lease],
    ok: torch.Tensor,
    output: torch.Tensor,
    *,
    poison: float = math.nan,
) -> None:
    """Compare leases with their pools, and poison what was made from blocks that were given back.

    A request is right iff every block it leases is still in the generation that was leased. One
    that is not, or whose id is out of its pool, gets ``ok`` 0 and an output that nobody can take
    for a result: stale bytes may have been read, but they are not used. It has to run after the
    last read: a block that is given back later could not have been seen, and one that was given
    back before has another generation now.

    Nothing is allocated, no value is looked at on the host, and the shape is fixed: a captured
    graph replays it with whatever its tensors hold then. A padding row, all of it null or
    padding, is right and keeps its output.
    Source: seed 000 §6(3); spec I-3; domain §3.1.

    Args:
        leases: one for each pool.
        ok: shape (requests,), dtype int32: 1 where all is right, else 0; written.
        output: shape (requests, ...), a float dtype; gaps only between requests.
        poison: NaN, or minus infinity for logits.

    Raises:
        ValueError: an argument does not fit; nothing was launched.
    """
    _check(leases, ok, output, poison)
    if not by_triton(output):
        revalidate_reference(leases, ok, output, poison=poison)
        return
    for number, (blocks, generations, pool) in enumerate(leases):
        launch(
            compare_kernel,
            (len(ok),),
            blocks,
            generations,
            pool,
            ok,
            blocks.shape[1],
            len(pool),
            blocks.stride(0),
            generations.stride(0),
            FIRST=number == 0,
            BLOCK=min(max(power_of_2(blocks.shape[1]), 16), 1024),
        )
    flat = output.flatten(1) if output.dim() > 1 else output.unsqueeze(1)
    block = 1024
    launch(
        poison_kernel,
        (len(ok), -(-flat.shape[1] // block)),
        ok,
        flat,
        poison,
        flat.shape[1],
        flat.stride(0),
        BLOCK=block,
    )


def _check(
    leases: Sequence[Lease],
    ok: torch.Tensor,
    output: torch.Tensor,
    poison: float,
) -> None:
    if not leases:
        raise ValueError("leases: none is given, one or more is wanted")
    if not math.isnan(poison) and poison != -math.inf:
        raise ValueError(f"poison: {poison} is given, nan or -inf is wanted")
    checks.dtype("ok", ok, torch.int32)
    checks.shape("ok", ok, None)
    checks.dense("ok", ok)
    checks.dtype("output", output, torch.float32, torch.float16, torch.bfloat16)
    checks.shape("output", output, len(ok), *output.shape[1:])
    checks.dense("output", output, output.dim() - 1)
    tensors = {"ok": ok, "output": output}
    for number, (blocks, generations, pool) in enumerate(leases):
        name = f"leases[{number}]"
        checks.dtype(f"{name}.blocks", blocks, torch.int32)
        checks.shape(f"{name}.blocks", blocks, len(ok), None)
        checks.dense(f"{name}.blocks", blocks)
        checks.dtype(f"{name}.generations", generations, torch.int64)
        checks.shape(f"{name}.generations", generations, *blocks.shape)
        checks.dense(f"{name}.generations", generations)
        checks.dtype(f"{name}.pool", pool, torch.int64)
        checks.shape(f"{name}.pool", pool, None)
        checks.dense(f"{name}.pool", pool)
        tensors |= {
            f"{name}.blocks": blocks,
            f"{name}.generations": generations,
            f"{name}.pool": pool,
        }
    checks.same_device(**tensors)
