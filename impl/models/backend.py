"""Backends: where a prefix cache has its rows, and what it asks of that place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from fivestate.impl.models.parts import Part, RecordedCache, Stamp
from fivestate.impl.models.provenance import Node, Provenance, next_run
from fivestate.impl.refusals import Refused
from fivestate.spec.need import round_down, round_up
from fivestate.spec.reuse import CacheGroup, Kind, Plan, Reason, Shape, Span, Verdict

Why = Reason | Refused
"""Why something was not kept: what the theory says of the rows, or a guard of the allocator."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a prompt goes on from.

    Attributes:
        verdict: what its prefix was worth.
        provenance: of the rows, up to where it goes on; empty for a miss.
        run: digest of the provenance.
        parts: an own copy of what a resume there needs.
    """

    verdict: Verdict
    provenance: Provenance = field(default_factory=Provenance)
    run: str = ""
    parts: Mapping[str, Part] = field(default_factory=dict[str, Part])


@dataclass(frozen=True, slots=True)
class Written:
    """What a request has written behind what it went on from.

    Attributes:
        tokens: all its tokens that have rows.
        provenance: of all of them.
        resume: where it went on.
        run: digest of the provenance up to there.
        by: weights and kernels that made what is new.
        cache: has the rows.
    """

    tokens: tuple[int, ...]
    provenance: Provenance
    resume: int
    run: str
    by: Stamp
    cache: RecordedCache

    def node(self, parent: bytes, start: int, end: int, run: str) -> Node:
        """Return the place of one block, behind one whose run is given."""
        chunks = self.provenance.cut(end).own(start)
        return Node(parent, end, chunks, next_run(run, chunks))


Kept = tuple[tuple[int, ...], tuple[Why, ...]]
"""The positions that can be resumed thanks to what was kept, and why it was no more."""


class Backend(Protocol):
    """Keeps rows; called under the prefix cache's lock.

    ``now`` has the weights and the kernels of the model as it is: rows of others are not reused.
    """

    def match(self, prompt: tuple[int, ...], now: Stamp) -> Verdict:
        """Say what the prefix of a prompt is worth."""
        ...

    def take(self, prompt: tuple[int, ...], now: Stamp) -> Taken:
        """Return what a prompt goes on from, brought to the device if need be."""
        ...

    def keep(self, written: Written) -> Kept:
        """Keep what was written, in whole blocks."""
        ...

    def settle(self) -> None:
        """Wait until what was kept is where it outlives the process, if there is such a place."""
        ...

    def close(self) -> None:
        """Settle, and give back what is open; a second time does nothing."""
        ...


def resumed_at(verdict: Verdict, plan: Plan) -> Verdict:
    """Return a verdict as it is when no more can be resumed than a plan says."""
    if plan.resume == verdict.plan.resume:
        return verdict
    kind, numbers = Kind.PARTIAL if plan.resume else Kind.MISS, verdict.numbers
    return replace(verdict, kind=kind, plan=plan, numbers=replace(numbers, used=plan.resume))


def kept_span(group: CacheGroup, start: int, end: int) -> Span:
    """Return the tokens of a group that are kept for a block: whole pages, all a resume needs."""
    need = group.need(end)
    if group.shape is Shape.PREFIX:
        return Span(start, end)
    if not need.tokens:
        return need
    return Span(round_down(need.start, group.block_size), round_up(end, group.block_size))


def block_ends(start: int, end: int, step: int) -> Iterator[int]:
    """Yield the ends of the whole blocks behind ``start``, a multiple of the step."""
    yield from range(start + step, end + 1, step)
