"""What `route` is compiled for: the indexer of dsv4-flash over fp8 pages, and plain keys."""

from __future__ import annotations

import torch

from fivestate.kernels.compile.variant import Variant, types
from fivestate.kernels.route import constants, score_kernel
from fivestate.kernels.select import select_kernel

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

VARIANTS = (
    *(
        Variant(
            score_kernel,
            f"{heads} heads of 128, {dtype}{', fp8 pages' if fp8 else ''}",
            types(f"*{dtype}", "queries")
            | {"keys": "*u8" if fp8 else f"*{dtype}"}
            | types("*i32", "table positions")
            | types("*fp32", "weights scores")
            | types("i32", "num_blocks num_entries queries_query queries_head")
            | types("i32", "weights_query keys_block keys_row table_query ratio"),
            constants(64, heads, 128, 1 << 15, TYPES[dtype], fp8=fp8),
            registers=registers,
            aligned=(
                *("queries", "weights", "keys", "table", "scores"),
                *("queries_query", "queries_head", "keys_block", "keys_row"),
            ),
            num_warps=8,
            wide_loads=True,
        )
        for heads, dtype, fp8, registers in (
            (64, "bf16", True, 160),
            (64, "bf16", False, 128),
            (32, "fp16", False, 128),
            (64, "fp32", False, 255),
        )
    ),
    Variant(
        select_kernel,
        "2,048 scores at once",
        types("*i32", "positions chosen")
        | types("i32", "num_entries scores_query ratio top_k")
        | types("*fp32", "scores"),
        {"BLOCK": 2048},
        registers=112,
        aligned=("scores", "chosen", "scores_query"),
        num_warps=8,
    ),
)
