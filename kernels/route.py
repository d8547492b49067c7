"""Route (路由): index scores, and the best visible entries, with a defined tie-break."""

from __future__ import annotations

from typing import Any

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
from fivestate.kernels.forms import index_keys
from fivestate.kernels.forms.index_keys import load_keys
from fivestate.kernels.forms.rows import pages_of
from fivestate.kernels.parts.arguments import check_score
from fivestate.kernels.select import select
from fivestate.spec.need import visible_entries


def route(
    queries: torch.Tensor,
    weights: torch.Tensor,
    keys: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    *,
    ratio: int,
    top_k: int,
    entries_per_block: int = 0,
) -> torch.Tensor:
    """Choose the ``top_k`` best of the entries that are visible to each query: `score`, `select`.

    The choice of a query depends on its position and on the index rows before it, never on the
    other queries of the launch or on the chunks in which the rows were made.
    """
    scores = score(
        queries,
        weights,
        keys,
        table,
        positions,
        ratio=ratio,
        entries_per_block=entries_per_block,
    )
    return select(scores, positions, ratio=ratio, top_k=top_k)


def score_reference(
    queries: torch.Tensor,
    weights: torch.Tensor,
    keys: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    *,
    ratio: int,
    entries_per_block: int = 0,
) -> torch.Tensor:
    """Score as `score` does, in plain torch.

    Products are summed by halving: a matrix product differs in bits with the number of queries.
    """
    per_block = entries_per_block or keys.shape[1]
    dim = queries.shape[2]
    entry = torch.arange(table.shape[1] * per_block, device=keys.device)
    scores = torch.full((len(queries), len(entry)), -torch.inf, device=keys.device)
    for query, position in enumerate(positions.tolist()):
        visible = min(max(visible_entries(position, ratio), 0), len(entry))
        block, there = pages_of(table, query, entry[:visible] // per_block, len(keys))
        row = entry[:visible] % per_block
        if keys.dtype == torch.uint8:
            rows, factor = index_keys.get(keys, block, row, per_block)
        else:
            rows, factor = keys[block, row].float(), torch.ones(visible, device=keys.device)
        total = torch.zeros(visible, device=keys.device)
        for head in range(queries.shape[1]):
            product = torch.nn.functional.pad(
                rows * queries[query, head].float(), (0, power_of_2(dim) - dim)
            )
            while product.shape[1] > 1:
                half = product.shape[1] // 2
                product = product[:, :half] + product[:, half:]
            total += weights[query, head] * product[:, 0].relu()
        scores[query, :visible] = torch.where(there, total * factor, torch.nan)
    return scores


@jit(any_value=(*("num_blocks", "num_entries", "weights_query", "table_query", "ratio"),))
def score_kernel(
    queries: Pointer,
    weights: Pointer,
    keys: Pointer,
    table: Pointer,
    positions: Pointer,
    scores: Pointer,
    num_blocks: Scalar,
    num_entries: Scalar,
    queries_query: Scalar,
    queries_head: Scalar,
    weights_query: Scalar,
    keys_block: Scalar,
    keys_row: Scalar,
    table_query: Scalar,
    ratio: Scalar,
    PER_BLOCK: constexpr,
    HEADS: constexpr,
    DIM: constexpr,
    BLOCK_HEADS: constexpr,
    BLOCK_DIM: constexpr,
    BLOCK: constexpr,
    TILES: constexpr,
    FP8: constexpr,
    UPCAST: constexpr,
) -> None:
    """Score a few tiles of entries for one query; what it cannot see gets minus infinity."""
    query = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * TILES * BLOCK
    visible = tl.minimum((tl.load(positions + query) + 1) // ratio, num_entries)
    seen_tiles = tl.minimum(tl.maximum(visible - first + BLOCK - 1, 0) // BLOCK, TILES)
    some = seen_tiles > 0
    head = tl.arange(0, BLOCK_HEADS)
    column = tl.arange(0, BLOCK_DIM)
    lane = tl.arange(0, BLOCK)
    at = queries + query * queries_query + head.to(tl.int64)[:, None] * queries_head
    inside = (head < HEADS)[:, None] & (column < DIM)[None, :]
    asked = tl.load(at + column[None, :], inside & some, 0.0)
    weight = tl.load(weights + query * weights_query + head, (head < HEADS) & some, 0.0)
    out = scores + query * num_entries
    if UPCAST:
        asked = asked.to(tl.float32)
    for tile in range(seen_tiles):
        entry = first + tile * BLOCK + lane
        seen = entry < visible
        block = tl.load(table + query * table_query + entry // PER_BLOCK, seen, 0)
        there = seen & (block > 0) & (block < num_blocks)
        page = keys + tl.where(there, block, 0).to(tl.int64) * keys_block
        row = (entry % PER_BLOCK).to(tl.int64)
        if FP8:
            found, factor = load_keys(page, row, there, PER_BLOCK)
            found = found.to(asked.dtype)
        else:
            place = (page + row * keys_row)[None, :] + column[:, None]
            found = tl.load(place, there[None, :] & (column < DIM)[:, None], 0.0)
            factor = tl.full((BLOCK,), 1.0, tl.float32)
        if UPCAST:
            product = tl.dot(asked, found.to(tl.float32), input_precision="tf32x3")
        else:
            product = tl.dot(asked, found)
        if HEADS < BLOCK_HEADS:  # of an infinite key, no head times it is no number
            product = tl.where((head < HEADS)[:, None], product, 0.0)
        total = tl.sum(tl.maximum(product, 0.0, tl.PropagateNan.ALL) * weight[:, None], 0)
        total = tl.where(there, total * factor, float("nan"))
        tl.store(out + entry, tl.where(seen, total, float("-inf")), entry < num_entries)
    for tile in range(seen_tiles, TILES):
        entry = first + tile * BLOCK + lane
        tl.store(out + entry, tl.full((BLOCK,), float("-inf"), tl.float32), entry < num_entries)


def score(
    queries: torch.Tensor,
    weights: torch.Tensor,
    keys: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    *,
    ratio: int,
    entries_per_block: int = 0,
) -> torch.Tensor:
    """Score every entry for every query: the sum over heads of weight · ReLU(query · key).

    An entry that is not visible ((entry + 1) * ratio - 1 after the query) has minus infinity; a
    visible one whose index row has no block is no number. Padding rows, of position -1, see
    nothing.
    Source: domain §4.1, §1.11; B22.

    Args:
        queries: shape (queries, heads, dim), dtype float32, float16 or bfloat16.
        weights: shape (queries, heads), dtype float32.
        keys: shape (num_blocks, entries_per_block, dim), dtype of queries; or fp8 pages, shape
            (num_blocks, bytes), dtype uint8 (see `fivestate.kernels.forms.index_keys`); dim is
            then 128. A query that is fp8 too is given as it stands in bfloat16, which holds it
            exactly, and its scale as a factor of its weights.
        table: shape (queries, blocks), dtype int32: block ids by entry; 0 null, -1 padding.
            Queries of one sequence may share a row (``expand``).
        positions: shape (queries,), dtype int32, from 0; -1 for padding.
        ratio: tokens of one entry.
        entries_per_block: of fp8 pages, which do not show it.

    Returns:
        Shape (queries, blocks * entries_per_block), dtype float32.

    Raises:
        ValueError: an argument does not fit; nothing was launched.
    """
    fp8 = keys.dtype == torch.uint8
    per_block = entries_per_block or (keys.shape[1] if keys.dim() > 1 else 1)
    check_score(queries, weights, keys, table, positions, ratio, per_block)
    if not by_triton(queries):
        return score_reference(
            queries, weights, keys, table, positions, ratio=ratio, entries_per_block=per_block
        )
    num_entries = table.shape[1] * per_block
    scores = torch.empty((len(queries), num_entries), device=queries.device)
    heads, dim = queries.shape[1:]
    fixed = constants(per_block, heads, dim, num_entries, queries.dtype, fp8=fp8)
    if INTERPRETED:  # its product of halves is garbage
        fixed["UPCAST"] = True
    launch(
        score_kernel,
        (len(queries), -(-num_entries // (fixed["BLOCK"] * fixed["TILES"]))),
        queries,
        weights,
        keys,
        table,
        positions,
        scores,
        len(keys),
        num_entries,
        *queries.stride()[:2],
        weights.stride(0),
        keys.stride(0),
        0 if fp8 else keys.stride(1),
        table.stride(0),
        ratio,
        num_warps=8,
        **fixed,
    )
    return scores


def constants(
    per_block: int, heads: int, dim: int, num_entries: int, dtype: torch.dtype, *, fp8: bool
) -> dict[str, Any]:
    """Return the constants with which entries are scored."""
    exact = dtype == torch.float32  # each factor is cut in three: that takes registers
    return {
        "PER_BLOCK": per_block,
        "HEADS": heads,
        "DIM": dim,
        "BLOCK_HEADS": max(power_of_2(heads), 16),
        "BLOCK_DIM": max(power_of_2(dim), 16),
        "BLOCK": 16 if exact else 64,
        "TILES": 4 if num_entries >= 4096 else 1,
        "FP8": fp8,
        "UPCAST": exact,
    }
