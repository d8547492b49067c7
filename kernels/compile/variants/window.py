"""What `append` and `collect` are compiled for: rows of dsv4-flash, and odd ones."""

from __future__ import annotations

import math

import torch

from fivestate.kernels.compile.variant import Variant
from fivestate.kernels.device.units import TYPES, as_units
from fivestate.kernels.window import constants, place_kernel


def _variants() -> tuple[Variant, ...]:
    found = []
    for to_cells in (True, False):
        for row_bytes, capacity, registers in (
            (576, 128, 60),
            (584, 128, 96),
            (1_024, 128, 60),
            (8_192, 8, 40),
            (1_004, 128, 40),
            (1_002, 128, 40),
            (1_001, 128, 40),
        ):
            unit = math.gcd(8, row_bytes)
            linear, cells = (
                as_units(torch.empty((2, rows, row_bytes), dtype=torch.uint8, device="meta"), unit)
                for rows in (128, capacity)
            )
            way = "append" if to_cells else "collect"
            found.append(
                Variant(
                    place_kernel,
                    f"{way} rows of {row_bytes:,} bytes, {capacity} cells",
                    {
                        **dict.fromkeys(("rows", "rings"), TYPES[unit]),
                        **dict.fromkeys(("ring", "count"), "*i32"),
                        "first": "*i64",
                        **dict.fromkeys(("width", "total", "sequence_steps"), "i32"),
                    },
                    constants(linear, cells, to_cells=to_cells),
                    registers=registers,
                    aligned=("rows", "rings", "ring", "first", "count"),
                    wide_loads=row_bytes % 16 == 0,
                )
            )
    return tuple(found)


VARIANTS = _variants()
