"""Route (路由): index scores, and the best visible entries, with a defined tie-break."""

from __future__ import annotations

import torch

from fivestate.kernels.arguments import check_score
from fivestate.kernels.launch import (
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
from fivestate.kernels.rows import pages_of
from fivestate.kernels.select import VARIANTS as SELECT_VARIANTS
from fivestate.kernels.select import select
from fivestate.kernels.signatures import types
from fivestate.kernels.variants import Variant
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
) -> torch.Tensor:
    """Choose the ``top_k`` best of the entries that are visible to each query: `score`, `select`.

    The choice of a query depends on its position and on the index rows before it, never on the
    other queries of the launch or on the chunks in which the rows were made.
    """
    scores = score(queries, weights, keys, table, positions, ratio=ratio)
    return select(scores, positions, ratio=ratio, top_k=top_k)


def score_reference(
    queries: torch.Tensor,
    weights: torch.Tensor,
    keys: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    *,
    ratio: int,
) -> torch.Tensor:
    """Score as `score` does, in plain torch.

    Products are summed by halving: a matrix product differs in bits with the number of queries.
    """
    num_blocks, per_block, dim = keys.shape
    entry = torch.arange(table.shape[1] * per_block, device=keys.device)
    scores = torch.full((len(queries), len(entry)), -torch.inf, device=keys.device)
    for query, position in enumerate(positions.tolist()):
        visible = min(max(visible_entries(position, ratio), 0), len(entry))
        block, there = pages_of(table, query, entry[:visible] // per_block, num_blocks)
        rows = keys[block, entry[:visible] % per_block].float()
        total = torch.zeros(visible, device=keys.device)
        for head in range(queries.shape[1]):
            product = torch.nn.functional.pad(
                rows * queries[query, head].float(), (0, power_of_2(dim) - dim)
            )
            while product.shape[1] > 1:
                half = product.shape[1] // 2
                product = product[:, :half] + product[:, half:]
            total += weights[query, head] * product[:, 0].relu()
        scores[query, :visible] = torch.where(there, total, torch.nan)
    return scores


@jit(any_value=("num_blocks", "ratio"))
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
    UPCAST: constexpr,
) -> None:
    """Score a few tiles of entries for one query; what it cannot see gets minus infinity."""
    query = tl.program_id(0).to(tl.int64)
    visible = (tl.load(positions + query) + 1) // ratio
    head = tl.arange(0, BLOCK_HEADS)
    column = tl.arange(0, BLOCK_DIM)
    at = queries + query * queries_query + head[:, None] * queries_head + column[None, :]
    asked = tl.load(at, (head < HEADS)[:, None] & (column < DIM)[None, :], 0.0)
    weight = tl.load(weights + query * weights_query + head, head < HEADS, 0.0).to(tl.float32)
    if UPCAST:
        asked = asked.to(tl.float32)
    for tile in range(TILES):
        entry = (tl.program_id(1) * TILES + tile) * BLOCK + tl.arange(0, BLOCK)
        seen = (entry < visible) & (entry < num_entries)
        block = tl.load(table + query * table_query + entry // PER_BLOCK, seen, 0)
        there = seen & (block > 0) & (block < num_blocks)
        row = tl.where(there, block, 0).to(tl.int64) * keys_block + (entry % PER_BLOCK) * keys_row
        found = tl.load(
            keys + row[None, :] + column[:, None], there[None, :] & (column < DIM)[:, None], 0.0
        )
        if UPCAST:
            product = tl.dot(asked, found.to(tl.float32), input_precision="tf32x3")
        else:
            product = tl.dot(asked, found)
        total = tl.sum(tl.maximum(product, 0.0, tl.PropagateNan.ALL) * weight[:, None], 0)
        total = tl.where(there, total, float("nan"))
        total = tl.where(seen, total, float("-inf"))
        tl.store(scores + query * num_entries + entry, total, entry < num_entries)


def score(
    queries: torch.Tensor,
    weights: torch.Tensor,
    keys: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    *,
    ratio: int,
) -> torch.Tensor:
    """Score every entry for every query: the sum over heads of weight · ReLU(query · key).

    An entry that is not visible ((entry + 1) * ratio - 1 after the query) has minus infinity; a
    visible one whose index row has no block is no number. Padding rows, of position -1, see
    nothing.
    Source: domain §4.1; B22.

    Args:
        queries: shape (queries, heads, dim), dtype float32, float16 or bfloat16.
        weights: shape (queries, heads), dtype float32.
        keys: shape (num_blocks, entries_per_block, dim), dtype of queries.
        table: shape (queries, blocks), dtype int32: block ids by entry; 0 null, -1 padding.
            Queries of one sequence may share a row (``expand``).
        positions: shape (queries,), dtype int32, from 0; -1 for padding.
        ratio: tokens of one entry.

    Returns:
        Shape (queries, blocks * entries_per_block), dtype float32.

    Raises:
        ValueError: an argument does not fit; nothing was launched.
    """
    check_score(queries, weights, keys, table, positions, ratio)
    if not by_triton(queries):
        return score_reference(queries, weights, keys, table, positions, ratio=ratio)
    num_entries = table.shape[1] * keys.shape[1]
    scores = torch.empty((len(queries), num_entries), device=queries.device)
    upcast = INTERPRETED or queries.dtype == torch.float32
    constants = _constants(
        keys.shape[1], queries.shape[1], queries.shape[2], num_entries, upcast=upcast
    )
    launch(
        score_kernel,
        (len(queries), -(-num_entries // (constants["BLOCK"] * constants["TILES"]))),
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
        *keys.stride()[:2],
        table.stride(0),
        ratio,
        num_warps=8,
        **constants,
    )
    return scores


def _constants(
    per_block: int, heads: int, dim: int, num_entries: int, *, upcast: bool
) -> dict[str, int]:
    """Return the constants with which entries are scored."""
    return {
        "PER_BLOCK": per_block,
        "HEADS": heads,
        "DIM": dim,
        "BLOCK_HEADS": max(power_of_2(heads), 16),
        "BLOCK_DIM": max(power_of_2(dim), 16),
        "BLOCK": min(64, power_of_2(max(num_entries, 16))),
        "TILES": 4 if num_entries >= 4096 else 1,
        "UPCAST": upcast,
    }


VARIANTS = (
    *(
        Variant(
            score_kernel,
            f"{heads} heads of {dim}, {dtype}",
            types(f"*{dtype}", "queries keys")
            | types("*i32", "table positions")
            | types("*fp32", "weights scores")
            | types("i32", "num_blocks num_entries queries_query queries_head")
            | types("i32", "weights_query keys_block keys_row table_query ratio"),
            _constants(64, heads, dim, 1 << 15, upcast=False),
            registers=128,
            aligned=(
                *("queries", "weights", "keys", "table", "scores", "num_entries"),
                *("queries_query", "queries_head", "weights_query", "keys_block", "keys_row"),
            ),
            num_warps=8,
            wide_loads=True,
        )
        for heads, dim, dtype in ((64, 128, "bf16"), (32, 128, "fp16"))
    ),
    *SELECT_VARIANTS,
)
