"""Granularity: where a hit may land, and how many tokens one hash covers (H-1)."""

from __future__ import annotations

from collections.abc import Iterator

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.numbers import Numbers
from fivestate.checker.prove.signature import numbers
from fivestate.checker.prove.theorem import Question, theorem
from fivestate.spec import need
from fivestate.spec.reuse.geometry import Geometry

PRESETS = "all positions; every preset"
SIZES = "all positions, all sizes"


@theorem("H-1", PRESETS)
def hit_granularity_is_whole_everywhere(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Every multiple of the hit granularity is whole blocks in every voting group."""
    n = Numbers()
    times = n.z3(n.new("times"))
    for geometry in geometries:
        position = geometry.scheduler_block_size * times
        whole = z3.And([position % group.block_size == 0 for group in geometry.voting])
        yield Question(geometry.name, tuple(n.given), whole, {"position": position})


@theorem("H-1", PRESETS)
def no_smaller_step_is_whole(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """What is whole blocks in every voting group is a multiple of the hit granularity."""
    n = Numbers()
    position = n.z3(n.new("position", 1))
    for geometry in geometries:
        step = geometry.scheduler_block_size
        whole = [position % group.block_size == 0 for group in geometry.voting]
        claim = z3.And(position % step == 0, position >= step)
        yield Question(geometry.name, (*n.given, *whole), claim, {"position": position})


@theorem("H-1", SIZES)
def common_multiples_are_multiples_of_one(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Two block sizes have one step of which everything whole in both is a multiple.

    ``a * x = b * y`` is that step where ``x`` and ``y`` have no common factor: where some
    ``u * x + v * y`` is 1.
    """
    del geometries
    a, b, x, y, u, v, i, j, position = numbers("a b x y u v i j position")
    given = (a >= 1, b >= 1, x >= 1, y >= 1, u * x + v * y == 1, a * x == b * y)
    whole = (position == a * i, position == b * j)
    claim = position == (a * x) * (i * u + j * v)
    yield Question("", (*given, *whole), claim, {"a": a, "b": b, "position": position})


@theorem("H-1", PRESETS)
def hash_granularity_is_the_largest_divisor(
    geometries: tuple[Geometry, ...],
) -> Iterator[Question]:
    """A hash covers whole parts of every block, and no larger number of tokens does."""
    divisor = z3.Int("divisor")
    for geometry in geometries:
        sizes = [group.block_size for group in geometry.voting]
        step = geometry.hash_block_size
        parts = [z3.Int(f"parts {at}") for at in range(len(sizes))]
        divides = [divisor * part == size for part, size in zip(parts, sizes, strict=True)]
        factors = bezout(sizes)
        whole = all(size % step == 0 for size in sizes)
        together = z3.Sum([f * part for f, part in zip(factors, parts, strict=True)])
        claim = z3.And(z3.BoolVal(whole), divisor * together == step)
        yield Question(geometry.name, (divisor >= 1, *divides), claim, {"divisor": divisor})


@theorem("H-1", PRESETS)
def no_half_block_is_reused(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """What is resumed is whole blocks in every group, without the look-back and the last token.

    It is the most that is.
    """
    for geometry in geometries:
        n = Numbers()
        fork, prompt, lookback = n.new("fork"), n.new("prompt", 1), n.new("lookback")
        step = geometry.scheduler_block_size
        limit = need.resume_limit(fork, prompt, lookback)
        resume, most = n.z3(need.round_down(limit, step)), n.z3(limit)
        z_fork, z_prompt, z_back = n.z3(fork), n.z3(prompt), n.z3(lookback)
        claim = z3.And(
            *(resume % group.block_size == 0 for group in geometry.voting),
            resume >= 0,
            resume <= z_prompt - 1,
            z3.Or(resume == 0, resume + z_back <= z_fork),
            resume <= most,
            most < resume + step,
            z3.Or(most == 0, most == z_fork - z_back, most == z_prompt - 1),
        )
        given = (*n.given, z_fork <= z_prompt)
        shown = {"fork": z_fork, "prompt": z_prompt, "lookback": z_back, "resume": resume}
        yield Question(geometry.name, given, claim, shown)


@theorem("H-1", PRESETS)
def look_back_is_dropped_before_rounding(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """To drop a drafter's look-back before rounding is never worse than to drop it after (B03)."""
    for geometry in geometries:
        n = Numbers()
        fork, lookback = n.new("fork"), n.new("lookback")
        step = geometry.scheduler_block_size
        before = n.z3(need.round_down(need.resume_limit(fork, fork + 1, lookback), step))
        rounded = need.round_down(fork, step) - lookback
        after = n.z3(need.round_down(rounded, step))
        shown = {"fork": n.z3(fork), "lookback": n.z3(lookback)}
        yield Question(geometry.name, tuple(n.given), before >= after, shown)


@theorem("H-1", SIZES)
def whole_blocks_of_a_copy(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Of a copy, the blocks that lie wholly inside count, and no row outside of it."""
    del geometries
    n = Numbers()
    start, end, size, at = n.new("start"), n.new("end"), n.new("size", 1), n.new("block")
    first, last = n.z3(need.blocks(start, size) * size), n.z3(need.round_down(end, size))
    block = n.z3(at) * n.z3(size)
    inside = z3.And(n.z3(start) <= block, block + n.z3(size) <= n.z3(end))
    counted = z3.And(first <= block, block + n.z3(size) <= last)
    shown = {name: n.z3(x) for name, x in (("start", start), ("end", end), ("size", size))}
    yield Question("", tuple(n.given), inside == counted, shown)


def bezout(sizes: list[int]) -> list[int]:
    """Return factors with which sizes add up to their greatest common divisor."""
    factors, reached = [1], sizes[0]
    for size in sizes[1:]:
        one, other, u, v, s, t = reached, size, 1, 0, 0, 1
        while other:
            quotient = one // other
            one, other = other, one - quotient * other
            u, v, s, t = s, t, u - quotient * s, v - quotient * t
        factors = [factor * u for factor in factors] + [v]
        reached = one
    return factors


THEOREMS = (
    hit_granularity_is_whole_everywhere,
    no_smaller_step_is_whole,
    common_multiples_are_multiples_of_one,
    hash_granularity_is_the_largest_divisor,
    no_half_block_is_reused,
    look_back_is_dropped_before_rounding,
    whole_blocks_of_a_copy,
)
