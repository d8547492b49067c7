"""What `fold` is compiled for: entries of ratio 4 and of ratio 128."""

from __future__ import annotations

from fivestate.kernels.compile.variant import Variant, types
from fivestate.kernels.fold import constants, fold_kernel, warps

VARIANTS = tuple(
    Variant(
        fold_kernel,
        f"{branches} × {ratio} rows of {dtype}, {form}",
        types(f"*{dtype}", "rows gates")
        | types("*i32", "table verified jobs")
        | {"slots": "*i64", "out": {"packed": "*u8", "bf16": "*i16", "float": "*fp32"}[form]}
        | types("i32", "num_blocks num_requests num_columns num_slots")
        | types("i32", "rows_block rows_row rows_branch gates_block gates_row")
        | types("i32", "gates_branch table_request out_page out_row"),
        constants(ratio, branches, block_rows, per_page, 512, form),
        registers=96,
        aligned=(
            *("rows", "gates", "table", "verified", "jobs", "slots", "out", "out_page", "out_row"),
            *("rows_block", "rows_row", "rows_branch", "gates_block", "gates_row", "gates_branch"),
        ),
        num_warps=warps(branches * ratio),
        wide_loads=True,
    )
    for ratio, branches, block_rows, per_page in ((4, 2, 4, 64), (128, 1, 8, 2))
    for dtype, form in (("fp32", "packed"), ("bf16", "bf16"))
)
