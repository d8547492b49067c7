"""The theory of reuse agrees with an oracle on random geometries, and seeded faults do not."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from tests.reuse_examples import Example, examples
from tests.reuse_oracle import candidates, oracle_time, oracle_usable, reads

from fivestate.spec.need import blocks, round_down
from fivestate.spec.reuse import Consumer, Geometry, Kind, checks, groups, points
from fivestate.spec.reuse.holdings import hold
from fivestate.spec.reuse.spans import merge

EXAMPLES = 10_000 if os.environ.get("CI") else 1_000
"""Random geometries that are compared; a continuous integration sets CI."""


def as_it_stands(example: Example) -> int:
    """Return the longest prefix that H-1 and H-3 leave usable as it stands."""
    limit, _ = checks.whole_block(example.geometry, example.asked)
    hits = {
        (rank, name): held.hit_points
        for rank, copies in enumerate(example.ranks)
        for name, held in hold(example.geometry, copies, Consumer(), rank).items()
    }
    return checks.all_groups(hits, limit, example.geometry.scheduler_block_size)[0]


def disagreement(example: Example) -> str:
    """Say where the specification and the oracle differ, if they do."""
    target = example.asked.target
    for group in example.geometry.groups:
        if set(range(*group.need(target))) != reads(group, target):
            return f"{group.name} needs {group.need(target)} at {target}"
    usable = oracle_usable(example)
    if (found := as_it_stands(example)) != usable:
        return f"{found} is found where {usable} is usable as it stands"
    verdict = example.classify()
    if (verdict.kind is Kind.HIT) != (usable == target > 0):
        return f"{verdict.kind} where {usable} of {target} is usable"
    times = {p: oracle_time(example, p) for p in candidates(example) if p}
    ways = {p: time for p, time in times.items() if time is not None}
    scratch = target * 1000
    best = min([*ways.values(), scratch])
    if verdict.cost.nanoseconds != best:
        return f"{verdict.cost} where {best} ns is possible: {ways}"
    if verdict.resume and ways.get(verdict.resume) != best:
        return f"resume {verdict.resume} of {ways}"
    if verdict.numbers.recoverable != max(ways, default=0):
        return f"recoverable {verdict.numbers.recoverable} of {ways}"
    return ""


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(examples())
def test_the_verdict_is_the_oracle_s(example: Example) -> None:
    assert not disagreement(example)


def small_unit(shape: Geometry) -> int:
    """Take the unit of hashes for that of hits."""
    return shape.hash_block_size


def early_rounding(fork: int, prompt: int, lookback: int) -> int:
    """Round to whole blocks of 4 before the drafter's tokens are dropped."""
    return max(round_down(min(fork, prompt - 1), 4) - lookback, 0)


FAULTS: dict[str, list[tuple[object, str, object]]] = {
    "W for W - 1": [(groups, "window_start", lambda p, w: max(p - w, 0))],
    "round before the look-back is dropped": [(checks, "resume_limit", early_rounding)],
    "min for the intersection of sets": [
        (points, "descend", lambda asked, start: min(ask(start) for ask in asked)),
        (checks, "descend", lambda asked, start: min(ask(start) for ask in asked)),
    ],
    "look-back 0 for an overlapping compressor": [
        (groups, "tail_start", lambda folded, ratio, _: folded * ratio)
    ],
    "the unit of hashes for the span of a block": [
        (Geometry, "scheduler_block_size", property(small_unit))
    ],
    "an entry with future tokens is visible": [
        (groups, "entries_end", lambda p, ratio: blocks(p, ratio) * ratio)
    ],
    "N for N - 1": [(checks, "resume_limit", lambda fork, _, lookback: max(fork - lookback, 0))],
    "a half block counts": [(points, "whole_spans", lambda _, spans: merge(spans))],
}
"""Formulas as naive code has them."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for where, name, wrong in FAULTS[fault]:
        monkeypatch.setattr(where, name, wrong)
    generate = settings(
        max_examples=4_000,
        phases=(Phase.generate,),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
    )
    caught = find(examples(), lambda example: bool(disagreement(example)), settings=generate)
    assert disagreement(caught)
