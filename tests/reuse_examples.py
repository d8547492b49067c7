"""Random geometries, and what exists of a prefix in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st

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
    Verdict,
)
from fivestate.spec.reuse import classify as classify_prefix
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

LONGEST_TOKENS = 24
RATES = Rates(10**9, 10**7, 10**9, 10**6)
"""One, one hundred and one nanoseconds a byte, a thousand a token: every division is exact."""


class Part(NamedTuple):
    """One group on one rank."""

    rank: int
    group: CacheGroup
    copies: tuple[Extent, ...]


@dataclass(frozen=True)
class Example:
    """A geometry, what exists of a prefix, and what is asked of it."""

    geometry: Geometry
    asked: Asked
    ranks: tuple[dict[str, tuple[Extent, ...]], ...]
    policy: Policy

    @property
    def parts(self) -> list[Part]:
        """Every group on every rank."""
        return [
            Part(rank, group, copies[group.name])
            for rank, copies in enumerate(self.ranks)
            for group in self.geometry.groups
        ]

    def classify(self) -> Verdict:
        """Return the verdict of the specification."""
        available = Availability(self.ranks)
        return classify_prefix(self.geometry, self.asked, available, policy=self.policy)


SPANS = st.lists(
    st.tuples(
        st.integers(0, LONGEST_TOKENS),
        st.integers(1, 16),
        st.booleans(),
        st.sampled_from(Tier),
    ),
    max_size=3,
)
"""Where copies start, how long they are, whether they start at 0 instead, and their tier."""

ROLES = st.sampled_from((Role.REQUIRED, Role.REBUILDABLE))
RATIOS = st.sampled_from((1, 2, 4))
LOOKBACKS = st.sampled_from((0, 0, 1, 3))
BEHIND = st.sampled_from((0, 1, 5))
RANKS = st.sampled_from((1, 1, 1, 2))
EITHER = st.booleans()


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """Draw a small geometry with up to four groups, and copies of any kind."""

    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    ratio = draw(RATIOS)
    layers = number(1, 3)
    folded = CacheGroup(
        name="entries",
        state=COMPRESSED,
        block_size=ratio * number(1, 2),
        ratio=ratio,
        layers=layers,
        bytes_per_entry=number(1, 3),
    )
    chosen = [folded]
    if draw(EITHER):
        chosen.append(
            CacheGroup(
                name="tail",
                state=TAIL,
                block_size=number(1, 2),
                ratio=ratio,
                lookback=ratio if draw(EITHER) else 0,
                role=draw(ROLES),
            )
        )
    if draw(EITHER):
        size = folded.block_size
        chosen.append(
            CacheGroup(name="index", state=INDEXER, block_size=size, ratio=ratio, role=draw(ROLES))
        )
    if draw(EITHER):
        chosen.append(
            CacheGroup(
                name="window",
                state=WINDOW,
                block_size=number(1, 3),
                window=number(1, 6),
                layers=layers,
                role=draw(ROLES),
                chunked=draw(EITHER),
            )
        )
    if number(0, 3) == 0:
        chosen.append(
            CacheGroup(name="state", state=COMPRESSED, block_size=number(1, 3), recurrent=True)
        )
    shape = Geometry("drawn", tuple(chosen), draft_lookback=draw(LOOKBACKS))
    fork = number(0, LONGEST_TOKENS)
    asked = Asked(fork, max(fork + draw(BEHIND), 1))
    ranks = tuple(
        {
            group.name: tuple(
                Extent(Span(0 if whole or group.recurrent else start, start + more), tier)
                for start, more, whole, tier in draw(SPANS)
            )
            for group in chosen
        }
        for _ in range(draw(RANKS))
    )
    policy = Policy(RATES, replay=draw(EITHER), approximate=draw(EITHER))
    return Example(shape, asked, ranks, policy)
