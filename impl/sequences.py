"""Sequences: what one request has written behind the prefix that it leases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fivestate.impl.chain import Node
from fivestate.impl.keys import Prompt
from fivestate.impl.leases import prefix_blocks
from fivestate.impl.pools import NO_BLOCKS, PRIVATE
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.impl.tables import Table, kept_from, private_demand
from fivestate.spec.need import blocks
from fivestate.spec.reuse import CacheGroup, Geometry
from fivestate.spec.vocabulary import WINDOW

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator


class Sequence:
    """The tokens of one request, and its private blocks.

    Attributes:
        prompt: its tokens, as far as they are known; what was asked stays as it was asked.
        asked: tokens of the prompt as it arrived.
        request: the allocator's record of it.
        longest: the most tokens it may come to have.
        written: tokens that have rows, or are about to.
        verified: tokens that are accepted.
        published: the node up to whose end its tokens are known.
        tables: by group, its private blocks; nothing before it has some.
        room: up to where every table has blocks.
        of: the label of its class.
        calm: up to where a verified token needs no more than room: nothing is copied, let go or
            refused on the way.
        forks: who still reads its blocks, instead of copies.
        source: whose blocks it still reads, instead of copies.
        since: when it was admitted.
        ends: the nodes that it published.
        prefix: by group, the first number and the ids of the blocks that it leases, once asked.
    """

    __slots__ = (
        "asked",
        "calm",
        "ends",
        "forks",
        "longest",
        "of",
        "prefix",
        "prompt",
        "published",
        "request",
        "room",
        "since",
        "source",
        "tables",
        "verified",
        "written",
    )

    def __init__(self, prompt: Prompt, request: Request, node: Node, longest: int, of: str) -> None:
        self.prompt, self.request, self.published = prompt.copy(), request, node
        self.asked = len(prompt)
        self.longest, self.of = longest, of
        self.written = self.verified = node.end_tokens
        self.tables: dict[str, Table] = {}
        self.room = self.calm = 0
        self.forks: list[Sequence] = []
        self.source: Sequence | None = None
        self.since = 0.0
        self.ends: list[Node] = []
        self.prefix: dict[str, tuple[int, list[int]]] = {}

    @property
    def base(self) -> int:
        """Where the prefix ends that it leases."""
        return self.request.target.end_tokens

    def open(self, geometry: Geometry) -> None:
        """Have tables for the private blocks that the request has by now."""
        base, private = self.base, self.request.private
        for group in geometry.groups:
            ids: list[int] = private.get(group.name, NO_BLOCKS).tolist()
            self.tables[group.name] = Table(group, base // group.block_size, ids)

    def block_tables(self, geometry: Geometry) -> dict[str, tuple[int, list[int]]]:
        """Return, by group, the number of the first block, and the ids from there on."""
        if not self.prefix:
            path, slid = self.request.target.path(), self.request.slid
            for group in geometry.voting:
                if not (slid and group.state is WINDOW):
                    first, parts = prefix_blocks(group, path)
                    ids = [block for part in parts for block in part.tolist()]
                    self.prefix[group.name] = first, ids
        tables: dict[str, tuple[int, list[int]]] = {}
        for name, table in (self.source or self).tables.items():
            shared = self.prefix.get(name)
            if shared is None or shared[0] + len(shared[1]) != table.first:
                tables[name] = table.first, table.ids[:]
            else:
                tables[name] = shared[0], shared[1] + table.ids
        return tables

    def require_room(self, count: int, in_flight_tokens: int) -> None:
        """Refuse tokens that were not reckoned with when the request was admitted.

        Raises:
            Refused: it would have more tokens than was said, or too many of them unverified.
        """
        written = self.written + count
        if written > self.longest:
            given = {"written": self.written, "tokens": count, "longest": self.longest}
            raise Refused("A-1", "write", "fits", given)
        if written - self.verified > in_flight_tokens:
            given = {"written": written, "verified": self.verified, "allowed": in_flight_tokens}
            raise Refused("A-1", "write", "in_flight", given)

    def write(self, count: int, drafts: int, step_tokens: int) -> bool:
        """Have blocks for the next tokens.

        Behind drafts that are not verified yet, every token is a draft.

        Returns:
            Whether the accepted tokens have passed a boundary.
        """
        verified, settled = self.verified, self.verified == self.written
        self.written = written = self.written + count
        self.calm = 0
        if written > self.room:
            self.grow(written, step_tokens)
        if settled:
            self.verified = written - drafts
        return self.verified // step_tokens > verified // step_tokens

    def reckon(self, step_tokens: int, in_flight_tokens: int) -> None:
        """Reckon how far it is calm behind a prompt that is filled and its own."""
        if self.verified == self.written:
            inside = self.written % step_tokens
            farthest = min(step_tokens - 1 - inside, in_flight_tokens)
            self.calm = min(self.written + farthest, self.longest)

    def grow(self, written: int, step_tokens: int) -> None:
        """Have blocks for so many tokens; if there are no spare ones, those that nobody reads."""
        room = self.longest
        for table in self.tables.values():
            limit = table.limit
            if written > limit:
                size, spare = table.size, table.spare
                lacks = (written - limit + size - 1) // size
                if lacks > len(spare):
                    kept = kept_from(table.group, self.base, self.verified, step_tokens)
                    table.drop(kept)
                if lacks == 1:
                    table.ids.append(spare.pop())
                    table.limit = limit = limit + size
                else:
                    table.grow(lacks)
                    limit = table.limit
            if limit < room:  # noqa: PLR1730 -- min() takes three times as long
                room = limit
        self.room = room

    def trim(self, step_tokens: int) -> None:
        """Give back to itself all blocks that nobody reads."""
        for table in self.tables.values():
            table.drop(kept_from(table.group, self.base, self.verified, step_tokens))

    def past(self, windows: Iterable[CacheGroup], step_tokens: int) -> bool:
        """Say whether nothing reads these windows of the leased prefix any more."""
        base, verified = self.base, self.verified
        return all(kept_from(group, base, verified, step_tokens) >= base for group in windows)

    def forked(self, request: Request, longest: int) -> Sequence:
        """Return a sequence that goes on from here, and reads these blocks until one writes."""
        other = Sequence(self.prompt, request, request.target, longest, self.of)
        other.written, other.verified, other.published = self.written, self.verified, self.published
        other.asked, other.source = self.asked, self
        self.forks.append(other)
        self.calm = 0
        return other

    def roll_back(self) -> None:
        """Give up the drafts, and the blocks that only they had rows in; there are some."""
        self.written = self.verified
        self.prompt.truncate(self.verified)
        for table in self.tables.values():
            table.cut(self.written)
        self.room = self.written

    def demand(self, longest: int, in_flight_tokens: int) -> dict[str, int]:
        """Return, by group, the blocks of its own that who goes on from here needs at most."""
        return {
            name: private_demand(table.group, table.first * table.size, longest, in_flight_tokens)
            for name, table in self.tables.items()
        }

    def lacks(self, end: int, in_flight_tokens: int, moved: dict[str, int]) -> dict[str, int]:
        """Return, by group, the blocks that it needs more once some have become a node's."""
        lacking: dict[str, int] = {}
        for name, table in self.tables.items():
            has = len(table.ids) + len(table.spare) - moved.get(name, 0)
            if has < blocks(self.longest - end, table.size):
                demand = private_demand(table.group, end, self.longest, in_flight_tokens)
                if demand > has:
                    lacking[name] = demand - has
        return lacking

    def take(self, allocator: Allocator, lacking: dict[str, int]) -> None:
        """Claim more private blocks; there are free ones enough."""
        for name, count in lacking.items():
            more = allocator.pools[name].take(count, PRIVATE)
            self.request.private[name] = np.concatenate([self.request.private[name], more])
            self.tables[name].spare += more.tolist()

    def settle(self, allocator: Allocator) -> None:
        """Copy, for whoever went on from here, the rows that both still read (写时复制)."""
        for fork in self.forks:
            for name, table in self.tables.items():
                own = fork.tables[name]
                own.first, own.limit = table.first, table.first * table.size
                if table.ids:
                    own.grow(len(table.ids))
                    storage = allocator.pools[name].storage
                    storage[own.ids] = storage[table.ids]
            fork.source = None
            fork.room = fork.written
        self.forks.clear()
