"""Attend: decode attention over the window and the chosen entries, through page tables."""

from __future__ import annotations

import torch

from fivestate.kernels.device.launch import (
    INTERPRETED,
    Pointer,
    Scalar,
    by_triton,
    constexpr,
    jit,
    launch,
    power_of_2,
    tl,
)
from fivestate.kernels.forms.rows import Pages, load_rows, rows_of
from fivestate.kernels.parts.arguments import check_attend
from fivestate.kernels.parts.softmax import join, take
from fivestate.spec.need import round_up, visible_entries, window_start

SPLIT_KEYS = 256
"""Keys of one program: with the form of the pages, all that the bits of a result depend on."""


def attend_reference(
    queries: torch.Tensor,
    windows: Pages,
    entries: Pages,
    chosen: torch.Tensor | None,
    positions: torch.Tensor,
    *,
    window: int,
    ratio: int,
    scale: float,
    sinks: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend as `attend` does, in plain torch, query by query."""
    out = torch.zeros_like(queries) if out is None else out
    for query, position in enumerate(positions.tolist()):
        if position < 0:
            continue
        # Of a position the cache needs the rows before it; its own row is written by now.
        own = torch.arange(window_start(position, window), position + 1, device=queries.device)
        if chosen is None:
            entry = torch.arange(visible_entries(position, ratio), device=queries.device)
            poisoned = False
        else:
            entry = chosen[query].long()
            poisoned = bool((entry < -1).any())
            entry = entry[(entry >= 0) & (entry < visible_entries(position, ratio))]
        held = rows_of(windows, query, own), rows_of(entries, query, entry)
        rows = torch.cat([rows for rows, _ in held])
        logits = queries[query].float() @ rows.T * scale
        if sinks is not None:
            logits = torch.cat((logits, sinks[:, None]), 1)
        weights = torch.softmax(logits, 1)[:, : len(rows)]
        if poisoned or not all(bool(there.all()) for _, there in held):
            out[query] = torch.nan
        else:
            out[query] = (weights @ rows).to(out.dtype)
    return out


@jit(
    any_value=(
        *("num_windows", "num_entries", "window_columns", "entry_columns", "num_chosen"),
        *("window_table_query", "entry_table_query", "chosen_query", "window", "ratio"),
    )
)
def attend_kernel(
    queries: Pointer,
    windows: Pointer,
    window_table: Pointer,
    entries: Pointer,
    entry_table: Pointer,
    chosen: Pointer,
    positions: Pointer,
    parts: Pointer,
    mosts: Pointer,
    totals: Pointer,
    scale: Scalar,
    num_windows: Scalar,
    num_entries: Scalar,
    window_columns: Scalar,
    entry_columns: Scalar,
    num_chosen: Scalar,
    queries_query: Scalar,
    queries_head: Scalar,
    windows_page: Scalar,
    windows_row: Scalar,
    window_table_query: Scalar,
    entries_page: Scalar,
    entries_row: Scalar,
    entry_table_query: Scalar,
    chosen_query: Scalar,
    window: Scalar,
    ratio: Scalar,
    WINDOW_PER_PAGE: constexpr,
    ENTRIES_PER_PAGE: constexpr,
    WINDOW_PACKED: constexpr,
    ENTRIES_PACKED: constexpr,
    CHOSEN: constexpr,
    HEADS: constexpr,
    DIM: constexpr,
    BLOCK_HEADS: constexpr,
    BLOCK_DIM: constexpr,
    BLOCK: constexpr,
    SPLIT: constexpr,
    STAGES: constexpr,
    UPCAST: constexpr,
) -> None:
    """Attend to the keys of one split, for some heads of one query."""
    query = tl.program_id(0).to(tl.int64)
    split = tl.program_id(2)
    position = tl.load(positions + query)
    head = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    column = tl.arange(0, BLOCK_DIM)
    lane = tl.arange(0, BLOCK)
    inside = (column < DIM)[None, :]
    visible = (position + 1) // ratio
    count = num_chosen if CHOSEN else tl.minimum(visible, num_chosen)
    # Keys in one line: the window's from 0, then the entries'; each split has its own stretch.
    lead = (window + BLOCK - 1) // BLOCK * BLOCK
    first = split * SPLIT
    some = (position >= 0) & (first < lead + count)
    at = queries + query * queries_query + head.to(tl.int64)[:, None] * queries_head
    asked = tl.load(at + column[None, :], (head < HEADS)[:, None] & inside & some, 0.0)
    if UPCAST:
        asked = asked.to(tl.float32)
    most = tl.full((BLOCK_HEADS,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_HEADS,), tl.float32)
    mixed = tl.zeros((BLOCK_HEADS, BLOCK_DIM), tl.float32)
    gone = tl.full((), 0, tl.int32)
    last = tl.minimum(first + SPLIT, lead)
    if some:
        for start in tl.range(first, last, BLOCK, num_stages=STAGES):
            number = position - window + 1 + start + lane
            valid = (number >= 0) & (number <= position)
            rows, absent = load_rows(
                windows,
                window_table + query * window_table_query,
                number,
                valid,
                window_columns,
                num_windows,
                column,
                column < DIM,
                windows_page,
                windows_row,
                WINDOW_PER_PAGE,
                WINDOW_PACKED,
                BLOCK,
            )
            gone += absent
            most, total, mixed = take(asked, rows, valid, most, total, mixed, scale, UPCAST)
        if not CHOSEN:
            gone += (visible > num_chosen).to(tl.int32)
        end = tl.minimum(first + SPLIT - lead, count)
        for start in tl.range(tl.maximum(first - lead, 0), end, BLOCK, num_stages=STAGES):
            number = start + lane
            if CHOSEN:
                number = tl.load(chosen + query * chosen_query + number, number < count, -1)
                gone += tl.sum((number < -1).to(tl.int32), 0)
                valid = (number >= 0) & (number < visible)
            else:
                valid = number < count
            rows, absent = load_rows(
                entries,
                entry_table + query * entry_table_query,
                number,
                valid,
                entry_columns,
                num_entries,
                column,
                column < DIM,
                entries_page,
                entries_row,
                ENTRIES_PER_PAGE,
                ENTRIES_PACKED,
                BLOCK,
            )
            gone += absent
            most, total, mixed = take(asked, rows, valid, most, total, mixed, scale, UPCAST)
    total = tl.where(gone > 0, float("nan"), total)
    place = (query * tl.num_programs(2) + split) * HEADS + head
    tl.store(mosts + place, most, head < HEADS)
    tl.store(totals + place, total, head < HEADS)
    # A table is as wide as the longest sequence: most splits of a short one hold nothing.
    mask = (head < HEADS)[:, None] & inside & (total != 0.0)[:, None]
    tl.store(parts + place[:, None] * DIM + column[None, :], mixed, mask)


def attend(
    queries: torch.Tensor,
    windows: Pages,
    entries: Pages,
    chosen: torch.Tensor | None,
    positions: torch.Tensor,
    *,
    window: int,
    ratio: int,
    scale: float,
    sinks: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend to the window and to entries, one softmax over both, for one token of each query.

    The token at position p reads the window rows max(0, p - window + 1) .. p, its own included,
    and of the entries those that are chosen and visible: (i + 1) * ratio - 1 <= p. What it does
    not read is not touched. Sums are in float32, in an order that depends on the position alone,
    not on the other rows of the launch.

    A row that lacks something it reads, because a page is null, not in the table or out of range,
    or because its choice is poisoned (-2), becomes NaN. Padding rows, of position -1, are left as
    they are.
    Source: domain §4.1, §1.10; `fivestate.spec.need`.

    Args:
        queries: shape (queries, heads, dim), dtype float32, float16 or bfloat16.
        windows: the window's rows; the row of position p itself is written already.
        entries: the compressed entries.
        chosen: shape (queries, chosen), dtype int32, entry numbers, -1 for none: see
            `fivestate.kernels.route`. None: every visible entry.
        positions: shape (queries,), dtype int32, from 0; -1 for padding.
        window: tokens of the window, the query's own included.
        ratio: tokens of one entry.
        scale: factor of the logits.
        sinks: shape (heads,), dtype float32: a logit of no value that each head also has.
        out: like queries; by default new, and 0 in padding rows.

    Returns:
        out.

    Raises:
        ValueError: an argument does not fit; nothing was launched.
    """
    check_attend(queries, windows, entries, chosen, positions, window, ratio, sinks, out)
    if not by_triton(queries):
        return attend_reference(
            queries,
            windows,
            entries,
            chosen,
            positions,
            window=window,
            ratio=ratio,
            scale=scale,
            sinks=sinks,
            out=out,
        )
    out = torch.zeros_like(queries) if out is None else out
    count, heads, dim = queries.shape
    num_chosen = entries.table.shape[1] * entries.per_page if chosen is None else chosen.shape[1]
    upcast = INTERPRETED or queries.dtype == torch.float32  # interpreted, halves give garbage
    fixed = constants(heads, dim, windows, entries, dense=chosen is None, upcast=upcast)
    splits = -(-(round_up(window, fixed["BLOCK"]) + num_chosen) // SPLIT_KEYS)
    parts = torch.empty((count, splits, heads, dim), device=queries.device)
    mosts, totals = torch.empty((2, count, splits, heads), device=queries.device)
    launch(
        attend_kernel,
        (count, -(-heads // fixed["BLOCK_HEADS"]), splits),
        queries,
        windows.pages,
        windows.table,
        entries.pages,
        entries.table,
        positions if chosen is None else chosen,
        positions,
        parts,
        mosts,
        totals,
        float(scale),
        len(windows.pages),
        len(entries.pages),
        windows.table.shape[1],
        entries.table.shape[1],
        num_chosen,
        *queries.stride()[:2],
        *windows.pages.stride()[:2],
        windows.table.stride(0),
        *entries.pages.stride()[:2],
        entries.table.stride(0),
        0 if chosen is None else chosen.stride(0),
        window,
        ratio,
        num_warps=warps(dim),
        **fixed,
    )
    join(parts, mosts, totals, sinks, positions, out)
    return out


def constants(
    heads: int,
    dim: int,
    windows: Pages,
    entries: Pages,
    *,
    dense: bool,
    upcast: bool,
) -> dict[str, int]:
    """Return the constants with which some heads attend."""
    packed = windows.packed or entries.packed
    return {
        "WINDOW_PER_PAGE": windows.per_page,
        "ENTRIES_PER_PAGE": entries.per_page,
        "WINDOW_PACKED": windows.packed,
        "ENTRIES_PACKED": entries.packed,
        "CHOSEN": not dense,
        "HEADS": heads,
        "DIM": dim,
        "BLOCK_HEADS": min(max(power_of_2(heads), 16), 32),
        "BLOCK_DIM": max(power_of_2(dim), 16),
        "BLOCK": 16 if packed else 32,  # decoding takes registers
        "SPLIT": SPLIT_KEYS,
        "STAGES": 1 if packed else 3,
        "UPCAST": upcast,
    }


def warps(dim: int) -> int:
    """Return the warps of one program."""
    return 8 if dim > 128 else 4
