"""The edges of a search, put into the order in which one worker alone would have found them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from fivestate.checker.exploration import Edges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fivestate.checker.engines.native.memory import Buffers, Tables

BYTES = 6
"""What an edge takes: 4 bytes for its target, 2 for its step."""

_LAST = np.iinfo(np.uint32).max
"""Greater than every source: it ends a bucket."""


class Edgebook:
    """The edges found so far, in pieces: one for each run of each chunk."""

    def __init__(self, call: Any, buffers: Buffers, tables: Tables) -> None:
        self._call, self._buffers, self._tables = call, buffers, tables
        self._degrees: list[NDArray[np.uint32]] = []
        self._targets: list[NDArray[np.int32]] = []
        self._labels: list[NDArray[np.int16]] = []

    @property
    def bytes(self) -> int:
        """What they take."""
        pieces = sum(piece.nbytes for piece in self._degrees)
        return pieces + BYTES * sum(len(piece) for piece in self._targets)

    def make_room(self, degrees: NDArray[np.uint32], runs: int) -> None:
        """Make room for the edges of a chunk, whose states have these degrees."""
        self._degrees.append(degrees.copy())
        for run in self._buffers.runs[:runs]:
            taken = sum(bucket.count for bucket in run)
            self._targets.append(np.empty(taken, np.int32))
            self._labels.append(np.empty(taken, np.int16))

    def connect(self, worker: int, runs: int, known: int) -> None:
        """Merge the edges of one of the chunk's ``runs``, which its buckets hold apart.

        Every state has its final number by now: this follows ``number`` on *all* workers.
        """
        if worker >= runs:
            return
        run = self._buffers.runs[worker]
        for bucket, sources in zip(run, self._buffers.sources[worker], strict=True):
            sources[bucket.count] = _LAST
        targets, labels = self._targets[worker - runs], self._labels[worker - runs]
        heads = np.zeros(len(run), np.int64)
        self._call(
            ctypes.addressof(run),
            ctypes.addressof(self._tables.parts),
            heads.ctypes.data,
            len(targets),
            known,
            targets.ctypes.data,
            labels.ctypes.data,
        )

    def graph(self) -> Edges:
        """Return the graph in compressed rows."""
        degrees = np.concatenate([np.zeros(1, np.uint32), *self._degrees])
        return Edges(
            np.cumsum(degrees, dtype=np.int64),
            np.concatenate([np.zeros(0, np.int32), *self._targets]),
            np.concatenate([np.zeros(0, np.int16), *self._labels]),
        )
