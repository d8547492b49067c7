"""What `fold`, `score` and `attend` refuse before anything is launched."""

from __future__ import annotations

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.forms import index_keys
from fivestate.kernels.forms.packed import DIM, check_packed
from fivestate.kernels.forms.rows import Pages
from fivestate.kernels.select import check_positions

FLOATS = torch.float32, torch.float16, torch.bfloat16
"""What rows, keys and queries may be."""

LARGEST_TILE = 128
"""Rows that one entry may mix: 8 for overlapping groups of 4, 128 for plain ones of 128."""


def check_fold(
    rows: torch.Tensor,
    gates: torch.Tensor,
    table: torch.Tensor,
    verified: torch.Tensor,
    jobs: torch.Tensor,
    slots: torch.Tensor,
    out: torch.Tensor,
    ratio: int,
    per_page: int,
) -> None:
    """Refuse arguments of `fold` that do not fit.

    Raises:
        ValueError: something does not fit.
    """
    checks.dtype("rows", rows, *FLOATS)
    checks.dtype("gates", gates, rows.dtype)
    checks.shape("rows", rows, None, None, None, None)
    branches, dim = rows.shape[2:]
    checks.number("rows: branches", branches, 1, 2)
    checks.shape("gates", gates, *rows.shape)
    checks.dense("rows", rows)
    checks.dense("gates", gates)
    if ratio < 1 or ratio & (ratio - 1) or branches * ratio > LARGEST_TILE:
        most = LARGEST_TILE // branches
        raise ValueError(f"ratio: {ratio} is given, a power of two up to {most} is wanted")
    for name, tensor, kind in (
        ("table", table, torch.int32),
        ("verified", verified, torch.int32),
        ("jobs", jobs, torch.int32),
        ("slots", slots, torch.int64),
        ("out", out, None),
    ):
        checks.dtype(name, tensor, *((kind,) if kind else (*FLOATS, torch.uint8)))
    checks.shape("verified", verified, None)
    checks.shape("table", table, len(verified), None)
    checks.shape("jobs", jobs, None, 2)
    checks.shape("slots", slots, len(jobs))
    for name, tensor in (("table", table), ("verified", verified), ("slots", slots)):
        checks.dense(name, tensor)
    checks.dense("jobs", jobs, 2)
    if out.dtype == torch.uint8:
        checks.number("entries_per_page", per_page, 1)
        check_packed("out", out, per_page)
        checks.number("rows: dim", dim, DIM, DIM)
    else:
        checks.shape("out", out, None, per_page, dim)
        checks.dense("out", out)
    checks.same_device(
        rows=rows, gates=gates, table=table, verified=verified, jobs=jobs, slots=slots, out=out
    )
    checks.disjoint(out=out, rows=rows, gates=gates)
    checks.values("table", table, -1, len(rows) - 1)
    checks.values("jobs: request", jobs[:, 0], -1, len(verified) - 1)
    checks.values("slots", slots, -1, len(out) * per_page - 1)
    checks.distinct("slots", slots)


def check_score(
    queries: torch.Tensor,
    weights: torch.Tensor,
    keys: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    ratio: int,
    per_block: int,
) -> None:
    """Refuse arguments of `score` that do not fit.

    Raises:
        ValueError: something does not fit.
    """
    checks.dtype("queries", queries, *FLOATS)
    checks.dtype("weights", weights, torch.float32)
    checks.dtype("keys", keys, queries.dtype, torch.uint8)
    checks.dtype("table", table, torch.int32)
    checks.shape("queries", queries, None, None, None)
    checks.number("queries: heads", queries.shape[1], 1, 128)
    checks.number("queries: dim", queries.shape[2], 1, 256)
    checks.shape("weights", weights, *queries.shape[:2])
    checks.number("entries_per_block", per_block, 1)
    if keys.dtype == torch.uint8:
        index_keys.check("keys", keys, per_block)
        checks.number("queries: dim", queries.shape[2], index_keys.DIM, index_keys.DIM)
    else:
        checks.shape("keys", keys, None, per_block, queries.shape[2])
    checks.shape("table", table, len(queries), None)
    for name, tensor in (
        ("queries", queries),
        ("weights", weights),
        ("keys", keys),
        ("table", table),
    ):
        checks.dense(name, tensor)
    check_positions(positions, len(queries), ratio)
    checks.same_device(
        queries=queries, weights=weights, keys=keys, table=table, positions=positions
    )
    checks.values("table", table, -1, len(keys) - 1)


def check_pages(name: str, held: Pages, queries: torch.Tensor) -> None:
    """Refuse pages that do not fit the queries.

    Raises:
        ValueError: something does not fit.
    """
    dim = queries.shape[2]
    checks.dtype(f"{name}.pages", held.pages, queries.dtype, torch.uint8)
    checks.number(f"{name}.per_page", held.per_page, 1)
    if held.packed:
        # float16 cannot hold what bfloat16 holds
        checks.dtype("queries", queries, torch.bfloat16, torch.float32)
        check_packed(f"{name}.pages", held.pages, held.per_page)
        checks.number("queries: dim", dim, DIM, DIM)
    else:
        checks.shape(f"{name}.pages", held.pages, None, held.per_page, dim)
        checks.dense(f"{name}.pages", held.pages)
    checks.dtype(f"{name}.table", held.table, torch.int32)
    checks.shape(f"{name}.table", held.table, len(queries), None)
    checks.dense(f"{name}.table", held.table)
    checks.values(f"{name}.table", held.table, -1, len(held.pages) - 1)


def check_attend(
    queries: torch.Tensor,
    windows: Pages,
    entries: Pages,
    chosen: torch.Tensor | None,
    positions: torch.Tensor,
    window: int,
    ratio: int,
    sinks: torch.Tensor | None,
    out: torch.Tensor | None,
) -> None:
    """Refuse arguments of `attend` that do not fit.

    Raises:
        ValueError: something does not fit.
    """
    there = {
        "queries": queries,
        "positions": positions,
        "windows.pages": windows.pages,
        "windows.table": windows.table,
        "entries.pages": entries.pages,
        "entries.table": entries.table,
    }
    others = {"chosen": chosen, "sinks": sinks}
    there |= {name: tensor for name, tensor in others.items() if tensor is not None}
    checks.same_device(**there)
    checks.dtype("queries", queries, *FLOATS)
    checks.shape("queries", queries, None, None, None)
    count, heads, dim = queries.shape
    checks.number("queries: heads", heads, 1, 128)
    checks.number("queries: dim", dim, 1, 512)
    checks.dense("queries", queries)
    checks.number("window", window, 1)
    checks.number("ratio", ratio, 1)
    checks.dtype("positions", positions, torch.int32)
    checks.shape("positions", positions, count)
    checks.dense("positions", positions)
    checks.values("positions", positions, -1, 2**31 - 2)
    for name, held in (("windows", windows), ("entries", entries)):
        check_pages(name, held, queries)
    if chosen is not None:
        checks.dtype("chosen", chosen, torch.int32)
        checks.shape("chosen", chosen, count, None)
        checks.dense("chosen", chosen)
        checks.values("chosen", chosen, -2, entries.table.shape[1] * entries.per_page - 1)
    if sinks is not None:
        checks.dtype("sinks", sinks, torch.float32)
        checks.shape("sinks", sinks, heads)
        checks.dense("sinks", sinks)
    if out is not None:
        checks.dtype("out", out, queries.dtype)
        checks.shape("out", out, *queries.shape)
        checks.dense("out", out)
        checks.same_device(queries=queries, out=out)
        checks.disjoint(out=out, **there)
