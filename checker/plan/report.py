"""The report of a plan: figures, warnings, and how a program and a person read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

from fivestate.checker.plan.capacity import Capacity, capacity
from fivestate.checker.plan.figures import Option
from fivestate.checker.plan.solve import Conflict, Problem
from fivestate.checker.plan.wishes import Wishes
from fivestate.spec.need import blocks
from fivestate.spec.reuse.files import unverified
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import Role, Shape

COARSE_TOKENS = 1_024
"""Hits that land further apart than this leave many prompts without any; worth a warning."""


@dataclass(frozen=True)
class Report:
    """A plan that meets every wish.

    Attributes:
        geometry: the geometry, with the block sizes that were chosen.
        options: the figures of each group.
        hit_tokens: tokens to a multiple of which hits are rounded down, ranks included.
        capacity: what it costs.
        warnings: what an engineer should know before she uses it.
        unverified: figures of the geometry that were not read in a primary source.
    """

    geometry: Geometry
    options: tuple[Option, ...]
    hit_tokens: int
    capacity: Capacity
    warnings: tuple[str, ...]
    unverified: tuple[str, ...]

    @property
    def shortest_prompt(self) -> int:
        """The shortest prompt of which anything can be reused, in tokens."""
        return self.hit_tokens + max(self.geometry.draft_lookback, 1)


def plan(geometry: Geometry, wishes: Wishes) -> Report | Conflict:
    """Return block sizes that meet every wish and what they cost, or the wishes that conflict."""
    chosen = Problem(geometry, wishes).solve()
    if isinstance(chosen, Conflict):
        return chosen
    sized = replace(geometry, groups=tuple(each.group for each in chosen))
    hit_tokens = lcm(*(each.tokens for each in chosen if each.group.role is not Role.VOLATILE))
    cost = capacity(sized, chosen, wishes.setting, wishes.limits)
    found = Report(sized, chosen, hit_tokens, cost, (), unverified(geometry))
    return replace(found, warnings=tuple(_warnings(found)))


def _warnings(found: Report) -> Iterator[str]:
    if found.hit_tokens > COARSE_TOKENS:
        coarsest = max(found.options, key=lambda each: each.tokens)
        yield (
            f"no prompt under {found.shortest_prompt:,} tokens can ever hit: one block of "
            f"{coarsest.group.name} covers {coarsest.tokens:,} tokens"
        )
    for each in found.options:
        group = each.group
        if group.padding_bytes * 4 >= group.page_size_bytes:
            percent = group.padding_bytes * 100 / group.page_size_bytes
            yield f"{percent:.0f}% of each page of {group.name} is padding"
    if found.unverified:
        names = ", ".join(name.partition(" ")[0] for name in found.unverified)
        yield f"{len(found.unverified)} figures were not read in a primary source: {names}"


def to_dict(found: Report | Conflict, wishes: Wishes) -> dict[str, Any]:
    """Return what a program reads."""
    if isinstance(found, Conflict):
        return {
            "verdict": "CONFLICT",
            "conflict": [wish.text for wish in found.wishes],
            "because": found.because,
        }
    cost, geometry = found.capacity, found.geometry
    return {
        "verdict": "POSSIBLE",
        "geometry": geometry.name,
        "source": geometry.source,
        "hash_granularity_tokens": geometry.hash_block_size,
        "hit_granularity_tokens": found.hit_tokens,
        "shortest_reusable_prompt_tokens": found.shortest_prompt,
        "groups": [_group(each) for each in found.options],
        "bytes_per_token": float(cost.bytes_per_token),
        "bytes_per_token_padded": float(cost.bytes_per_token_padded),
        "bytes_per_request": cost.bytes_per_request,
        "pool_bytes": cost.pool_bytes,
        "load_bytes": cost.load_bytes,
        "load_ms": cost.load_nanoseconds / 1e6,
        "first_token": [
            {"kind": f.kind, "percent": f.percent, "ms": f.nanoseconds / 1e6}
            for f in cost.first_token
        ],
        "window_policies": [
            {
                "policy": b.keep.value,
                "stored_bytes": b.stored_bytes,
                "replay_tokens": b.replay_tokens,
                "exact": b.exact,
            }
            for b in cost.windows
        ],
        "scheme_a": {
            "bytes_per_token": cost.scheme_a.bytes_per_token,
            "enough_below_tokens": cost.scheme_a.enough_below_tokens,
            "fits_below_tokens": cost.scheme_a.fits_below_tokens,
        },
        "load": {
            name: getattr(wishes.setting, name) for name in wishes.setting.__dataclass_fields__
        },
        "warnings": list(found.warnings),
        "unverified": list(found.unverified),
    }


def _group(each: Option) -> dict[str, Any]:
    group = each.group
    return {
        "name": group.name,
        "state": group.state.name,
        "shape": group.shape.value,
        "role": group.role.value,
        "layers": group.layers,
        "block_size_tokens": group.block_size,
        "block_size_tokens_all_ranks": each.tokens,
        "entries_per_block": group.entries_per_block,
        "page_size_bytes": group.page_size_bytes,
        "padding_bytes": group.padding_bytes,
        "blocks_for_a_hit": group.hit_blocks,
        "blocks_for_a_hit_on_a_boundary": blocks(group.lookback, group.block_size)
        if group.shape is Shape.OPEN_GROUP
        else group.hit_blocks,
        "admission_cap_blocks": each.cap_blocks,
    }
