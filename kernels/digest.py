"""Digest of contents: 128 bits for each object, the one definition for devices, host and disk.

An object is read as 64-bit words, least byte first: word 0 is its length in bytes, the others are
its bytes, the last one filled up with zeros. All arithmetic is modulo 2 to the 64, and ``>>``
fills with zeros. Of word ``i``::

    x = (word ^ (i + 1) * KEY) * KEY
    x = (x ^ x >> 32) * LOW
    x = x ^ x >> 29                  the low half is the sum of all x
    y = x * HIGH
    y = y ^ y >> 32                  the high half is the sum of all y

Word, ``x`` and ``y`` are one to one, so a change of a single word always shows in both halves.
The key depends on the place, so order, offset and length matter. The shifts bring the top bit
down, or the lost signs of two numbers would cancel. A sum does not depend on the order of its
terms, so a device may add as it likes. This finds accidents (another's page, half a load, a
flipped bit); it is no defence against a forger: who may read a prefix is decided by the hash
chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.launch import (
    Pointer,
    Scalar,
    by_triton,
    constant,
    constexpr,
    jit,
    launch,
    tl,
)
from fivestate.kernels.device.units import (
    PROGRAM_UNITS,
    as_bytes,
    as_units,
    tile_units,
    unit_bytes,
)

DIGEST_BYTES = 16

KEY, LOW, HIGH = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
"""Odd, so that to multiply by them is one to one; negative, since torch's words have a sign."""
_KEY, _LOW, _HIGH = constant(KEY), constant(LOW), constant(HIGH)
_LOW_32, _LOW_35 = (1 << 32) - 1, (1 << 35) - 1
"""What a shift to the right must leave: torch and Triton fill words that have a sign with it."""
WORD_BYTES = 8
_UNSIGNED = 1 << 64
_CHUNK_WORDS = 1 << 15
"""The host works on so much at a time: it stays in a core's cache, and torch uses one thread."""
_SPLIT_WORDS = 8192
"""One program reads no more words of one object, so that a large object occupies a device."""


