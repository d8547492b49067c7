"""Sequences: what one request has written behind the prefix that it leases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fivestate.impl.chain import Node
from fivestate.impl.keys import Prompt
from fivestate.impl.leases import prefix_blocks
from fivestate.impl.pools import Owner
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
        prompt: its tokens, as far as they are known.
        request: the allocator's record of it.
        longest: the most tokens it may come to have.
        written: tokens that have rows, or are about to.
        verified: tokens that are accepted.
        published: the node up to whose end its tokens are known.
        tables: by group, its private blocks; nothing before it has some.
        room: up to where every table has blocks.
        of: the label of its class.
        owned: nobody else has its prompt.
        forks: who still reads its blocks, instead of copies.
        source: whose blocks it still reads, instead of copies.
        since: when it was admitted.
        ends: the nodes that it published.
        prefix: by group, the first number and the ids of the blocks that it leases, once asked.
    """

    __slots__ = (
        "ends",
        "forks",
        "longest",
        "of",
        "owned",
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
        self.prompt, self.request, self.published = prompt, request, node
        self.longest, self.of = longest, of
        self.written = self.verified = node.end_tokens
        self.tables: dict[str, Table] = {}
        self.room = 0
        self.owned = False
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
        for group in geometry.groups:
            spare = self.request.private.get(group.name)
            ids = [] if spare is None else spare.tolist()
            self.tables[group.name] = Table(group, self.base // group.block_size, ids)

    def block_tables(self, geometry: Geometry) -> dict[str, tuple[int, list[int]]]:
        """Return, by group, the number of the first block, and the ids from there on."""
        if not self.prefix:
            path = self.request.target.path()
            for group in geometry.voting:
                if not (self.request.slid and group.state is WINDOW):
                    first, ids = prefix_blocks(group, path)
                    self.prefix[group.name] = first, ids.tolist()
        tables: dict[str, tuple[int, list[int]]] = {}
        for name, table in (self.source or self).tables.items():
            shared = self.prefix.get(name)
            if shared is None or shared[0] + len(shared[1]) != table.first:
                tables[name] = table.first, table.ids[:]
            else:
                tables[name] = shared[0], shared[1] + table.ids
        return tables

    def own_prompt(self) -> Prompt:
        """Return its tokens, to be changed: what was asked for stays as it was asked."""
        if not self.owned:
            self.prompt, self.owned = self.prompt.copy(), True
        return self.prompt

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
        """Have blocks for the next tokens; if there are no spare ones, those that nobody reads.

        Behind drafts that are not verified yet, every token is a draft.

        Returns:
            Whether the accepted tokens have passed a boundary.
        """
        verified, settled = self.verified, self.verified == self.written
        self.written += count
        if self.written > self.room:
            self._grow(step_tokens)
        if settled:
            self.verified = self.written - drafts
        return self.verified // step_tokens > verified // step_tokens

    def _grow(self, step_tokens: int) -> None:
        written, room = self.written, self.longest
        for table in self.tables.values():
            if written > table.limit:
                lacks = table.lacks(written)
                if lacks > len(table.spare):
                    kept = kept_from(table.group, self.base, self.verified, step_tokens)
                    table.drop(kept)
                table.grow(lacks)
            room = min(room, table.limit)
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
        other = Sequence(self.prompt.copy(), request, request.target, longest, self.of)
        other.written, other.verified, other.published = self.written, self.verified, self.published
        other.owned, other.source = True, self
        self.forks.append(other)
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
            more = allocator.pools[name].take(count, Owner.PRIVATE)
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
