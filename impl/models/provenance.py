"""Provenance: in which chunks the rows of a prefix were made, from its first token on (来源).

Matrix products differ in their last bits with the number of rows, and experts get the rows that
the chunk's other tokens leave them; so rows are bit for bit the same only in the same chunks. The
provenance of a prefix is that of its parent and its own chunks, and it is one schedule always: a
chunk's rows are kept up to where the next chunk starts. Source: measured, domain §1.13.

A run is a provenance by name: the digest of a block's is a chain over the chunks of all blocks
before it, so rows of two runs are told apart block by block, and never mix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple


class Chunk(NamedTuple):
    """Tokens that were computed at once.

    Attributes:
        start: position of the first.
        tokens: all of them, those whose rows were not kept too: they shared the products.
    """

    start: int
    tokens: tuple[int, ...]

    @property
    def end(self) -> int:
        """The position behind the last."""
        return self.start + len(self.tokens)

    @property
    def digest(self) -> bytes:
        """256 bits that name it."""
        body = ",".join(map(str, (self.start, *self.tokens)))
        return blake2b(body.encode(), digest_size=32).digest()


@dataclass(frozen=True, slots=True)
class Provenance:
    """One schedule: chunks in order, each starting where the rows before it are kept up to.

    Attributes:
        chunks: the chunks; none is without a kept row.
        end: tokens of the prefix.
    """

    chunks: tuple[Chunk, ...] = ()
    end: int = field(default=0)

    def __post_init__(self) -> None:
        """Check that the chunks join.

        Raises:
            ValueError: a chunk starts behind the rows before it, or keeps none.
        """
        starts = [chunk.start for chunk in self.chunks] + [self.end]
        joined = all(
            chunk.start < follower <= chunk.end
            for chunk, follower in zip(self.chunks, starts[1:], strict=True)
        )
        if starts[0] != 0 or not joined:
            spans = ", ".join(f"[{chunk.start}, {chunk.end})" for chunk in self.chunks)
            raise ValueError(f"chunks {spans} do not join to [0, {self.end})")

    @property
    def plain(self) -> bool:
        """Whether every chunk's rows are all kept, so that a cache need never be cut."""
        return all(len(chunk.tokens) == kept for chunk, kept in self.steps())

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the prefix."""
        return tuple(t for chunk, kept in self.steps() for t in chunk.tokens[:kept])

    def steps(self) -> Iterator[tuple[Chunk, int]]:
        """Yield each chunk, and how many of its rows are kept."""
        starts = [chunk.start for chunk in self.chunks[1:]] + [self.end]
        for chunk, follower in zip(self.chunks, starts, strict=True):
            yield chunk, follower - chunk.start

    def cut(self, position: int) -> Provenance:
        """Return the provenance of the first ``position`` tokens.

        Raises:
            ValueError: the prefix has fewer tokens.
        """
        if not 0 <= position <= self.end:
            raise ValueError(f"position = {position}: 0 .. {self.end} is allowed")
        return Provenance(tuple(c for c in self.chunks if c.start < position), position)

    def then(self, tokens: Sequence[int]) -> Provenance:
        """Return the provenance after one more chunk."""
        chunk = Chunk(self.end, tuple(tokens))
        return Provenance((*self.chunks, chunk), chunk.end)

    def own(self, start: int) -> tuple[Chunk, ...]:
        """Return the chunks that made rows from ``start`` on: what a child adds to its parent."""
        steps = self.steps()
        return tuple(chunk for chunk, kept in steps if chunk.start + kept > start)


def scheduled(tokens: Sequence[int], lengths: Sequence[int]) -> Provenance:
    """Return the provenance of tokens that are computed in chunks of these lengths.

    Raises:
        ValueError: the lengths do not add up to the tokens.
    """
    if sum(lengths) != len(tokens):
        raise ValueError(f"chunks of {sum(lengths)} tokens for {len(tokens)} tokens")
    made = Provenance()
    for length in lengths:
        made = made.then(tokens[made.end : made.end + length])
    return made


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