def digest_reference(objects: torch.Tensor, chunk_words: int = _CHUNK_WORDS) -> torch.Tensor:
    """Return what ``digest`` returns, in torch, over so many words at a time."""
    count, size_bytes = objects.shape
    content = _as_words(objects)
    length = torch.full((count, 1), size_bytes, dtype=torch.int64, device=objects.device)
    halves = word_sums(length, word_keys(0, 1, objects.device))
    step = max(min(chunk_words, content.shape[1]), 1)
    rows = max(chunk_words // step, 1)
    for row in range(0, count, rows):
        for start in range(0, content.shape[1], step):
            words = content[row : row + rows, start : start + step]
            keys = word_keys(start + 1, words.shape[1], objects.device)
            halves[row : row + rows] += word_sums(words, keys)
    return halves


def _as_words(objects: torch.Tensor) -> torch.Tensor:
    """Return objects as rows of 64-bit words, the last one filled up with zeros."""
    missing = -objects.shape[1] % WORD_BYTES
    if missing:
        objects = torch.nn.functional.pad(objects, (0, missing))
    elif unit_bytes(objects) != WORD_BYTES:
        objects = objects.clone(memory_format=torch.contiguous_format)
    return as_units(as_bytes("objects", objects), WORD_BYTES)


def word_keys(first: int, count: int, device: torch.device) -> torch.Tensor:
    """Return the keys of words from number ``first`` on: shape (count,), dtype int64."""
    return torch.arange(first + 1, first + 1 + count, device=device).mul_(KEY)


def word_sums(words: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Return both halves' sums over rows of words, which have these keys."""
    x = words ^ keys
    x *= KEY
    x ^= (x >> 32).bitwise_and_(_LOW_32)
    x *= LOW
    x ^= (x >> 29).bitwise_and_(_LOW_35)
    low = x.sum(1)
    x *= HIGH
    x ^= (x >> 32).bitwise_and_(_LOW_32)
    return torch.stack([low, x.sum(1)], 1)


@jit(any_value=("count",))
def digest_kernel(
    objects: Pointer,
    out: Pointer,
    count: Scalar,
    STRIDE: constexpr,
    SIZE: constexpr,
    UNIT: constexpr,
    OBJECTS: constexpr,
    TILE: constexpr,
    SPLITS: constexpr,
) -> None:
    """Digest OBJECTS objects, or one part of SPLITS of them, TILE words at a time.

    STRIDE counts units of UNIT bytes, the largest that every object's start is a multiple of.
    """
    UNITS: constexpr = 8 // UNIT
    WORDS: constexpr = (SIZE + 7) // 8
    PART: constexpr = (WORDS + SPLITS * TILE - 1) // (SPLITS * TILE) * TILE
    MASK: constexpr = -1 if UNIT == 8 else (1 << 8 * UNIT) - 1
    split = (tl.program_id(0) % SPLITS).to(tl.int64)
    row = (tl.program_id(0) // SPLITS).to(tl.int64) * OBJECTS + tl.arange(0, OBJECTS)[:, None]
    low = tl.zeros([OBJECTS, TILE], tl.int64)
    high = tl.zeros([OBJECTS, TILE], tl.int64)
    for start in range(0, PART, TILE):
        at = split * PART + start + tl.arange(0, TILE)[None, :]
        word = tl.zeros([OBJECTS, TILE], tl.int64)
        for piece in tl.static_range(UNITS):
            unit = at * UNITS + piece
            there = (row < count) & (unit < SIZE // UNIT)
            bits = tl.load(objects + row * STRIDE + unit, mask=there, other=0)
            word |= (bits.to(tl.int64) & MASK) << (8 * UNIT * piece)
        x, y = _mix(word, at + 1)
        low += tl.where(at < WORDS, x, 0)
        high += tl.where(at < WORDS, y, 0)
    rows = tl.program_id(0) // SPLITS * OBJECTS + tl.arange(0, OBJECTS)
    x, y = _mix(tl.full([OBJECTS], SIZE, tl.int64), tl.zeros([OBJECTS], tl.int64))
    first = split == 0
    x = tl.sum(low, 1) + tl.where(first, x, 0)
    y = tl.sum(high, 1) + tl.where(first, y, 0)
    place = out + rows.to(tl.int64) * 2
    if SPLITS == 1:
        tl.store(place, x, mask=rows < count)
        tl.store(place + 1, y, mask=rows < count)
    else:
        tl.atomic_add(place, x, mask=rows < count, sem="relaxed")
        tl.atomic_add(place + 1, y, mask=rows < count, sem="relaxed")


@jit
def _mix(word: Scalar, index: Scalar) -> Any:
    """Return what word number ``index`` adds to the low and to the high half."""
    x = (word ^ ((index + 1) * _KEY)) * _KEY
    x = (x ^ ((x >> 32) & 0xFFFFFFFF)) * _LOW
    x = x ^ ((x >> 29) & 0x7FFFFFFFF)
    y = x * _HIGH
    return x, y ^ ((y >> 32) & 0xFFFFFFFF)


def digest(objects: torch.Tensor) -> torch.Tensor:
    """Return the digest of each object: of its bytes, their order and their number.

    Args:
        objects: shape (objects, bytes), dtype uint8, the last dimension without gaps.

    Returns:
        Shape (objects, 2), dtype int64: the low and the high half.

    Raises:
        ValueError: ``objects`` has another dtype or shape, or gaps inside an object.
    """
    checks.dtype("objects", objects, torch.uint8)
    checks.shape("objects", objects, None, None)
    content = as_bytes("objects", objects)
    if not by_triton(objects):
        return digest_reference(content)
    unit = unit_bytes(content)
    fixed = constants(content.shape[1], content.stride(0), unit)
    programs = -(-len(content) // fixed["OBJECTS"]) * fixed["SPLITS"]
    out = torch.zeros((len(content), 2), dtype=torch.int64, device=objects.device)
    launch(digest_kernel, (programs,), as_units(content, unit), out, len(content), **fixed)
    return out


def digest_bytes(data: bytes | bytearray | memoryview) -> bytes:
    """Return the digest of contiguous bytes in host memory: the low half, then the high half."""
    view = memoryview(data).cast("B")
    whole = len(view) // WORD_BYTES
    content = np.frombuffer(view, dtype="<u8", count=whole)
    rest = bytes(view[whole * WORD_BYTES :]).ljust(WORD_BYTES, b"\0")
    parts = [(0, np.array([len(view)], dtype="<u8"))]
    parts += [(at + 1, content[at : at + _CHUNK_WORDS]) for at in range(0, whole, _CHUNK_WORDS)]
    if len(view) % WORD_BYTES:
        parts.append((whole + 1, np.frombuffer(rest, dtype="<u8")))
    low = high = 0
    for first, words in parts:
        x, y = _host_sums(words, first)
        low, high = low + x, high + y
    return b"".join((half % _UNSIGNED).to_bytes(8, "little") for half in (low, high))


def _host_sums(words: Any, first: int) -> tuple[int, int]:
    """Return both halves' sums over words, of which the first is word ``first``."""
    key, low, high = (np.uint64(each % _UNSIGNED) for each in (KEY, LOW, HIGH))
    x = np.arange(first + 1, first + 1 + words.size, dtype=np.uint64)
    x *= key
    x ^= words
    x *= key
    x ^= x >> np.uint64(32)
    x *= low
    x ^= x >> np.uint64(29)
    total = int(x.sum())
    x *= high
    x ^= x >> np.uint64(32)
    return total, int(x.sum())


def constants(size_bytes: int, stride_bytes: int, unit: int) -> dict[str, int]:
    """Return the constants with which objects of a size are digested."""
    words = -(-size_bytes // WORD_BYTES)
    tile = tile_units(words)
    return {
        "STRIDE": stride_bytes // unit,
        "SIZE": size_bytes,
        "UNIT": unit,
        "OBJECTS": PROGRAM_UNITS // tile,
        "TILE": tile,
        "SPLITS": max(-(-words // _SPLIT_WORDS), 1),
    }
