"""Recovery: the concrete steps after which a position can be resumed, or that there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from fivestate.spec.need import replay_start
from fivestate.spec.reuse.availability import Tier
from fivestate.spec.reuse.cost import Cost, Rates, byte_time, token_time
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Role, Shape
from fivestate.spec.reuse.holdings import Held, Lot
from fivestate.spec.reuse.points import descend
from fivestate.spec.reuse.spans import Span, covered, merge
from fivestate.spec.vocabulary import INDEXER

Holdings = tuple[Mapping[str, Held], ...]
"""What each group has, rank by rank."""


class Means(Enum):
    """How something missing is brought back, in the order in which it is done."""

    LOAD_BACK = "load back"
    """Read from a lower tier, verify, move to the device (回迁)."""

    REPACK = "repack"
    """Rearrange on the device, into the layout and alignment the kernel wants (重排)."""

    REFOLD = "refold"
    """Fold entries again from raw rows that are still there."""

    REBUILD_INDEX = "rebuild index"
    """Make index rows again from the entries, in the same generation (重建索引)."""

    REPLAY = "replay"
    """Compute tokens a second time, for the rows of windows and tails (重放)."""

    RECOMPUTE = "recompute"
    """Compute the tokens from the resume point to the fork (重算)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a recovery.

    Attributes:
        means: what is done.
        groups: the groups it is done for.
        span: the tokens it concerns.
        tier: where the bytes come from, if they move.
        moved_bytes: bytes that are moved or rearranged.
        tokens: tokens that are computed.
        exact: whether the result is what step-by-step computation gives.
        rank: the rank it is done on.
    """

    means: Means
    groups: tuple[str, ...]
    span: Span
    tier: Tier = Tier.DEVICE
    moved_bytes: int = 0
    tokens: int = 0
    exact: bool = True
    rank: int = 0

    def __str__(self) -> str:
        where = f" from {self.tier.name}" if self.means is Means.LOAD_BACK else ""
        kind = "" if self.exact else " (approximate)"
        return f"{self.means.value} {self.span} of {', '.join(self.groups)}{where}{kind}"


@dataclass(frozen=True, slots=True)
class Policy:
    """Which recoveries may be used, and how fast they are.

    Attributes:
        rates: how fast bytes move and tokens are computed.
        replay: whether rows of windows and tails may be computed again at all.
        approximate: whether a replay of the last window alone may be used. It attends to fewer
            tokens than the model would, so its result depends on where it started (有界重放).
    """

    rates: Rates = field(default_factory=Rates)
    replay: bool = True
    approximate: bool = False


@dataclass(frozen=True)
class Plan:
    """A way to resume at a position.

    Attributes:
        resume: the position.
        steps: what is done first, in this order; nothing where it can be used as it stands.
        cost: the cost until the fork is reached.
    """

    resume: int
    steps: tuple[Step, ...]
    cost: Cost

    @property
    def exact(self) -> bool:
        """Whether the result is what step-by-step computation gives."""
        return all(step.exact for step in self.steps)


def plan_at(
    geometry: Geometry,
    holdings: Holdings,
    policy: Policy,
    resume: int,
    fork: int,
) -> Plan | None:
    """Return the way to resume at a position, from the nearest copies, or nothing if none is.

    Every voting group on every rank needs what it needs there: as it stands, or from a copy, or
    made again from groups that are there.
    """
    moves = _Moves()
    steps: list[Step] = []
    first_row = resume
    replayed: dict[str, None] = {}
    for rank, of_rank in enumerate(holdings):
        for held in of_rank.values():
            absent = moves.add(rank, held, held.group.need(resume))
            if not absent:
                continue
            means = _means(held, absent, policy)
            if means is None:
                return None
            if means is Means.REPLAY:
                first_row = min(first_row, absent[0].start)
                replayed[held.group.name] = None
            else:
                steps += [_made(means, held.group, span, rank) for span in absent]
    if replayed:
        start, read, exact = _replay(geometry, holdings, policy, first_row, resume)
        for rank, held in read:
            moves.add(rank, held, held.group.need(start))
        span = Span(start, resume)
        steps.append(Step(Means.REPLAY, (*replayed,), span, tokens=span.tokens, exact=exact))
    if resume < fork:
        every = tuple(group.name for group in geometry.groups)
        steps.append(Step(Means.RECOMPUTE, every, Span(resume, fork), tokens=fork - resume))
    steps += moves.steps()
    return Plan(resume, tuple(sorted(steps, key=_order)), cost_of(steps, policy.rates))


def cost_of(steps: Iterable[Step], rates: Rates) -> Cost:
    """Add up what steps cost; ranks move bytes side by side and compute the same tokens."""
    moving: dict[int, int] = {}
    load = repack = replay = recompute = 0
    for step in steps:
        match step.means:
            case Means.REPLAY:
                replay += step.tokens
            case Means.RECOMPUTE:
                recompute += step.tokens
            case Means.LOAD_BACK:
                load += step.moved_bytes
                time = byte_time(step.moved_bytes, rates.load(step.tier))
                moving[step.rank] = moving.get(step.rank, 0) + time
            case _:
                repack += step.moved_bytes
                time = byte_time(step.moved_bytes, rates.repack_bytes_per_second)
                moving[step.rank] = moving.get(step.rank, 0) + time
    time = max(moving.values(), default=0) + token_time(replay + recompute, rates)
    return Cost(time, load, repack, replay, recompute)


class _Moves:
    """The bytes that are moved or rearranged: each token of a group once."""

    def __init__(self) -> None:
        self._spans: dict[tuple[int, str, Lot], tuple[CacheGroup, list[Span]]] = {}

    def add(self, rank: int, held: Held, need: Span) -> tuple[Span, ...]:
        """Take ``need`` from copies and return the parts that no copy has."""
        given, absent = held.parts(need)
        for lot, span in given:
            if not lot.as_it_stands:
                where = rank, held.group.name, lot
                self._spans.setdefault(where, (held.group, []))[1].append(span)
        return absent

    def steps(self) -> Iterator[Step]:
        """Yield the steps, loads before what is rearranged."""
        for (rank, name, lot), (group, spans) in self._spans.items():
            parts = spans if group.shape is Shape.POINT else merge(spans)
            for span in parts:
                moved = group.bytes_for(span)
                if lot.tier is not Tier.DEVICE:
                    yield Step(Means.LOAD_BACK, (name,), span, lot.tier, moved, rank=rank)
                if lot.repack:
                    yield Step(Means.REPACK, (name,), span, Tier.DEVICE, moved, rank=rank)


def _means(held: Held, absent: tuple[Span, ...], policy: Policy) -> Means | None:
    """Return how the parts that no copy has are made again, or nothing if they cannot be."""
    if held.group.shape is Shape.PREFIX and all(covered(s, held.refolded) for s in absent):
        return Means.REFOLD
    if held.group.role is not Role.REBUILDABLE:
        return None
    if held.group.state is INDEXER:
        return Means.REBUILD_INDEX
    return Means.REPLAY if policy.replay else None


def _made(means: Means, group: CacheGroup, span: Span, rank: int) -> Step:
    return Step(means, (group.name,), span, moved_bytes=group.bytes_for(span), rank=rank)


def _replay(
    geometry: Geometry,
    holdings: Holdings,
    policy: Policy,
    first_row: int,
    resume: int,
) -> tuple[int, list[tuple[int, Held]], bool]:
    """Return where to start computing tokens again so that every row from ``first_row`` is there.

    Either where every window is still served, or so far back that the rows that are wrong for
    want of a window do not reach ``first_row``; or, approximately, one window back. With it come
    the groups that are read there, and whether the rows are exact.
    """
    every = [(rank, held) for rank, of in enumerate(holdings) for held in of.values()]
    rooted = [(r, h) for r, h in every if h.group.shape in (Shape.CHUNK, Shape.POINT)]
    served = [*rooted, *((r, h) for r, h in every if h.group.shape is Shape.RUN)]
    window, layers = geometry.widest_window, geometry.window_layers
    warm = _largest(served, first_row)
    cold = _largest(rooted, replay_start(first_row, window, max(layers, 1)))
    start, read, exact = (warm, served, True) if warm >= cold else (cold, rooted, True)
    if policy.approximate:
        short = _largest(rooted, min(first_row, max(resume - window, 0)))
        if short > start:
            return short, rooted, False
    return start, read, exact


def _largest(read: list[tuple[int, Held]], limit: int) -> int:
    return descend([partial(h.copy_points.largest, step=1) for _, h in read], limit)


def _order(step: Step) -> tuple[int, int]:
    return list(Means).index(step.means), step.rank
