"""Our side of the bench of the allocator."""

from __future__ import annotations

from fivestate.impl.allocator import Settings
from fivestate.impl.bench.workload import CHUNK_TOKENS, Turn
from fivestate.impl.cache import Cache
from fivestate.impl.keys import Prompt
from fivestate.impl.leases import Lease
from fivestate.impl.matching import Match
from fivestate.spec.need import blocks
from fivestate.spec.reuse import Geometry, Shape

PAGE_BYTES = 8
"""Bytes of a page: what is in it does not matter, who has it does."""


class Ours:
    """The cache of this project."""

    name = "fivestate"

    def __init__(self, geometry: Geometry, tokens: int) -> None:
        sizes = {
            group.name: 2 * blocks(tokens, group.block_size)
            + blocks(2 * CHUNK_TOKENS, group.block_size)
            if group.shape is Shape.PREFIX
            else 2 * blocks(2 * CHUNK_TOKENS + group.most_rows, group.block_size)
            for group in geometry.groups
        }
        pages = {group.name: PAGE_BYTES for group in geometry.groups}
        settings = Settings(geometry=geometry, num_blocks=sizes, page_bytes=pages)
        self._cache = Cache(settings, in_flight_tokens=CHUNK_TOKENS)

    def turn(self, prompt: list[int], answer: list[int]) -> Turn:
        """Reuse what there is of a prompt, compute the rest of it, decode an answer, and end."""
        cache, turn = self._cache, Turn()
        hashed = turn.timed("hash", lambda: self._hashed(prompt))
        match = turn.timed("match", lambda: cache.match(hashed))
        lease = turn.timed("allocate", lambda: self._allocate(match, len(answer)))
        turn.hit_tokens = lease.resume
        done = min(len(prompt), lease.resume + CHUNK_TOKENS)
        while done < len(prompt):
            cache.commit(lease)
            count = min(len(prompt) - done, CHUNK_TOKENS)
            cache.fill(lease, count)
            done += count
        turn.timed("append", lambda: self._append(lease, answer))
        turn.timed("free", lambda: self._free(lease))
        return turn

    def _hashed(self, prompt: list[int]) -> Prompt:
        hashed = self._cache.keys.prompt(prompt)
        hashed.digests()
        return hashed

    def _allocate(self, match: Match, new_tokens: int) -> Lease:
        lease = self._cache.lease(match, new_tokens=new_tokens)
        self._cache.fill(lease, min(match.length - lease.resume, CHUNK_TOKENS))
        self._cache.blocks(lease)
        return lease

    def _append(self, lease: Lease, answer: list[int]) -> None:
        for token in answer:
            self._cache.append(lease, (token,))

    def _free(self, lease: Lease) -> None:
        self._cache.commit(lease)
        lease.release()
