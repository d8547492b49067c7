"""The arrays a search lives in, and their addresses as native code reads them.

For each state: its 8 or 16 bytes, 4 for its parent, 2 for the step from there, and in the hash
table 4 bytes a slot, of which 42.5 % to 85 % are taken: 18.7 to 23.4 bytes a state of one word,
26.7 to 31.4 of two. A table is rebuilt from the states, so the old one goes first; what grows in
blocks is never copied. Edges take 6 bytes each and 4 a state. What workers hand each other takes
a few megabytes, whatever the model: pages that are never written take no memory.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from fivestate.checker.engines.native.kernel import BLOCK_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fivestate.checker.engines.native.pack import Words

_NUMBER_BITS = 31
MAX_STATES = (1 << _NUMBER_BITS) - (1 << 21)
"""A state's number takes 31 bits; the rest is room for a chunk."""

BLOCK = 1 << BLOCK_BITS
LINE = 16
"""Slots that are looked at together: a cache line of them."""

_FIRST_SLOTS = 1 << 14  # two lines at least: a line has one bit of hash or more
_FILL = 0.85
"""Beyond this a table is doubled."""


class Bucket(ctypes.Structure):
    """States that one worker found for another to look up: ``%Bucket`` in native code."""

    _fields_ = (
        ("states", ctypes.c_void_p),
        ("sources", ctypes.c_void_p),
        ("targets", ctypes.c_void_p),
        ("count", ctypes.c_int64),
    )


class Part(ctypes.Structure):
    """One worker's part of the visited set, and what is fresh in it: ``%Part`` in native code."""

    _fields_ = (
        ("table", ctypes.c_void_p),
        ("line_shift", ctypes.c_int64),
        ("number_bits", ctypes.c_int64),
        ("fresh_states", ctypes.c_void_p),
        ("fresh_sources", ctypes.c_void_p),
        ("fresh_slots", ctypes.c_void_p),
        ("fresh_numbers", ctypes.c_void_p),
        ("fresh_count", ctypes.c_int64),
    )


class Store:
    """Every state found, by its number, with the step that it was first found by."""

    def __init__(self, words: int) -> None:
        self.words = words
        self._blocks: list[tuple[Words, NDArray[np.int32], NDArray[np.int16]]] = []
        entries = MAX_STATES // BLOCK + 4
        self.states, self.parents, self.by = (np.zeros(entries, np.uint64) for _ in range(3))
        self.bytes_per_state = 8 * words + 6

    def reserve(self, count: int) -> None:
        """Make room for states up to number ``count - 1``."""
        while len(self._blocks) * BLOCK < count:
            block = (
                np.empty((BLOCK, self.words), np.uint64),
                np.empty(BLOCK, np.int32),
                np.empty(BLOCK, np.int16),
            )
            at = len(self._blocks)
            self.states[at], self.parents[at], self.by[at] = (_address(array) for array in block)
            self._blocks.append(block)

    def put_first(self, row: Words) -> None:
        """Store the state that nothing leads to."""
        self.reserve(1)
        states, parents, by = self._blocks[0]
        states[0], parents[0], by[0] = row, -1, -1

    def taken(self, count: int) -> tuple[list[Words], NDArray[np.int32], NDArray[np.int16]]:
        """Return the first ``count`` states, in blocks, with their parents and steps.

        The states stay where they are: a copy of them would be the peak of the whole search.
        """
        blocks, self._blocks = self._blocks, []
        ends = [min(BLOCK, count - at * BLOCK) for at in range(len(blocks))]
        states = [block[0][:end] for block, end in zip(blocks, ends, strict=True)]
        parents = np.concatenate([block[1][:end] for block, end in zip(blocks, ends, strict=True)])
        by = np.concatenate([block[2][:end] for block, end in zip(blocks, ends, strict=True)])
        return states, parents, by


class Tables:
    """The visited set: one hash table for each worker, for the states whose hash is its own."""

    def __init__(self, workers: int) -> None:
        self._arrays = [np.zeros(0, np.uint32) for _ in range(workers)]
        self.held = [1] * workers
        self.parts: Any = (Part * workers)()

    def clear(self) -> None:
        """Let go of the tables."""
        self._arrays = [np.zeros(0, np.uint32) for _ in self._arrays]

    def size_for(self, worker: int, more: int) -> int:
        """Return how many slots a table needs to take in ``more`` states."""
        slots = max(len(self._arrays[worker]), _FIRST_SLOTS)
        while self.held[worker] + more > _FILL * slots:
            slots *= 2
        return slots

    def grown(self, worker: int, more: int, numbers: int) -> bool:
        """Make room for ``more`` states numbered below ``numbers``; say if it has to be rebuilt."""
        part, slots = self.parts[worker], self.size_for(worker, more)
        if slots == len(self._arrays[worker]) and numbers < 1 << part.number_bits:
            return False
        self._arrays[worker] = np.zeros(0, np.uint32)  # the old one goes before the new one comes
        self._arrays[worker] = _lines(slots)
        slot_bits = slots.bit_length() - 1
        part.table = self._arrays[worker].ctypes.data
        part.line_shift = 64 - (slot_bits - LINE.bit_length() + 1)
        spread = (len(self.parts) - 1).bit_length()
        part.number_bits = max(min(slot_bits + spread, _NUMBER_BITS), numbers.bit_length())
        return True


class Buffers:
    """What the workers hand each other within a chunk of ``parents`` states.

    They are sized for the case that every step can be taken everywhere, which never happens.
    """

    def __init__(self, words: int, workers: int, parents: int, steps: int, tables: Tables) -> None:
        self.share = -(-parents // workers)
        """How many states of a chunk one worker expands at most."""
        room = self.share * steps + 1
        self._arrays: list[NDArray[Any]] = []
        self.sources: list[list[NDArray[np.uint32]]] = []
        self.runs: Any = [(Bucket * workers)() for _ in range(workers)]
        for run in self.runs:
            self.sources.append([np.empty(room, np.uint32) for _ in range(workers)])
            for bucket, sources in zip(run, self.sources[-1], strict=True):
                bucket.states = self._kept(np.empty((room, words), np.uint64))
                bucket.sources = sources.ctypes.data
                bucket.targets = self._kept(np.empty(room, np.int32))
        for part in tables.parts:
            part.fresh_states = self._kept(np.empty((workers * room, words), np.uint64))
            part.fresh_sources = self._kept(np.empty(workers * room, np.uint32))
            part.fresh_slots = self._kept(np.empty(workers * room, np.uint32))
            part.fresh_numbers = self._kept(np.empty(workers * room, np.uint32))

    def _kept(self, array: NDArray[Any]) -> int:
        self._arrays.append(array)
        return _address(array)


def _address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)


def _lines(slots: int) -> NDArray[np.uint32]:
    """Return empty slots that begin with a cache line."""
    around = np.zeros(slots + LINE, np.uint32)
    skipped = -around.ctypes.data % (4 * LINE) // 4
    return around[skipped : skipped + slots]
