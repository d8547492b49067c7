"""Rows by block: in the pools of the reference allocator, leased while they are copied.

A request holds its prefix only while rows are copied out, and writes its own into private blocks
only when it commits; in between they are in its own cache. So nothing here has to be released.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fivestate.impl.allocator import Settings
from fivestate.impl.cache import Cache
from fivestate.impl.chain import Node as Segment
from fivestate.impl.keys import Prompt
from fivestate.impl.leases import Lease
from fivestate.impl.matching import Match
from fivestate.impl.models.backend import Kept, Taken, Written, block_ends
from fivestate.impl.models.layout import Layout
from fivestate.impl.models.load_back import load_back
from fivestate.impl.models.pages import from_pages, to_pages
from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.models.runs import Known, Node, known_blocks
from fivestate.impl.refusals import Refused
from fivestate.impl.retention import Retention
from fivestate.spec.need import blocks, round_down
from fivestate.spec.reuse import (
    CacheGroup,
    Cost,
    Kind,
    Plan,
    Reason,
    Span,
    Verdict,
    Why,
)
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Copy, Device

Table = tuple[int, list[int]]
"""The number of a group's first block, and the ids from there on."""

TRIES = 4
"""How often a prompt is matched again because a copy did not check; then it is computed."""


def cache_for(layout: Layout, tokens: int, **settings: Any) -> Cache:
    """Return a cache of the reference allocator for one model.

    Every scheduler block ends a node, so that each can be resumed.

    Args:
        layout: of the model.
        tokens: for how many tokens each pool has room.
        settings: of ``Settings``, all but the geometry: slots, tiers, other pool sizes, or other
            states that are stored than all.
    """
    geometry = layout.geometry
    states = frozenset(group.state for group in geometry.groups)
    sizes = {group.name: blocks(tokens, group.block_size) for group in geometry.groups}
    return Cache(
        Settings(**{"geometry": geometry, "num_blocks": sizes, "storable": states, **settings}),
        retention=Retention(Keep.FULL),
        in_flight_tokens=geometry.scheduler_block_size,
    )


