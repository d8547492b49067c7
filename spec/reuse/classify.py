"""Classify: MISS, PARTIAL or HIT, with a resume point, what to do first, why and at what cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import lcm

from fivestate.spec.need import round_down, round_up
from fivestate.spec.reuse.availability import Availability
from fivestate.spec.reuse.checks import (
    Asked,
    Consumer,
    all_groups,
    gone,
    same_prefix,
    whole_block,
)
from fivestate.spec.reuse.cost import Cost, token_time
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.holdings import hold
from fivestate.spec.reuse.numbers import Numbers
from fivestate.spec.reuse.reasons import Reason, Why
from fivestate.spec.reuse.recovery import Holdings, Plan, Policy, plan_at
from fivestate.spec.reuse.spans import missing


class Kind(Enum):
    """What a hash hit is worth."""

    MISS = "MISS"
    """Nothing to resume from, or nothing gained by it."""

    PARTIAL = "PARTIAL"
    """Something has to be done first: bytes moved, rows made again, tokens computed."""

    HIT = "HIT"
    """The whole matched prefix is usable as it stands."""


@dataclass(frozen=True)
class Verdict:
    """What a hash hit is worth, and why not more.

    Attributes:
        kind: MISS, PARTIAL or HIT.
        plan: where to resume, what to do first, and the cost.
        reasons: what stands in the way of more.
        numbers: the four numbers, in tokens.
        beaten: the other plans that were possible, the cheapest first.
    """

    kind: Kind
    plan: Plan
    reasons: tuple[Reason, ...]
    numbers: Numbers
    beaten: tuple[Plan, ...] = ()

    @property
    def resume(self) -> int:
        """The position to resume at; 0 for a miss."""
        return self.plan.resume

    @property
    def exact(self) -> bool:
        """Whether the result is what step-by-step computation gives."""
        return self.plan.exact

    @property
    def cost(self) -> Cost:
        """The cost until the fork is reached."""
        return self.plan.cost


ANYTHING = Policy()
"""Every exact recovery is allowed."""

NOW = Consumer()
"""A consumer that reads what today's producer writes."""


def classify(
    geometry: Geometry,
    asked: Asked,
    availability: Availability,
    consumer: Consumer = NOW,
    policy: Policy = ANYTHING,
) -> Verdict:
    """Say what a hash hit is worth: identity first, then the four checks (命中判定).

    PARTIAL is said only if the recovery is written down for this fork; a check that fails without
    one leads to a smaller resume point, and at last to MISS. The resume point is the one of least
    cost to the fork, the larger of two equal ones.
    Source: seed 000 §4, §5; seed 002 §6. Decisions: D-1, D-2.
    """
    fork = asked.target
    nothing = Plan(0, (), _from_scratch(fork, policy))
    if not availability.known:
        unknown = (Reason("H-0", Why.UNKNOWN, "hash"),)
        return Verdict(Kind.MISS, nothing, unknown, Numbers(asked.tokens))
    other = same_prefix(availability.identity, asked.identity)
    if other:
        return Verdict(Kind.MISS, nothing, other, Numbers(asked.tokens))
    limit, reasons = whole_block(geometry, asked)
    holdings = tuple(
        hold(geometry, copies, consumer, rank) for rank, copies in enumerate(availability.ranks)
    )
    step = geometry.scheduler_block_size
    every = [(rank, name, held) for rank, of in enumerate(holdings) for name, held in of.items()]
    hits = {(rank, name): held.hit_points for rank, name, held in every}
    recoverable = {
        (rank, name): held.recoverable_points(replay=policy.replay) for rank, name, held in every
    }
    reasons += tuple(reason for _, _, held in every for reason in held.reasons)
    _, short = all_groups(hits, limit, step)
    reasons += tuple(_why(holdings, rank, name, limit) for rank, name in short)
    furthest, _ = all_groups(recoverable, limit, step)
    plans = sorted(
        _plans(geometry, holdings, policy, furthest, fork),
        key=lambda plan: (plan.cost, -plan.resume),
    )
    best = plans[0] if plans and plans[0].cost < nothing.cost else nothing
    if best is nothing and plans:
        value = f"{plans[0].cost.nanoseconds}>={nothing.cost.nanoseconds} ns"
        reasons += (Reason("cost", Why.NO_GAIN, value),)
    kind = Kind.MISS
    if best.resume:
        kind = Kind.PARTIAL if best.steps else Kind.HIT
    matched = round_down(asked.fork, geometry.hash_block_size)
    recovered = max((plan.resume for plan in plans), default=0)
    numbers = Numbers(asked.tokens, matched, limit, recovered, best.resume)
    return Verdict(
        kind,
        best,
        reasons,
        numbers,
        tuple(plan for plan in (*plans, nothing) if plan is not best),
    )


def _why(holdings: Holdings, rank: int, name: str, limit: int) -> Reason:
    held = holdings[rank][name]
    need = held.group.need(limit)
    if held.copy_points.has(limit):
        parts = ", ".join(str(part) for part in missing(need, held.resident)) or str(need)
        return Reason("H-3", Why.NOT_RESIDENT, parts, name, rank)
    return gone(held.group, held.copied, limit, rank)


def _plans(
    geometry: Geometry,
    holdings: Holdings,
    policy: Policy,
    furthest: int,
    fork: int,
) -> Iterator[Plan]:
    """Yield every plan that can be the cheapest.

    Between two places where a copy starts or ends, cost is linear in the resume point, but for
    the teeth that tails and chunks give it; so the cheapest is next to such a place. No plan at
    a smaller point beats one that already costs less than computing the tokens from there to the
    fork.
    """
    best: int | None = None
    for resume in sorted(_corners(geometry, holdings, furthest), reverse=True):
        if best is not None and token_time(fork - resume, policy.rates) > best:
            return
        plan = plan_at(geometry, holdings, policy, resume, fork)
        if plan is not None:
            time = plan.cost.nanoseconds
            best = time if best is None else min(best, time)
            yield plan


def _corners(geometry: Geometry, holdings: Holdings, furthest: int) -> set[int]:
    step = geometry.scheduler_block_size
    spread = geometry.window_layers * (geometry.widest_window - 1)
    places = {furthest, spread}
    for of in holdings:
        for held in of.values():
            rows = held.group.most_rows
            for lot in held.lots:
                for span in lot.spans:
                    for edge in span:
                        places |= {edge, edge + rows, edge + spread, edge + rows + spread}
    periods = {group.period for group in geometry.voting}
    places |= {place // period * period for place in places for period in periods}
    steps = {lcm(period, step) for period in periods} | {step}
    corners = {at for p in places for s in steps for at in (round_down(p, s), round_up(p, s))}
    return {corner for corner in corners if 0 < corner <= furthest}


def _from_scratch(fork: int, policy: Policy) -> Cost:
    return Cost(token_time(fork, policy.rates), recompute_tokens=fork)
