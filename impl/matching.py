"""Matching: the verdict of the specification, by a short way where nothing is in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fivestate.impl.availability import availability, consumer
from fivestate.impl.chain import Node
from fivestate.impl.index import Found
from fivestate.impl.keys import Prompt
from fivestate.spec.need import round_down
from fivestate.spec.reuse import (
    Asked,
    Availability,
    Cost,
    Identity,
    Kind,
    Means,
    Numbers,
    Plan,
    Policy,
    Reason,
    Shape,
    Span,
    Step,
    Verdict,
    classify,
)
from fivestate.spec.reuse.checks import whole_block
from fivestate.spec.reuse.cost import token_time
from fivestate.spec.reuse.holdings import hold
from fivestate.spec.reuse.recovery import Holdings, plan_at
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Device

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator

ANY = Identity()
"""Who asks: adapter, salt and images are in the digests."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a prompt's prefix was worth when it was looked at; volatile, for nothing is held.

    Attributes:
        prompt: the prompt.
        verdict: what ``classify`` says of it; plans that were beaten are given where they were
            looked for.
        found: how far its hash is known.
        length: tokens that the prompt had.
        losses: how often something of the known part had been lost.
    """

    prompt: Prompt
    verdict: Verdict
    found: Found
    length: int
    losses: int

    def stands(self, losses: int) -> bool:
        """Say whether what could be used as it stood still can: then the plan is the best still."""
        if losses != self.losses or len(self.prompt) != self.length:
            return False
        return all(step.means is Means.RECOMPUTE for step in self.verdict.plan.steps)

    @property
    def kind(self) -> Kind:
        """MISS, PARTIAL or HIT."""
        return self.verdict.kind

    @property
    def resume(self) -> int:
        """The position to resume at; 0 for a miss."""
        return self.verdict.plan.resume

    @property
    def plan(self) -> Plan:
        """Where to resume, what to do first, and the cost."""
        return self.verdict.plan

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What stands in the way of more."""
        return self.verdict.reasons

    @property
    def numbers(self) -> Numbers:
        """The four numbers, in tokens."""
        return self.verdict.numbers


class Matcher:
    """Says what a prefix is worth: nobody else does.

    What it says is what ``classify`` says of the same availability. Where all cells of the prefix
    are complete and fit, that follows without asking: what can be used as it stands up to where
    whole blocks end costs nothing but the tokens behind it, and nothing costs less.
    """

    def __init__(self, allocator: Allocator, policy: Policy) -> None:
        self.allocator, self.policy = allocator, policy
        geometry = allocator.settings.geometry
        self._geometry, self._step = geometry, geometry.scheduler_block_size
        self._prefixes = all(group.shape is Shape.PREFIX for group in geometry.voting)
        self._every = tuple(group.name for group in geometry.groups)

    def verdict(self, found: Found, length: int) -> Verdict:
        """Return the verdict on a prompt of ``length`` tokens, known as far as was found."""
        asked = Asked(found.tokens, length, ANY)
        return self._short(found, asked) or self.in_full(found, asked)

    def in_full(self, found: Found, asked: Asked) -> Verdict:
        """Return what ``classify`` says, plans that were beaten included."""
        available = self.available(found)
        reader = consumer(self.allocator, available)
        return classify(self._geometry, asked, available, reader, self.policy)

    def available(self, found: Found) -> Availability:
        """Return what there is of a prompt's known part."""
        if not found.tokens:
            return Availability((), known=False)
        return availability(self.allocator, found.node, found.blocks * self._step)

    def holdings(self, node: Node) -> Holdings:
        """Return what there is of the whole prefix of a node, sorted by what it takes to use it."""
        available = availability(self.allocator, node, node.end_tokens)
        reader = consumer(self.allocator, available)
        return tuple(hold(self._geometry, copies, reader) for copies in available.ranks)

    def plan_at(self, node: Node, target: int) -> Plan | None:
        """Return how to resume at the end of a node, if there is a way."""
        if node.parent is None:
            return plan_at(self._geometry, (), self.policy, 0, target)
        holdings = self.holdings(node)
        return plan_at(self._geometry, holdings, self.policy, node.end_tokens, target)

    def _short(self, found: Found, asked: Asked) -> Verdict | None:
        """Return the verdict where it follows without a search, or nothing."""
        limit, reasons = whole_block(self._geometry, asked)
        rates, target = self.policy.rates, asked.target
        gained = token_time(target - limit, rates) < token_time(target, rates)
        if not limit or not gained or not self._stands(found.node, limit):
            return None
        plan = self._as_it_stands(limit, target)
        matched = round_down(asked.fork, self._geometry.hash_block_size)
        numbers = Numbers(asked.tokens, matched, limit, limit, limit)
        return Verdict(Kind.PARTIAL if plan.steps else Kind.HIT, plan, reasons, numbers)

    def _as_it_stands(self, resume: int, target: int) -> Plan:
        """Return what ``plan_at`` says where all that a resume needs can be read as it is."""
        tokens = target - resume
        if not tokens:
            return Plan(resume, (), Cost())
        step = Step(Means.RECOMPUTE, self._every, Span(resume, target), tokens=tokens)
        cost = Cost(token_time(tokens, self.policy.rates), recompute_tokens=tokens)
        return Plan(resume, (step,), cost)

    def _stands(self, node: Node, limit: int) -> bool:
        """Say whether all that is there fits, and is all that a resume at ``limit`` needs."""
        layout, at, ready = self.allocator.layout, node, Device.READY
        ends_here: Node | None = None
        while at.parent is not None:
            for cell in at.cells.values():
                if cell.device is ready:
                    if cell.layout != layout or cell.offset_bytes:
                        return False
                elif cell.state is COMPRESSED:
                    return False
                copy, disk = cell.copy, cell.disk
                if copy is not None and copy.layout != layout:
                    return False
                if disk is not None and disk.layout != layout:
                    return False
            index = at.cells.get(INDEXER)
            if index is not None:
                if index.device is not ready:
                    if at.start_tokens < limit:
                        return False
                elif index.generation != at.entries_generation:
                    return False
            if at.end_tokens == limit:
                ends_here = at
            at = at.parent
        if ends_here is None:
            return self._prefixes
        for cell in self.allocator.need(ends_here):  # noqa: SIM110 -- twice as fast as all()
            if cell.device is not ready:
                return False
        return True
