"""Runs: of each block of a prefix, how its rows were made, so that rows of two runs never mix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from fivestate.impl.models.provenance import Chunk, Provenance


@dataclass(frozen=True, slots=True)
class Node:
    """One block of a prefix: its place in the chain, and how its rows were made.

    Attributes:
        parent: digest of the boundary before it.
        end: position of its own boundary.
        chunks: the chunks that wrote rows in it; the first may have begun in the parent.
        run: digest of the provenance up to ``end``.
    """

    parent: bytes
    end: int
    chunks: tuple[Chunk, ...]
    run: str

    def joins(self, before: Provenance, run: str) -> Provenance | None:
        """Return the provenance up to here; nothing if the parent is of another run by now."""
        first, *later = self.chunks
        begun = bool(before.chunks) and first == before.chunks[-1]
        if self.run != next_run(run, self.chunks) or not (begun or first.start == before.end):
            return None
        return Provenance((*before.chunks, *(later if begun else self.chunks)), self.end)


def next_run(run: str, chunks: tuple[Chunk, ...]) -> str:
    """Return the digest of a provenance from that of its parent and its own chunks."""
    digest = blake2b(run.encode(), digest_size=16)
    for chunk in chunks:
        digest.update(chunk.digest)
    return digest.hexdigest()


Known = list[tuple[bytes, Node, Provenance]]
"""Blocks that are known, from the first one on: digest, place, and how all up to it was made."""


def known_blocks(digests: Iterable[bytes], find: Callable[[bytes], Node | None]) -> Known:
    """Return the blocks of a prompt that are known, as long as they are of one run."""
    known: Known = []
    before, run = Provenance(), ""
    for digest in digests:
        node = find(digest)
        joined = node.joins(before, run) if node is not None else None
        if node is None or joined is None:
            break
        known.append((digest, node, joined))
        before, run = joined, node.run
    return known