class ByBlock:
    """Rows of one layout, in one cache that nobody else writes to.

    Attributes:
        runs: of each block that was kept, by digest, how it was made: a small record for each.
            Rows whose making is not known are not reused, so who starts again from copies on disk
            starts with these too, and a mapping that forgets costs reuse and nothing else.
    """

    def __init__(
        self,
        layout: Layout,
        cache: Cache,
        salt: str = "",
        runs: MutableMapping[bytes, Node] | None = None,
    ) -> None:
        if cache.geometry != layout.geometry:
            message = f"store: a cache of geometry {cache.geometry.name!r} with other groups"
            raise ValueError(f"{message}: layout_of(model.config).geometry is allowed")
        if cache.retention.keep is not Keep.FULL:
            message = f"store: retention {cache.retention.keep.name}"
            raise ValueError(f"{message}: FULL is allowed: each block is a node by itself")
        for group in cache.geometry.groups:
            wanted = group.layers * group.page_size_bytes
            if cache.allocator.pools[group.name].page_bytes != wanted:
                raise ValueError(f"store: pool {group.name!r}: pages of {wanted} bytes are allowed")
        self.runs = {} if runs is None else runs
        self._layout, self._cache, self._salt = layout, cache, salt
        self._groups = layout.geometry.groups
        self._step = layout.geometry.scheduler_block_size
        self._weights: int | None = None

    def match(self, prompt: tuple[int, ...], weights: int) -> Verdict:
        """Say what the prefix of a prompt is worth."""
        self._follow(weights)
        return self._match(prompt)[0].verdict

    def take(self, prompt: tuple[int, ...], weights: int) -> Taken:
        """Return what a prompt goes on from.

        Raises:
            Refused: there is no slot or no room to hold it while it is copied.
        """
        self._follow(weights)
        match, known = self._match(prompt)
        for _ in range(TRIES):
            if not match.resume:
                return Taken(match.verdict)
            reading = self._cache.match(self._prompt(prompt[: match.resume + 1]))
            with self._cache.lease(reading) as lease:
                stuck = load_back(self._cache, lease)
                if lease.resume == match.resume and not lease.recovering:
                    _, node, provenance = known[lease.resume // self._step - 1]
                    stamp = Stamp(weights, node.run)
                    tables = self._cache.blocks(lease)
                    parts = {
                        group.name: self._read(group, tables[group.name], lease.resume, stamp)
                        for group in self._groups
                    }
                    return Taken(match.verdict, provenance, node.run, parts)
            for task in stuck:  # a stale index: with it gone, its copy can be loaded back
                with suppress(Refused):
                    self._cache.allocator.evict(task.node, task.state)
            match, known = self._match(prompt)
        scratch = Plan(0, (), Cost(recompute_tokens=len(prompt)))
        numbers = replace(match.numbers, used=0)
        return Taken(replace(match.verdict, kind=Kind.MISS, plan=scratch, numbers=numbers))

    def keep(self, written: Written) -> Kept:
        """Keep every whole block behind the resume point.

        What there is of the same tokens from another run is evicted first, or nothing is kept.
        """
        self._follow(written.weights)
        end = self._end(written.tokens)
        digests = self._prompt(written.tokens[:end]).digests()
        at, run = written.resume, written.run
        before = self.runs.get(digests[at // self._step - 1]) if at else None
        if at and (before is None or before.run != run):
            value = f"run {run[:8]}≠{before.run[:8] if before else 'none'}"
            return (), (Reason("H-0", Why.IDENTITY, value),)
        nodes: dict[int, Node] = {}
        for stop in block_ends(at, end, self._step):
            parent = digests[stop // self._step - 2] if stop > self._step else b""
            nodes[stop] = written.node(parent, stop - self._step, stop, run)
            run = nodes[stop].run
        return self._keep(written, nodes, digests)

    def _keep(self, written: Written, nodes: dict[int, Node], digests: list[bytes]) -> Kept:
        """Keep the blocks that are not there yet, each behind a lease of the ones before it."""
        made: list[int] = []
        ours = self._ours(written, nodes, digests)
        try:
            self._forget(written.tokens, ours, digests)
            for stop in block_ends(ours, max(nodes, default=0), self._step):
                match = self._cache.match(self._prompt(written.tokens[:stop]))
                with self._cache.lease(match) as lease:
                    if not self._add(lease, written, stop):
                        return tuple(made), match.reasons
                self.runs[digests[stop // self._step - 1]] = nodes[stop]
                made.append(stop)
        except Refused as refusal:
            return tuple(made), (refusal,)
        return tuple(made), ()

    def _add(self, lease: Lease, written: Written, stop: int) -> bool:
        """Write one block behind a lease, and commit it; say whether it is known now."""
        start = stop - self._step
        load_back(self._cache, lease)
        if lease.recovering or lease.resume != start:
            return False
        self._cache.fill(lease, self._step)
        tables = self._cache.blocks(lease)
        for group in self._groups:
            self._write(group, tables[group.name], written, Span(start, stop))
        return self._cache.commit(lease) >= stop

    def _ours(self, written: Written, nodes: dict[int, Node], digests: list[bytes]) -> int:
        """Return up to where this very run is kept already."""
        seen = self._cache.match(self._prompt(written.tokens)).found.blocks * self._step
        at = written.resume
        while (stop := at + self._step) <= seen and stop in nodes:
            if self.runs.get(digests[stop // self._step - 1]) != nodes[stop]:
                break
            at = stop
        return at

    def _match(self, prompt: tuple[int, ...]) -> tuple[Match, Known]:
        """Match a prompt as far as it is known how its rows were made."""
        asked = self._prompt(prompt)
        match, known = self._cache.match(asked), known_blocks(asked.digests(), self.runs.get)
        if match.resume > len(known) * self._step:
            match = self._cache.match(self._prompt(prompt[: len(known) * self._step + 1]))
        return match, known

    def _prompt(self, tokens: tuple[int, ...]) -> Prompt:
        return self._cache.keys.prompt(tokens, salt=self._salt)

    def _follow(self, weights: int) -> None:
        """Flush what was made with other weights."""
        if self._weights not in (None, weights):
            self._cache.allocator.change_weights()
            self.runs.clear()
        self._weights = weights

    def _forget(self, tokens: tuple[int, ...], at: int, digests: list[bytes]) -> None:
        """Let go of what another run has made of these tokens behind a position.

        What is hidden goes too: it is there again once the tokens before it are known.
        """
        node = self._cache.match(self._prompt(tokens)).found.node
        while node.end_tokens > at and node.parent is not None:
            node = node.parent
        behind = node.children.get(digests[at // self._step]) if at < self._end(tokens) else None
        if behind is not None:
            self._forget_all(behind)

    def _end(self, tokens: tuple[int, ...]) -> int:
        return round_down(len(tokens), self._step)

    def _forget_all(self, node: Segment) -> None:
        allocator = self._cache.allocator
        for child in list(node.children.values()):
            self._forget_all(child)
        for state in (TAIL, WINDOW, INDEXER, COMPRESSED):
            cell = node.cells.get(state)
            if cell is None:
                continue
            if cell.device is Device.READY:
                allocator.evict(node, state)
            if allocator.copy_of(cell) is not Copy.NONE:
                allocator.drop(node, state)
            if allocator.disk_of(cell) is not Copy.NONE:
                allocator.erase(node, state)
        for digest in node.digests:
            self.runs.pop(digest, None)

    def _read(self, group: CacheGroup, table: Table, at: int, stamp: Stamp) -> Part:
        """Return a copy of the rows of a group in its blocks, up to a position."""
        first, ids = table
        start = first * group.block_size
        count = blocks(max(at - start, 0), group.block_size)
        pool = self._cache.allocator.pools[group.name]
        pages = pool.read(np.array(ids[:count], np.int64))
        rows = from_pages(pages, group, self._layout)
        return Part(Span(start, start + count * group.block_size), rows, stamp)

    def _write(self, group: CacheGroup, table: Table, written: Written, span: Span) -> None:
        """Fill the blocks that have tokens of ``span``: whole ones."""
        first, ids = table
        size = group.block_size
        start = max(span.start, first * size)
        rows = written.cache.read(group.name, Span(start, span.end)).rows
        own = np.array(ids[start // size - first : span.end // size - first], np.int64)
        pool = self._cache.allocator.pools[group.name]
        pool.write(own, to_pages(rows, group).to(pool.storage.device))
