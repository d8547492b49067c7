"""Fold (压缩): whole groups of verified tail rows become entries, gated, by position alone."""

from __future__ import annotations

from typing import Any

import torch

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
from fivestate.kernels.forms.packed import bf16_code, put, store_packed
from fivestate.kernels.forms.rows import pages_of
from fivestate.kernels.parts.arguments import check_fold


def fold_reference(
    rows: torch.Tensor,
    gates: torch.Tensor,
    table: torch.Tensor,
    verified: torch.Tensor,
    jobs: torch.Tensor,
    slots: torch.Tensor,
    out: torch.Tensor,
    *,
    ratio: int,
    entries_per_page: int = 0,
) -> None:
    """Fold as `fold` does, in plain torch.

    Sums go token by token: a matrix product or a blocked sum may differ in bits with the number
    of jobs, and an entry may not.
    """
    branches = rows.shape[2]
    per_page = entries_per_page or out.shape[1]
    request, entry = jobs.long().unbind(1)
    whole = (entry + 1) * ratio <= verified[request.clamp(0, len(verified) - 1)]
    inside = (slots >= per_page) & (slots < len(out) * per_page)
    todo = (request >= 0) & (request < len(verified)) & (entry >= 0) & whole & inside
    request, entry, slot = request[todo, None], entry[todo, None], slots[todo].long()
    token = torch.arange(branches * ratio, device=rows.device)
    position = (entry - (branches - 1)) * ratio + token
    block, there = pages_of(table, request, position // rows.shape[1], len(rows))
    place = block, position % rows.shape[1], token // ratio
    values, weights = rows[place].float(), gates[place].float()
    weights = torch.where((position < 0).unsqueeze(2), -torch.inf, weights)
    largest = weights.amax(1)
    total = torch.zeros_like(largest)
    mixed = torch.zeros_like(largest)
    for at in range(branches * ratio):
        share = torch.exp(weights[:, at] - largest)
        total += share
        # What is before the sequence weighs nothing, whatever the null block holds.
        mixed += torch.where((position < 0)[:, at, None], 0, share * values[:, at])
    folded = mixed / total
    folded[((position >= 0) & ~there).any(1)] = torch.nan
    page, row = slot // per_page, slot % per_page
    if out.dtype == torch.uint8:
        put(out, page, row, folded, per_page)
    else:
        out[page, row] = folded.to(out.dtype)


@jit(any_value=("num_blocks", "num_requests", "num_columns", "num_slots", "table_request"))
def fold_kernel(
    rows: Pointer,
    gates: Pointer,
    table: Pointer,
    verified: Pointer,
    jobs: Pointer,
    slots: Pointer,
    out: Pointer,
    num_blocks: Scalar,
    num_requests: Scalar,
    num_columns: Scalar,
    num_slots: Scalar,
    rows_block: Scalar,
    rows_row: Scalar,
    rows_branch: Scalar,
    gates_block: Scalar,
    gates_row: Scalar,
    gates_branch: Scalar,
    table_request: Scalar,
    out_page: Scalar,
    out_row: Scalar,
    RATIO: constexpr,
    BRANCHES: constexpr,
    BLOCK_ROWS: constexpr,
    PER_PAGE: constexpr,
    DIM: constexpr,
    BLOCK_DIM: constexpr,
    FORM: constexpr,
) -> None:
    """Fold one entry, or some of its columns."""
    job = tl.program_id(0)
    request = tl.load(jobs + 2 * job)
    entry = tl.load(jobs + 2 * job + 1)
    slot = tl.load(slots + job).to(tl.int64)
    known = (request >= 0) & (request < num_requests) & (entry >= 0)
    length = tl.load(verified + request, mask=known, other=0)
    whole = known & (entry < length // RATIO)  # (entry + 1) * RATIO may not fit
    if whole & (slot >= PER_PAGE) & (slot < num_slots):
        column = tl.program_id(1) * BLOCK_DIM + tl.arange(0, BLOCK_DIM)
        token = tl.arange(0, BRANCHES * RATIO)
        position = (entry - (BRANCHES - 1)) * RATIO + token
        needed = position >= 0
        block_column = position // BLOCK_ROWS
        listed = needed & (block_column < num_columns)
        block = tl.load(table + request.to(tl.int64) * table_request + block_column, listed, 0)
        there = needed & (block > 0) & (block < num_blocks)
        block = tl.where(there, block, 0).to(tl.int64)
        row = tl.where(needed, position % BLOCK_ROWS, 0).to(tl.int64)
        branch = (token // RATIO).to(tl.int64)
        mask = there[:, None] & (column < DIM)[None, :]
        at = block * gates_block + row * gates_row + branch * gates_branch
        weight = tl.load(gates + at[:, None] + column[None, :], mask, 0.0).to(tl.float32)
        weight = tl.where(needed[:, None], weight, float("-inf"))
        at = block * rows_block + row * rows_row + branch * rows_branch
        value = tl.load(rows + at[:, None] + column[None, :], mask, 0.0).to(tl.float32)
        share = tl.exp(weight - tl.max(weight, 0)[None, :])
        folded = tl.sum(share * value, 0) / tl.sum(share, 0)
        gone = tl.sum((needed & (there == 0)).to(tl.int32), 0) > 0
        folded = tl.where(gone, float("nan"), folded)
        page = out + (slot // PER_PAGE) * out_page
        row_out = slot % PER_PAGE
        if FORM == "packed":
            store_packed(page, row_out, folded, tl.program_id(1), PER_PAGE, BLOCK_DIM)
        elif FORM == "bf16":
            code = bf16_code(folded).to(tl.int16)
            tl.store(page + row_out * out_row + column, code, column < DIM)
        else:
            tl.store(page + row_out * out_row + column, folded, column < DIM)


def fold(
    rows: torch.Tensor,
    gates: torch.Tensor,
    table: torch.Tensor,
    verified: torch.Tensor,
    jobs: torch.Tensor,
    slots: torch.Tensor,
    out: torch.Tensor,
    *,
    ratio: int,
    entries_per_page: int = 0,
) -> None:
    """Fold groups of ``ratio`` verified rows into entries, each by its own position alone.

    Entry i is, column by column, the mean of the rows of group i, weighted by the softmax of
    their gates. With two branches groups overlap: branch 1 of the rows of group i is mixed with
    branch 0 of the rows of group i - 1, of which entry 0 has none. Gates hold the bias of the
    row's place in its group; norm and rotation of entries are the model's. Nothing depends on
    the other jobs or on the chunks in which the rows were written, not even a bit. With ratio 128
    the order of a sum does depend on whether strides are multiples of 16: pools of which one has
    such strides and another has not may differ in the last bits.

    An entry whose group is not verified to its end, a job of request -1, and a slot that is -1 or
    in null page 0 write nothing. An entry of which a row has no block (null, or not in the
    table) becomes NaN: it is never made from what a null block holds.
    Source: domain §4.1, §1.11, §1.13; spec A-3 (`fivestate.spec.sequence.fold`).

    Args:
        rows: shape (num_blocks, block_size, 1 or 2 branches, dim), dtype float32, float16 or
            bfloat16; the last dimension without gaps.
        gates: like rows.
        table: shape (requests, blocks), dtype int32: block ids by position; 0 null, -1 padding.
        verified: shape (requests,), dtype int32: tokens that are accepted.
        jobs: shape (jobs, 2), dtype int32: request and entry number.
        slots: shape (jobs,), dtype int64: page * entries_per_page + place in the page.
        out: shape (num_pages, entries_per_page, dim), a float dtype; or packed pages, shape
            (num_pages, bytes), dtype uint8 (see `fivestate.kernels.forms.packed`); dim is then 512.
        ratio: tokens of one group, a power of two; with all branches at most 128 rows an entry.
        entries_per_page: of packed pages, which do not show it.

    Raises:
        ValueError: an argument does not fit; nothing was launched.
    """
    per_page = entries_per_page or (out.shape[1] if out.dim() > 1 else 1)
    check_fold(rows, gates, table, verified, jobs, slots, out, ratio, per_page)
    if not by_triton(rows):
        fold_reference(
            rows, gates, table, verified, jobs, slots, out, ratio=ratio, entries_per_page=per_page
        )
        return
    branches, dim = rows.shape[2:]
    fixed = constants(ratio, branches, rows.shape[1], per_page, dim, _FORMS[out.dtype])
    launch(
        fold_kernel,
        (len(jobs), -(-dim // fixed["BLOCK_DIM"])),
        rows,
        gates,
        table,
        verified,
        jobs,
        slots,
        out.view(torch.int16) if out.dtype == torch.bfloat16 else out,
        len(rows),
        len(verified),
        table.shape[1],
        len(out) * per_page,
        *rows.stride()[:3],
        *gates.stride()[:3],
        table.stride(0),
        out.stride(0),
        0 if out.dtype == torch.uint8 else out.stride(1),
        num_warps=warps(branches * ratio),
        **fixed,
    )


_FORMS = {
    torch.uint8: "packed",
    torch.bfloat16: "bf16",
    torch.float16: "float",
    torch.float32: "float",
}


def constants(
    ratio: int, branches: int, block_rows: int, per_page: int, dim: int, form: str
) -> dict[str, Any]:
    """Return the constants with which entries are folded."""
    few = branches * ratio <= 16
    return {
        "RATIO": ratio,
        "BRANCHES": branches,
        "BLOCK_ROWS": block_rows,
        "PER_PAGE": per_page,
        "DIM": dim,
        "BLOCK_DIM": min(max(power_of_2(dim), 64), 512) if few else 64,
        "FORM": form,
    }


def warps(mixed_rows: int) -> int:
    """Return the warps of one program."""
    return 4 if mixed_rows <= 16 else 8
