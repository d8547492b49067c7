"""Rows by block: in the pools of the reference allocator, leased while they are copied.

A request holds its prefix only while rows are copied out, and writes its own into private blocks
only when it commits; in between they are in its own cache. So nothing here has to be released.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fivestate.impl.allocator import Settings
from fivestate.impl.cache import Cache
from fivestate.impl.keys import Prompt
from fivestate.impl.leases import Lease
from fivestate.impl.matching import Match
from fivestate.impl.models.backend import Kept, Taken, Written, block_ends, resumed_at
from fivestate.impl.models.labels import HostRows, runs_of
from fivestate.impl.models.layout import Layout
from fivestate.impl.models.load_back import let_go, load_back
from fivestate.impl.models.pages import Table, read_part, write_part
from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.models.provenance import Known, Node, known_blocks
from fivestate.impl.recoveries import Task
from fivestate.impl.refusals import Refused
from fivestate.impl.retention import Retention
from fivestate.spec.need import blocks, round_down
from fivestate.spec.reuse import (
    CacheGroup,
    Cost,
    Plan,
    Reason,
    Span,
    Verdict,
    Why,
)
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import Device

if TYPE_CHECKING:
    from fivestate.impl.models.below import Below

TRIES = 4
"""How often a prompt is matched again because a copy did not check; then it is computed."""


def cache_for(layout: Layout, tokens: int, **settings: Any) -> Cache:
    """Return a cache of the reference allocator for one model.

    Every scheduler block ends a node, so that each can be resumed.

    Args:
        layout: of the model.
        tokens: for how many tokens each pool has room.
        settings: of ``Settings``, all but the geometry: slots, other pool sizes, other states that
            are stored than all, or tiers, whose copies are ``labels``' own.
    """
    geometry = layout.geometry
    states = frozenset(group.state for group in geometry.groups)
    sizes = {group.name: blocks(tokens, group.block_size) for group in geometry.groups}
    return Cache(
        Settings(
            **{
                "geometry": geometry,
                "num_blocks": sizes,
                "storable": states,
                "host": HostRows({}),
                **settings,
            }
        ),
        retention=Retention(Keep.FULL),
        in_flight_tokens=geometry.scheduler_block_size,
    )


class ByBlock:
    """Rows of one layout, in one cache that nobody else writes to.

    Attributes:
        runs: of each block that was kept, by digest, how it was made: a small record for each.
            Rows whose making is not known are not reused, so who starts again from copies on disk
            starts with these too, and a mapping that forgets costs reuse and nothing else.
        layout: of the model.
        below: the tiers behind the device, where they are in a ``Folder``.

    Raises:
        ValueError: the cache is of another geometry, or keeps its blocks in another way, or copies
            that do not name their run.
    """

    def __init__(
        self,
        layout: Layout,
        cache: Cache,
        salt: str = "",
        below: Below | None = None,
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
        runs = runs_of(cache.allocator.settings)
        if runs is None:
            message = "store: copies off the device that do not name the run of their rows"
            raise ValueError(f"{message}: those of models.labels are allowed; see cache_for")
        self.runs = runs
        self.layout, self.below = layout, below
        self._cache, self._salt = cache, salt
        self._groups = layout.geometry.groups
        self._step = layout.geometry.scheduler_block_size
        self._made_by = None if below is None else below.by

    def match(self, prompt: tuple[int, ...], now: Stamp) -> Verdict:
        """Say what the prefix of a prompt is worth."""
        self._follow(now)
        return self._match(prompt)[0].verdict

    def take(self, prompt: tuple[int, ...], now: Stamp) -> Taken:
        """Return what a prompt goes on from: as much of it as there is room to hold.

        Raises:
            Refused: there is no slot to hold it while it is copied.
        """
        self._follow(now)
        match, known = self._match(prompt)
        resume, tries = match.resume, 0
        while resume and tries < TRIES:
            reading = self._cache.match(self._prompt(prompt[: resume + 1]))
            try:
                with self._leased(reading) as lease:
                    stuck = self._bring(lease)
                    if lease.resume == resume and not lease.recovering:
                        _, node, provenance = known[resume // self._step - 1]
                        parts = self._parts(lease, replace(now, run=node.run))
                        return Taken(
                            resumed_at(match.verdict, reading.plan), provenance, node.run, parts
                        )
            except Refused as refusal:
                if refusal.guard != "room":
                    raise
                resume -= self._step
                continue
            for task in stuck:  # a stale index: with it gone, its copy can be loaded back
                with suppress(Refused):
                    self._cache.allocator.evict(task.node, task.state)
            match, known = self._match(prompt)
            resume, tries = match.resume, tries + 1
        scratch = Plan(0, (), Cost(recompute_tokens=len(prompt)))
        return Taken(resumed_at(match.verdict, scratch) if match.resume else match.verdict)

    def keep(self, written: Written) -> Kept:
        """Keep every whole block behind the resume point.

        What there is of the same tokens from another run is evicted first, or nothing is kept.
        """
        self._follow(written.by)
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
        ours = self._ours(written, nodes)
        try:
            self._forget(written.tokens, ours, digests)
            new = {stop: node for stop, node in nodes.items() if stop > ours}
            self.runs.update({digests[stop // self._step - 1]: new[stop] for stop in new})
            goes_down = self.below is not None and self.below.know()
            for stop in new:
                prompt = self._prompt(written.tokens[:stop])
                with self._leased(match := self._cache.match(prompt)) as lease:
                    if not self._add(lease, written, stop):
                        return tuple(made), match.reasons
                made.append(stop)
                if self.below is not None and goes_down:
                    self.below.keep(self._cache.match(prompt).found.node)
        except Refused as refusal:
            return tuple(made), (refusal,)
        return tuple(made), ()

    def _leased(self, match: Match) -> Lease:
        """Lease a prefix; where that takes the room of others, these go down first."""
        if self.below is not None:
            wanted = len(match.prompt) + 2 * self._step
            pools = self._cache.allocator.pools.values()
            if any(pool.free * pool.group.block_size < wanted for pool in pools):
                self.settle()
        return self._cache.lease(match)

    def _bring(self, lease: Lease) -> list[Task]:
        """Bring what is leased to the device; return what cannot be had without computing."""
        if self.below is not None and lease.recovering:
            self.below.bring(self._cache.recover(lease))
        return load_back(self._cache, lease)

    def _add(self, lease: Lease, written: Written, stop: int) -> bool:
        """Write one block behind a lease, and commit it; say whether it is known now."""
        start = stop - self._step
        self._bring(lease)
        if lease.recovering or lease.resume != start:
            return False
        self._cache.fill(lease, self._step)
        tables = self._cache.blocks(lease)
        for group in self._groups:
            self._write(group, tables[group.name], written, Span(start, stop))
        return self._cache.commit(lease) >= stop

    def _ours(self, written: Written, nodes: dict[int, Node]) -> int:
        """Return up to where this very run is kept already, and nothing of it is missing."""
        allocator, at = self._cache.allocator, written.resume
        for segment in self._cache.match(self._prompt(written.tokens)).found.node.path():
            stop = segment.end_tokens
            if stop <= at:
                continue
            cells = segment.cells.values()
            whole = all(cell.device is Device.READY or allocator.kept(cell) for cell in cells)
            if not whole or self.runs.get(segment.digests[-1]) != nodes.get(stop):
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

    def settle(self) -> None:
        """Wait until nothing moves below the device."""
        if self.below is not None:
            self.below.settle()

    def close(self) -> None:
        """Close the folder, if there is one."""
        if self.below is not None:
            self.below.close()

    def _follow(self, now: Stamp) -> None:
        """Flush what was made with other weights, or by other kernels."""
        if self.below is not None:
            self.below.require_open()
        if self._made_by not in (None, now):
            self.settle()
            self._cache.allocator.change_weights()
            self.runs.clear()
            if self.below is not None:
                self.below.follow(now)
        self._made_by = now

    def _forget(self, tokens: tuple[int, ...], at: int, digests: list[bytes]) -> None:
        """Let go of what another run has made of these tokens behind a position.

        What is hidden goes too: it is there again once the tokens before it are known.
        """
        node = self._cache.match(self._prompt(tokens)).found.node
        while node.end_tokens > at and node.parent is not None:
            node = node.parent
        behind = node.children.get(digests[at // self._step]) if at < self._end(tokens) else None
        if behind is None:
            return
        self.settle()  # what is being stored cannot be let go
        for segment in reversed([behind, *behind.descendants()]):
            let_go(self._cache.allocator, segment)
            for digest in segment.digests:
                self.runs.pop(digest, None)

    def _end(self, tokens: tuple[int, ...]) -> int:
        return round_down(len(tokens), self._step)

    def _parts(self, lease: Lease, stamp: Stamp) -> dict[str, Part]:
        """Return a copy of the rows of each group in a lease's blocks."""
        pools, tables = self._cache.allocator.pools, self._cache.blocks(lease)
        return {
            group.name: read_part(
                pools[group.name], tables[group.name], lease.resume, self.layout, stamp
            )
            for group in self._groups
        }

    def _write(self, group: CacheGroup, table: Table, written: Written, span: Span) -> None:
        """Fill the blocks that have tokens of ``span``: whole ones."""
        start = max(span.start, table[0] * group.block_size)
        rows = written.cache.read(group.name, Span(start, span.end)).rows
        write_part(self._cache.allocator.pools[group.name], table, start, rows)
