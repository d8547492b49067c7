"""What `classify_batch` is compiled for: the presets have 1, 7 and 8 groups."""

from __future__ import annotations

from fivestate.kernels.classify import BLOCK, classify_kernel
from fivestate.kernels.compile.variant import Variant, types
from fivestate.kernels.device.launch import power_of_2

VARIANTS = tuple(
    Variant(
        classify_kernel,
        f"{groups} groups",
        types("*i32", "fields consumer asked known spans abi")
        | types("*i64", "generations places")
        | types("*i32", "kinds resumes whys group_whys")
        | types("i32", "requests step draft_lookback"),
        {"GROUPS": groups, "BLOCK_GROUPS": power_of_2(groups), "BLOCK": BLOCK},
        registers=80,
        aligned=(
            *("fields", "consumer", "asked", "known", "spans", "abi", "generations", "places"),
            *("kinds", "resumes", "whys", "group_whys"),
        ),
    )
    for groups in (1, 7, 8)
)
