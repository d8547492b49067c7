"""Figures that a block size fixes: pages, padding, caps, and the bytes of a load."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivestate.checker.plan.wishes import Setting, Wish
from fivestate.spec.need import blocks
from fivestate.spec.reuse.admission import admission_cap
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Role, Shape

LARGEST_BLOCK_TOKENS = 65_536
"""The largest block size that is tried where a plan may choose."""


@dataclass(frozen=True)
class Option:
    """One block size of one group.

    Attributes:
        group: the group, with this block size.
        tokens: tokens that one block covers on all ranks together.
        cap_blocks: the most blocks that one request can hold.
        pool_bytes: bytes of the blocks that all requests can come to hold, all layers.
        load_bytes: bytes of the pages that a load of the shared prefix brings, all layers.
    """

    group: CacheGroup
    tokens: int
    cap_blocks: int
    pool_bytes: int
    load_bytes: int


def option(group: CacheGroup, block_size: int, setting: Setting) -> Option:
    """Return the figures of a group at a block size."""
    sized = replace(group, block_size=block_size)
    spread = setting.ranks if sized.shape is Shape.PREFIX else 1
    cap = admission_cap(sized, setting.in_flight, setting.context)
    page = sized.page_size_bytes * sized.layers
    needed = sized.need(setting.context)
    held = 1 if sized.shape is Shape.POINT else blocks(needed.tokens, block_size)
    loaded = 0 if sized.role is Role.VOLATILE else held * page
    return Option(sized, block_size * spread, cap, setting.requests * cap * page, loaded)


def options(geometry: Geometry, setting: Setting, limits: tuple[Wish, ...]) -> list[list[Option]]:
    """Return for each group the block sizes that are tried: its own, those wished, powers of two.

    Entries are whole in a block, so the powers are multiplied by the ratio.
    """
    tried: list[list[Option]] = []
    for group in geometry.groups:
        ratio = group.ratio if group.shape is Shape.PREFIX else 1
        sizes = {group.block_size}
        sizes |= {w.value for w in limits if w.name == "block" and w.group == group.name}
        multiples = {w.value for w in limits if w.name == "kernel_block"} | {1}
        for multiple in multiples:
            size = ratio * multiple
            while size <= LARGEST_BLOCK_TOKENS:
                sizes.add(size)
                size *= 2
        whole = sorted(size for size in sizes if size % ratio == 0)
        tried.append([option(group, size, setting) for size in whole])
    return tried
