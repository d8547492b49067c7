"""Rows by digest: parts in a store, one for each block and group, each gone or there by itself.

What there is of a prompt is judged by ``spec.reuse.classify``; nothing is decided here again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b

import torch

from fivestate.impl.models.backend import Kept, Taken, Written, block_ends, kept_span
from fivestate.impl.models.layout import Layout
from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.models.provenance import Known, Node, known_blocks
from fivestate.impl.models.store import Key, Store, Stub
from fivestate.spec.reuse import (
    Abi,
    Availability,
    CacheGroup,
    Consumer,
    Extent,
    Policy,
    Rates,
    Reason,
    Shape,
    Span,
    Verdict,
    Why,
    classify,
)
from fivestate.spec.reuse.checks import Asked
from fivestate.spec.vocabulary import COMPRESSED, INDEXER

LOG = logging.getLogger("fivestate.models")


class ByDigest:
    """Rows of one layout, in one store."""

    def __init__(self, layout: Layout, store: Store, salt: str, rates: Rates) -> None:
        self._geometry = layout.geometry
        self._groups = layout.geometry.groups
        self._step = layout.geometry.scheduler_block_size
        self._dtype = str(layout.dtype).removeprefix("torch.")
        self._store = store
        self._policy = Policy(rates)
        self._entries = [group for group in self._groups if group.state is COMPRESSED]
        about = f"{layout.geometry.name} {layout.signature} {self._step} {salt}"
        self._root = blake2b(about.encode(), digest_size=32).digest()

    def match(self, prompt: tuple[int, ...], now: Stamp) -> Verdict:
        """Say what the prefix of a prompt is worth."""
        return self._classify(prompt, self._known(prompt), now, set())

    def take(self, prompt: tuple[int, ...], now: Stamp) -> Taken:
        """Return what a prompt goes on from.

        A copy off the device is loaded back on the way; where one turns out to be gone or damaged
        the prompt is judged again without it.
        """
        known, gone = self._known(prompt), set[Key]()
        while True:
            verdict = self._classify(prompt, known, now, gone)
            if not verdict.resume:
                return Taken(verdict)
            _, node, provenance = known[verdict.resume // self._step - 1]
            parts = self._parts(known, verdict.resume, replace(now, run=node.run), gone)
            if parts is not None:
                return Taken(verdict, provenance, node.run, parts)

    def keep(self, written: Written) -> Kept:
        """Keep every whole block behind the resume point.

        What there is of the same tokens from another run is replaced; nothing is kept behind a
        prefix that has been replaced meanwhile.
        """
        digests = list(self._digests(written.tokens))
        at = written.resume // self._step
        parent = digests[at - 1] if at else self._root
        before = self._store.node(parent) if at else None
        if at and (before is None or before.run != written.run):
            value = f"run {written.run[:8]}≠{before.run[:8] if before else 'none'}"
            return (), (Reason("H-0", Why.IDENTITY, value),)
        made: list[int] = []
        run = written.run
        for end in block_ends(written.resume, len(written.tokens), self._step):
            digest = digests[end // self._step - 1]
            node = written.node(parent, end - self._step, end, run)
            self._store.keep(digest, node)
            for group in self._groups:
                span = kept_span(group, end - self._step, end)
                if span.tokens:
                    rows = written.cache.read(group.name, span).rows
                    part = Part(span, rows, replace(written.by, run=node.run))
                    self._store.put(Key(digest, group.name), part)
            made.append(end)
            parent, run = digest, node.run
        return tuple(made), ()

    def settle(self) -> None:
        """Nothing moves by itself."""

    def close(self) -> None:
        """The store is its maker's to close."""

    def _known(self, prompt: tuple[int, ...]) -> Known:
        return known_blocks(self._digests(prompt), self._store.node)

    def _digests(self, tokens: tuple[int, ...]) -> Iterator[bytes]:
        """Yield the digest of each whole block, and of all tokens before it."""
        digest = self._root
        for end in block_ends(0, len(tokens), self._step):
            body = ",".join(map(str, tokens[end - self._step : end]))
            digest = blake2b(digest + body.encode(), digest_size=32).digest()
            yield digest

    def _classify(
        self, prompt: tuple[int, ...], known: Known, now: Stamp, gone: set[Key]
    ) -> Verdict:
        """Ask the specification, with what the store has but for keys that turned out to be gone.

        Behind a block without entries nothing is offered: nothing can be resumed there.
        """
        abi = self._abi(now)
        copies: dict[str, list[Extent]] = {}
        for digest, node, _ in known:
            stubs = {
                group.name: self._store.look(key)
                for group in self._groups
                if (key := Key(digest, group.name)) not in gone
            }
            if any(stubs.get(g.name) is None for g in self._entries):
                break
            for group in self._groups:
                stub = stubs.get(group.name)
                if stub is not None and stub.span == kept_span(
                    group, node.end - self._step, node.end
                ):
                    copies.setdefault(group.name, []).extend(self._extent(group, stub, node))
        ranks = ({name: tuple(extents) for name, extents in copies.items()},)
        fork = known[-1][1].end if known else 0
        return classify(
            self._geometry,
            Asked(fork, len(prompt)),
            Availability(ranks, known=bool(known)),
            Consumer(abi),
            self._policy,
        )

    def _parts(
        self, known: Known, resume: int, stamp: Stamp, gone: set[Key]
    ) -> dict[str, Part] | None:
        """Return the parts for a resume, or nothing if one is gone, which is noted.

        They are read from the leaf to the root, so that the root is evicted last.
        """
        parts: dict[str, Part] = {}
        for group in self._groups:
            blocks = [(digest, node) for digest, node, _ in known if node.end <= resume]
            if group.shape is not Shape.PREFIX:
                blocks = blocks[-1:] if group.need(resume).tokens else []
            found: list[Part] = []
            for digest, _ in reversed(blocks):
                key = Key(digest, group.name)
                part = self._store.get(key)
                if part is None:
                    LOG.warning("group %s: a part of %s is gone", group.name, digest.hex()[:8])
                    gone.add(key)
                    return None
                found.insert(0, part)
            if found:
                rows = torch.cat([part.rows for part in found], dim=1)
                parts[group.name] = Part(Span(found[0].span.start, resume), rows, stamp)
        return parts

    def _extent(self, group: CacheGroup, stub: Stub, node: Node) -> Iterator[Extent]:
        """Yield the copy; one of another run only where a generation says so: an index."""
        in_step = stub.stamp.run == node.run
        if in_step or group.state is INDEXER:
            abi = self._abi(stub.stamp)
            yield Extent(stub.span, stub.tier, abi, generation=0 if in_step else 1)

    def _abi(self, stamp: Stamp) -> Abi:
        return Abi(stamp.kernels, "layer, row, number", self._dtype, stamp.weights)
