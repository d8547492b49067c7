"""What `attend` is compiled for: 64 heads of 512, pages of 64 rows."""

from __future__ import annotations

import torch

from fivestate.kernels.attend import attend_kernel, constants, warps
from fivestate.kernels.compile.variant import Variant, types
from fivestate.kernels.forms.rows import Pages
from fivestate.kernels.parts.softmax import join_kernel


def _variant(title: str, dtype: str, pages: Pages, *, dense: bool) -> Variant:
    held = "*u8" if pages.packed else f"*{dtype}"
    return Variant(
        attend_kernel,
        title,
        types("*i32", "window_table entry_table chosen positions")
        | types("*fp32", "parts mosts totals")
        | {"queries": f"*{dtype}", "windows": held, "entries": held, "scale": "fp32"}
        | types("i32", "num_windows num_entries window_columns entry_columns")
        | types("i32", "num_chosen queries_query queries_head windows_page")
        | types("i32", "windows_row window_table_query entries_page entries_row")
        | types("i32", "entry_table_query chosen_query window ratio"),
        constants(64, 512, pages, pages, dense=dense, upcast=False),
        registers=200,
        aligned=(
            *("queries", "windows", "entries", "window_table", "entry_table", "chosen", "parts"),
            *("queries_query", "queries_head", "windows_page", "entries_page"),
            *(() if pages.packed else ("windows_row", "entries_row")),
        ),
        num_warps=warps(512),
        wide_loads=True,
    )


_PACKED = Pages(torch.empty(0, dtype=torch.uint8), torch.empty(0), 64)
_DENSE = Pages(torch.empty(0), torch.empty(0), 64)

VARIANTS = (
    _variant("chosen entries, packed pages", "bf16", _PACKED, dense=False),
    _variant("all entries, packed pages", "bf16", _PACKED, dense=True),
    _variant("chosen entries, bf16 pages", "bf16", _DENSE, dense=False),
    Variant(
        join_kernel,
        "64 heads of 512, bf16",
        types("*fp32", "parts mosts totals sinks")
        | types("i32", "out_query out_head splits")
        | {"positions": "*i32", "out": "*i16"},
        {"HEADS": 64, "DIM": 512, "BLOCK_DIM": 512, "SINKS": True, "BF16": True},
        registers=64,
        aligned=("parts", "out", "out_query", "out_head"),
        wide_loads=True,
    ),
)
