"""Policies for sliding windows: what each keeps, and what a fork at random costs then (滑窗策略).

Bytes are those that the allocator's cells take, in whole blocks and with their padding, for a
prompt that is cut into segments as the policy says. Tokens and time are what the theory of reuse
plans for a fork, with the speeds that are given to it.
Source: seed 002 §9; domain §4.1, §4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from fivestate.impl.chain import content, sizes
from fivestate.impl.retention import Retention
from fivestate.spec.reuse import (
    Asked,
    Availability,
    CacheGroup,
    Extent,
    Geometry,
    Policy,
    Rates,
    Role,
    Span,
    Tier,
    classify,
)
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, CacheState

STORED = frozenset({COMPRESSED, WINDOW, TAIL})
"""What is stored where windows are kept; an index is made again from its entries."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a policy costs.

    Attributes:
        keep: the policy.
        period_tokens: of PERIODIC, the distance of the windows that are kept.
        stored_bytes: bytes stored for 1,000 tokens.
        fork_tokens: where a fork is, on average: what it costs where nothing is stored.
        replayed_tokens: tokens that are computed a second time for a fork, on average.
        recomputed_tokens: tokens from where it resumes to the fork, on average.
        most_tokens: of both together, the most for one fork.
        seconds: the time to the fork, p50 and p99.
        exact: whether what is computed again is what was there.
    """

    keep: Keep
    period_tokens: int | None
    stored_bytes: float
    fork_tokens: float
    replayed_tokens: float
    recomputed_tokens: float
    most_tokens: int
    seconds: tuple[float, float]
    exact: bool

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.keep.value if self.period_tokens is None else f"every {self.period_tokens:,}"


def costs(  # noqa: PLR0913 -- each is named by the caller, and two have a default
    geometry: Geometry,
    rates: Rates,
    *,
    prompt_tokens: int,
    period_tokens: int,
    forks: int = 64,
    seed: int = 0,
) -> Iterator[Cost]:
    """Yield the cost of each policy, for forks that are the same for all of them.

    Everything is on disk, and nothing of it on the device.

    Args:
        geometry: the model; its index counts as one that can be made again.
        rates: measured speeds.
        prompt_tokens: of the prompt that was stored.
        period_tokens: of the periodic policy.
        forks: how many forks are looked at.
        seed: of where they are.

    Raises:
        ValueError: there is no fork, or the prompt has less than a scheduler block.
    """
    step = geometry.scheduler_block_size
    if forks < 1 or prompt_tokens < step:
        given = f"forks = {forks}, prompt_tokens = {prompt_tokens}"
        raise ValueError(f"policies: {given}: 1 or more, and {step} or more, are allowed")
    groups = tuple(
        replace(group, role=Role.REBUILDABLE) if group.state is INDEXER else group
        for group in geometry.groups
    )
    geometry = replace(geometry, groups=groups)
    chance = Random(seed)  # noqa: S311 -- where forks are is no secret
    at = [chance.randint(step, prompt_tokens) for _ in range(forks)]
    for keep in Keep:
        period = period_tokens if keep is Keep.PERIODIC else None
        yield _cost(geometry, rates, Retention(keep, period), prompt_tokens, at)


def stored(retention: Retention) -> frozenset[CacheState]:
    """Return the states of which a policy stores copies."""
    return STORED if retention.keeps_windows else STORED - {WINDOW, TAIL}


def _cost(
    geometry: Geometry, rates: Rates, retention: Retention, prompt: int, forks: Sequence[int]
) -> Cost:
    ends = retention.ends(0, prompt, geometry.scheduler_block_size)
    kept = stored(retention)
    policy = Policy(rates, approximate=retention.keep is Keep.BOUNDED)
    available = _available(geometry, ends, kept)
    plans = []
    for fork in forks:
        # The prompt goes on behind the fork, so that the fork itself may be resumed.
        plan = classify(geometry, Asked(fork, fork + 1), available, policy=policy).plan
        plans.append(plan)
    seconds = sorted(plan.cost.nanoseconds / 1e9 for plan in plans)
    again = [plan.cost.replay_tokens for plan in plans]
    behind = [plan.cost.recompute_tokens for plan in plans]
    return Cost(
        retention.keep,
        retention.period_tokens,
        1_000 * _stored_bytes(geometry, ends, kept) / ends[-1],
        fmean(forks),
        fmean(again),
        fmean(behind),
        max(a + b for a, b in zip(again, behind, strict=True)),
        (seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100]),
        all(plan.exact for plan in plans),
    )


def _segments(ends: Sequence[int]) -> Iterator[Span]:
    start = 0
    for end in ends:
        yield Span(start, end)
        start = end


def _groups(geometry: Geometry, kept: frozenset[CacheState]) -> list[CacheGroup]:
    return [group for group in geometry.voting if group.state in kept]


def _stored_bytes(geometry: Geometry, ends: Sequence[int], kept: frozenset[CacheState]) -> int:
    pages = {group.name: group.layers * group.page_size_bytes for group in geometry.voting}
    groups = _groups(geometry, kept)
    taken = (sizes(groups, segment.start, segment.end) for segment in _segments(ends))
    return sum(count * pages[name] for blocks in taken for name, count in blocks.items())


def _available(
    geometry: Geometry, ends: Sequence[int], kept: frozenset[CacheState]
) -> Availability:
    copies: dict[str, tuple[Extent, ...]] = {}
    for group in _groups(geometry, kept):
        spans = (content(group, segment.start, segment.end) for segment in _segments(ends))
        copies[group.name] = tuple(Extent(span, Tier.DISK) for span in spans if span.tokens)
    return Availability.on_one_rank(**copies)
