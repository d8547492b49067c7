"""What `revalidate` is compiled for."""

from __future__ import annotations

from fivestate.kernels.compile.variant import Variant, types
from fivestate.kernels.revalidate import compare_kernel, poison_kernel

VARIANTS = (
    *(
        Variant(
            compare_kernel,
            f"{'first' if first else 'further'} pool, 1,024 blocks at once",
            types("*i64", "generations pool")
            | types("*i32", "blocks ok")
            | types("i32", "count num_blocks")
            | types("i32", "blocks_request generations_request"),
            {"FIRST": first, "BLOCK": 1024},
            registers=64,
            aligned=("blocks", "generations", "pool", "blocks_request", "generations_request"),
        )
        for first in (True, False)
    ),
    *(
        Variant(
            poison_kernel,
            dtype,
            types("i32", "count output_request")
            | {"ok": "*i32", "output": f"*{dtype}", "poison": "fp32"},
            {"BLOCK": 1024},
            registers=32,
            aligned=("output", "output_request"),
        )
        for dtype in ("fp32", "bf16")
    ),
)
