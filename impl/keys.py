"""Keys: the digests by which a prefix is found again.

A prompt is hashed in a chain, one digest for each scheduler block: a hit ends on no other
position. A digest for every four tokens would take longer than all else that a lookup does, so
inside the block in which a match ends the tokens themselves are compared.

SHA-256: with BLAKE2 and BLAKE3 beside it, it was the fastest on pieces of a kilobyte.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from fivestate.spec.language import ModelError
from fivestate.spec.reuse import Geometry

NARROW_BYTES, WIDE_BYTES = 4, 8
"""Bytes that encode a token: the fewer where every token of the block fits into them."""

_NARROW_END = 1 << 8 * NARROW_BYTES
_WIDE_END = 1 << 8 * WIDE_BYTES
_NARROW, _WIDE = "I", "Q"
_ENCODED = (_NARROW, _WIDE)


class Media(NamedTuple):
    """An image or the like, where placeholder tokens stand for it.

    Attributes:
        start: its first token.
        end: the token after its last.
        digest: what it is; equal placeholders with different digests are different prefixes.
    """

    start: int
    end: int
    digest: str


@dataclass(frozen=True, slots=True)
class Keys:
    """How prompts of one model are hashed.

    Attributes:
        step_tokens: tokens of a scheduler block: the distance of digests, and of hits.
        fine_tokens: tokens of a hash block, in which what was seen is counted; it divides the
            other.
    """

    step_tokens: int
    fine_tokens: int

    def __post_init__(self) -> None:
        """Check both sizes.

        Raises:
            ModelError: one is not positive, or the finer does not divide the other.
        """
        if self.fine_tokens < 1 or self.step_tokens < 1 or self.step_tokens % self.fine_tokens:
            given = f"step_tokens = {self.step_tokens}, fine_tokens = {self.fine_tokens}"
            raise ModelError(f"keys: {given}: a positive size and a divisor of it are allowed")

    @classmethod
    def of(cls, geometry: Geometry) -> Keys:
        """Return how prompts of a geometry are hashed."""
        return cls(geometry.scheduler_block_size, geometry.hash_block_size)

    def prompt(
        self,
        tokens: Sequence[int],
        *,
        adapter: str | None = None,
        salt: str | None = None,
        media: Iterable[Media] = (),
    ) -> Prompt:
        """Return a prompt; nothing is hashed before it is asked for.

        Raises:
            ValueError: an argument is of the wrong type or out of its range.
        """
        return Prompt(self, tokens, root(adapter, salt), _media(media))


def root(adapter: str | None = None, salt: str | None = None) -> bytes:
    """Return what every chain of an adapter and a salt starts from.

    Raises:
        ValueError: one of them is neither a string nor absent.
    """
    named: dict[str, object] = {"adapter": adapter, "salt": salt}
    for name, value in named.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} = {value!r}: a string or None is allowed")
    return _root(adapter, salt)


@lru_cache(maxsize=1_024)
def _root(adapter: str | None, salt: str | None) -> bytes:
    told = ["fivestate", 1, sys.byteorder, adapter, salt]
    return sha256(json.dumps(told).encode()).digest()


class Prompt:
    """The tokens of one sequence, and their digests as far as they were asked for."""

    __slots__ = ("_digests", "_keys", "_media", "_root", "_shared", "_tokens")

    def __init__(
        self, keys: Keys, tokens: Sequence[int], start: bytes, media: tuple[Media, ...] = ()
    ) -> None:
        self._keys = keys
        encoded = encode(tokens)
        self._tokens = encoded[:] if encoded is tokens else encoded
        self._root = start
        self._media = media
        self._digests: list[bytes] = []
        self._shared = False  # whether another prompt may have the same array of tokens

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def keys(self) -> Keys:
        """How it is hashed."""
        return self._keys

    def tokens(self, start: int = 0, end: int | None = None) -> list[int]:
        """Return tokens ``start .. end - 1``."""
        return self._tokens[start:end].tolist()

    def copy(self) -> Prompt:
        """Return a prompt of the same tokens: they are copied when one of both is changed."""
        other = Prompt(self._keys, (), self._root, self._media)
        other._tokens, other._digests = self._tokens, self._digests[:]
        self._shared = other._shared = True
        return other

    def _own(self) -> None:
        self._tokens, self._shared = self._tokens[:], False

    def extend(self, tokens: Sequence[int]) -> None:
        """Add tokens at the end.

        Raises:
            ValueError: one is not a whole number from 0 to 2^64 - 1; nothing is added.
        """
        self.add(encode(tokens))

    def add(self, tokens: array[int]) -> None:
        """Add tokens that ``encode`` returned at the end."""
        if self._shared:
            self._own()
        if tokens.typecode != self._tokens.typecode:
            self._tokens, tokens = array(_WIDE, self._tokens), array(_WIDE, tokens)
        self._tokens.extend(tokens)

    def truncate(self, length: int) -> None:
        """Take back the tokens behind ``length``."""
        if self._shared:
            self._own()
        del self._tokens[length:]
        del self._digests[length // self._keys.step_tokens :]

    def digests(self) -> list[bytes]:
        """Return the digests of all whole scheduler blocks, first to last; do not change it."""
        step = self._keys.step_tokens
        count = len(self._tokens) // step
        made = self._digests
        if len(made) < count:
            first = len(made) * step
            digest = made[-1] if made else self._root
            if self._media or self._tokens.typecode == _WIDE:
                for start in range(first, count * step, step):
                    digest = self._block(digest, start, start + step)
                    made.append(digest)
            else:
                raw = memoryview(self._tokens).cast("B")
                width = step * NARROW_BYTES
                for start in range(first * NARROW_BYTES, count * width, width):
                    block = sha256(digest)
                    block.update(raw[start : start + width])
                    digest = block.digest()
                    made.append(digest)
        return made

    def chained(self, blocks: int) -> bytes:
        """Return the digest of the first ``blocks`` scheduler blocks; of none, where it starts."""
        return self.digests()[blocks - 1] if blocks else self._root

    def behind(self, blocks: int) -> bytes:
        """Return the tokens of the scheduler block behind the first ``blocks``, four bytes each.

        Nothing where the tokens alone do not say what they are: images, tokens of eight bytes.
        """
        start = blocks * self._keys.step_tokens
        end = min(start + self._keys.step_tokens, len(self._tokens))
        if self._over(start, end):
            return b""
        block = self._tokens[start:end]
        if block.typecode == _WIDE:
            if max(block, default=0) >= _NARROW_END:
                return b""
            block = array(_NARROW, block)
        return block.tobytes()

    def _block(self, parent: bytes, start: int, end: int) -> bytes:
        """Hash one block; the three kinds of input differ in their length modulo four."""
        over = self._over(start, end)
        if over:
            told = json.dumps([(m.start - start, m.end - start, m.digest) for m in over]).encode()
            padding = (2 - len(parent) - len(told)) % 4
            parent = sha256(parent + told + b" " * padding).digest()
        block = self._tokens[start:end]
        if block.typecode == _WIDE:
            if max(block) >= _NARROW_END:
                return sha256(parent + block.tobytes() + b"\1").digest()
            block = array(_NARROW, block)
        return sha256(parent + block.tobytes()).digest()

    def _over(self, start: int, end: int) -> list[Media]:
        return [media for media in self._media if media.start < end and start < media.end]


def encode(tokens: Sequence[int]) -> array[int]:
    """Return tokens as an array of 4 bytes each, or of 8 where one does not fit into 4.

    Raises:
        ValueError: one is not a whole number from 0 to 2^64 - 1.
    """
    if type(tokens) is array and tokens.typecode in _ENCODED:
        return tokens
    try:
        if type(tokens) is list:
            encoded = array(_NARROW)
            encoded.fromlist(tokens)  # a third faster
            return encoded
        return array(_NARROW, tokens)
    except (OverflowError, TypeError):
        pass
    try:
        listed = list(tokens)
    except TypeError:
        raise ValueError(f"tokens = {tokens!r}: a sequence of token ids is allowed") from None
    checked: list[object] = list(listed)  # what is given need not be what was asked for
    for at, token in enumerate(checked):
        if not isinstance(token, int) or not 0 <= token < _WIDE_END:
            raise ValueError(f"tokens[{at}] = {token!r}: a token id from 0 to 2^64 - 1 is allowed")
    return array(_WIDE, listed)


def _media(media: Iterable[Media]) -> tuple[Media, ...]:
    found: list[Media] = []
    given: list[object] = list(media)  # what is given need not be what was asked for
    for at, one in enumerate(given):
        match one:
            case Media(int(start), int(end), str()) if 0 <= start < end:
                found.append(one)
            case _:
                allowed = "Media with 0 <= start < end and a string as digest is allowed"
                raise ValueError(f"media[{at}] = {one!r}: {allowed}")
    return tuple(found)
