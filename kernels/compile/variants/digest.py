"""What `digest` is compiled for: pages of dsv4-flash, an object in parts, and odd ones."""

from __future__ import annotations

from fivestate.kernels.compile.variant import Variant
from fivestate.kernels.device.units import TYPES
from fivestate.kernels.digest import WORD_BYTES, constants, digest_kernel

VARIANTS = tuple(
    Variant(
        digest_kernel,
        f"{size_bytes:,} bytes",
        {"objects": TYPES[unit], "out": "*i64", "count": "i32"},
        constants(size_bytes, size_bytes, unit),
        registers=registers,
        aligned=("objects", "out") if unit == WORD_BYTES else ("out",),
        wide_loads=unit == WORD_BYTES,
    )
    for size_bytes, unit, registers in (
        (1_728, 8, 80),
        (8_640, 8, 96),
        (32_832, 8, 96),
        (37_440, 8, 96),
        (1 << 20, 8, 96),
        (1_004, 4, 60),
        (1_002, 2, 64),
        (1_001, 1, 96),
    )
)
