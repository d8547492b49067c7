"""Admission: how a prompt comes to hold its prefix, and the blocks that it will need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fivestate.impl.chain import Node
from fivestate.impl.index import Found, Index
from fivestate.impl.keys import Prompt
from fivestate.impl.matching import Match, Matcher
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.impl.sequences import Sequence
from fivestate.impl.tables import private_demand
from fivestate.spec.reuse import Plan
from fivestate.spec.vocabulary import Phase

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator


@dataclass(eq=False, slots=True)
class Waiting:
    """A request that waits for its turn: it has a place in the queue, and holds nothing.

    Attributes:
        match: what its prefix was worth when it arrived.
        node: the node at whose end it wants to resume.
        sequence: its record.
        plan: what has to be done first.
    """

    match: Match
    node: Node
    sequence: Sequence
    plan: Plan


class Admission:
    """The way of a prompt from its digests to a lease; who calls it holds the allocator's lock."""

    def __init__(
        self, allocator: Allocator, index: Index, matcher: Matcher, held_tokens: int
    ) -> None:
        self._allocator, self._index, self._matcher = allocator, index, matcher
        self._groups = allocator.settings.geometry.groups
        self._held = held_tokens
        self._weights = allocator.weights
        self._names = 0

    def look(self, prompt: Prompt) -> Match:
        """Say what a prompt's prefix is worth now."""
        return self._match(prompt, self._find(prompt))

    def arrive(self, match: Match, new_tokens: int, name: str, of: str) -> Waiting:
        """Queue for the prefix of a match, as it is by now.

        Raises:
            ValueError: the request would need more than there is.
        """
        match, node, plan = self._resumable(match)
        longest = len(match.prompt) + new_tokens
        demand = {
            group.name: private_demand(group, plan.resume, longest, self._held)
            for group in self._groups
        }
        request = self.new_request(name, demand)
        self._allocator.arrive(request, node)
        return Waiting(match, node, Sequence(match.prompt, request, node, longest, of), plan)

    def new_request(self, name: str, demand: dict[str, int]) -> Request:
        """Return a new request.

        Raises:
            ValueError: it would need more than there is.
        """
        self._names += 1
        try:
            return self._allocator.new_request(name or f"request {self._names}", **demand)
        except ValueError:
            for group, count in demand.items():
                if count > (has := self._allocator.pools[group].num_blocks):
                    needs = f"needs {count} blocks of {group}, and its pool has {has}"
                    shown = f"the prompt with new_tokens {needs}"
                    raise ValueError(f"{shown}: it can never be admitted") from None
            raise

    def claim(self, waiting: Waiting) -> None:
        """Lease or admit who waits, if it is its turn, and there is room or room can be made.

        Raises:
            Refused: it is not, or there is none; or what it wanted has gone meanwhile.
        """
        request, allocator = waiting.sequence.request, self._allocator
        if request.waiting and not allocator.fresh(request):
            self._look_again(waiting)
        try:
            self._claim(request, waiting.node)
        except Refused as refusal:
            if refusal.guard != "room" or not allocator.relieve(request):
                raise
            self._claim(request, waiting.node)

    def _claim(self, request: Request, node: Node) -> None:
        if request.phase is Phase.HIT:
            self._allocator.lease(request)
        else:
            self._allocator.admit(request, node)

    def _look_again(self, waiting: Waiting) -> None:
        """Find out what is left of what somebody waits for.

        Raises:
            Refused: there is no way any more; the prompt has to be matched again.
        """
        request, node, match = waiting.sequence.request, waiting.node, waiting.match
        phase = self._allocator.reclassify(request, node)
        target = min(match.found.tokens, match.length - 1)
        plan = None if phase is Phase.MISS else self._matcher.plan_at(node, target)
        if plan is None:
            raise Refused("A-12", "lease", "fresh", {"node": node, "phase": phase})
        waiting.plan = plan

    def _find(self, prompt: Prompt) -> Found:
        if self._weights != self._allocator.weights:
            self._weights = self._allocator.weights
            self._index.clear()
        return self._index.find(prompt)

    def _match(self, prompt: Prompt, found: Found) -> Match:
        length = len(prompt)
        verdict = self._matcher.verdict(found, length)
        return Match(prompt, verdict, found, length, self._allocator.losses(found.node))

    def _resumable(self, match: Match) -> tuple[Match, Node, Plan]:
        """Return where a prompt can be resumed now, as the match said or as it is by now."""
        prompt = match.prompt
        if not match.stands(self._allocator.losses(match.found.node)):
            match = self.look(prompt)
        found, plan = match.found, match.verdict.plan
        node, resume = found.node, plan.resume
        while node.start_tokens >= resume and node.parent is not None:
            node = node.parent
        if node.end_tokens == resume:
            return match, node, plan
        if self._allocator.can_split(node, resume):
            return match, self._allocator.split(node, resume), plan
        target = min(found.tokens, len(prompt) - 1)
        less: Plan | None = None
        while less is None and node.parent is not None:
            node = node.parent
            less = self._matcher.plan_at(node, target)
        assert less is not None  # noqa: S101 -- at the root nothing is needed
        return match, node, less
