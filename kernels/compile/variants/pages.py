"""What `gather`, `scatter` and `repack` are compiled for: pages of dsv4-flash, and odd ones."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from fivestate.kernels.compile.variant import Variant
from fivestate.kernels.device.units import TYPES, as_units
from fivestate.kernels.forms.layout import Layout
from fivestate.kernels.parts.paged import Paged, constants, copy_kernel


def _variant(name: str, source: Paged, destination: Paged, registers: int) -> Variant:
    """Return how rows between such sides are copied; their pages need no memory."""
    planes = [each for side in (source, destination) for each in side.layout.planes]
    sizes = [(each.offset_bytes, each.row_bytes, each.stride_bytes) for each in planes]
    unit = math.gcd(8, *sum(sizes, ()), *(side.layout.page_bytes for side in (source, destination)))
    sides = [replace(side, pages=as_units(side.pages, unit)) for side in (source, destination)]
    tables = [TYPES[unit] if side.table is None else "*i32" for side in sides]
    return Variant(
        copy_kernel,
        name,
        {
            "source": TYPES[unit],
            "source_table": tables[0],
            "destination": TYPES[unit],
            "destination_table": tables[1],
            "rows": "i32",
            "source_first": "i32",
            "destination_first": "i32",
        },
        constants(sides[0], sides[1], unit),
        registers=registers,
        aligned=("source", "source_table", "destination", "destination_table"),
        wide_loads=unit == 8,
    )


def _meta(layout: Layout, *, table: bool = True) -> Paged:
    """Return pages without memory."""
    pages = torch.empty((2, layout.page_bytes), dtype=torch.uint8, device="meta")
    return Paged(pages, pages[:, 0] if table else None, layout)


def _variants() -> tuple[Variant, ...]:
    found = []
    for page_bytes, registers in (
        (1_728, 60),
        (8_640, 80),
        (32_832, 48),
        (37_440, 48),
        (1_004, 48),
        (1_002, 48),
        (1_001, 48),
    ):
        whole = Layout.joined(1, page_bytes)
        pages, rows = _meta(whole), _meta(whole, table=False)
        name = f"of pages of {page_bytes:,} bytes"
        found.append(_variant(f"gather {name}", pages, rows, registers))
        found.append(_variant(f"scatter {name}", rows, pages, registers))
    planar = Layout.planar(64, 576, 8, page_bytes=37_440)
    joined = Layout.joined(64, 576, 8, page_bytes=37_440)
    halved = Layout.planar(32, 576, 8, page_bytes=19_008)
    found.append(_variant("repack planar to joined, 64 rows", _meta(planar), _meta(joined), 80))
    found.append(_variant("repack 64 rows to 32 rows", _meta(planar), _meta(halved), 48))
    return tuple(found)


VARIANTS = _variants()
