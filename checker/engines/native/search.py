"""The search: level by level, chunk by chunk, on all workers."""

from __future__ import annotations

import ctypes
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fivestate.checker.engines.native.edges import BYTES as EDGE_BYTES
from fivestate.checker.engines.native.edges import Edgebook
from fivestate.checker.engines.native.memory import (
    BLOCK,
    MAX_STATES,
    Bucket,
    Buffers,
    Store,
    Tables,
)
from fivestate.checker.engines.native.pack import PackedStates
from fivestate.checker.exploration import Exploration, Limits, Progress

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fivestate.checker.engines.native.crew import Crew, Task
    from fivestate.checker.engines.native.program import Program

NAME = "native"

CHUNK_STEPS = 1 << 19
"""A chunk is so many states that no more steps than this can be taken from them."""

SHARED = 256
"""A chunk of fewer states is not worth waking the other workers."""

Share = tuple[int, int]
"""The first state of a run, counted from the chunk's first, and how many there are."""


class Search:
    """One exploration of one model."""

    def __init__(self, program: Program, crew: Crew, *, edges: bool) -> None:
        self.program, self.crew = program, crew
        model, layout = program.model, program.layout
        workers = program.workers
        steps = len(model.steps)
        self.chunk = max(workers, min(CHUNK_STEPS // max(steps, 1), BLOCK))
        self.call: dict[str, Any] = program.code.functions
        self.store = Store(layout.words)
        self.tables = Tables(workers)
        self.buffers = Buffers(layout.words, workers, self.chunk, steps, self.tables)
        self.notes = [program.claims.blank() for _ in range(workers)]
        self.firings = np.zeros((workers, max(steps, 1)), np.int64)
        self._degrees = np.zeros(self.chunk, np.uint32)
        book = Edgebook(self.call["connect"], self.buffers, self.tables)
        self.edges = book if edges else None
        self.store.put_first(layout.rows(model.initial))
        self.known, self.explored = 1, 0
        self.levels: list[int] = []
        self.call["judge"](self.store.states.ctypes.data, 0, 1, self.notes[0].ctypes.data)

    def run(
        self,
        limits: Limits,
        interrupted: threading.Event,
        progress: Progress | None,
        started: float,
    ) -> str:
        """Search until everything is seen or something stops it; return what did, or nothing."""
        level_end = 0
        while self.explored < self.known:
            if self.explored == level_end:
                self.levels.append(self.known - self.explored)
                level_end = self.known
            stopped = self._reason(limits, interrupted, started)
            if stopped:
                return stopped
            if progress is not None:
                progress(self.known, self.explored)
            ahead = min(level_end, (self.explored // BLOCK + 1) * BLOCK) - self.explored
            count = min(ahead, self.chunk)
            if limits.states is not None:  # so that it is reached by the last state explored
                steps = max(1, len(self.program.model.steps))
                count = min(count, max(1, (limits.states - self.known) // steps))
            self._explore(count)
        return ""

    def result(self, stopped: str, seconds: float) -> Exploration:
        """Return what was covered, and let go of what only the search needs."""
        program = self.program
        self.tables.clear()
        states, parents, by = self.store.taken(self.known)
        packed = PackedStates(program.layout, states)
        return Exploration(
            model=program.model,
            engine=NAME,
            stopped=stopped,
            states=packed,
            parents=parents,
            parent_steps=by,
            levels=self.levels,
            firings=self.firings.sum(axis=0)[: len(program.model.steps)].tolist(),
            findings=program.claims.findings(self.notes, packed),
            edges=None if self.edges is None else self.edges.graph(),
            seconds=seconds,
        )

    def bytes_needed(self) -> int:
        """Return what states, tables and edges take if all that the next chunk finds is new."""
        more, workers = self.chunk * len(self.program.model.steps), self.program.workers
        tables = sum(4 * self.tables.size_for(at, more // workers) for at in range(workers))
        taken = tables + (self.known + more) * self.store.bytes_per_state
        if self.edges is not None:
            taken += self.edges.bytes + more * EDGE_BYTES
        return taken

    def _reason(self, limits: Limits, interrupted: threading.Event, started: float) -> str:
        if interrupted.is_set():
            return "interrupted"
        if limits.states is not None and self.known >= limits.states:
            return f"limit of {limits.states:,} states"
        if limits.seconds is not None and time.perf_counter() - started >= limits.seconds:
            return f"limit of {limits.seconds:g} s"
        if limits.bytes is not None and self.bytes_needed() > limits.bytes:
            return f"limit of {limits.bytes:,} bytes"
        if self.known >= MAX_STATES:
            return f"limit of {MAX_STATES:,} states that the native engine can number"
        return ""

    def _explore(self, count: int) -> None:
        """Explore the next ``count`` states, all of one level and one block."""
        workers = self.program.workers
        alone = workers == 1 or count <= min(SHARED, self.buffers.share)
        shares = _shares(count, 1 if alone else workers)
        ends = np.zeros((len(shares) + 1, workers), np.int64)
        each = _in_turn(workers) if alone else self.crew.each
        each(lambda worker: self._expand(worker, shares))
        each(lambda worker: self._insert(worker, ends))
        fresh = int(ends[-1].sum())
        self.store.reserve(self.known + fresh)
        each(lambda worker: self._number(worker, ends))
        if self.edges is not None:
            book = self.edges
            book.make_room(self._degrees[:count], len(shares))
            each(lambda worker: book.connect(worker, len(shares), self.known))
        self.known += fresh
        self.explored += count

    def _expand(self, worker: int, shares: list[Share]) -> None:
        if worker >= len(shares):
            return
        first, count = shares[worker]
        run = self.buffers.runs[worker]
        for bucket in run:
            bucket.count = 0
        block, offset = divmod(self.explored + first, BLOCK)
        base = int(self.store.states[block]) + offset * 8 * self.store.words
        self.call["expand"](
            base,
            count,
            first,
            self.explored + first,
            ctypes.addressof(run),
            self.firings[worker].ctypes.data,
            self._degrees[first:].ctypes.data,
            self.notes[worker].ctypes.data,
        )

    def _insert(self, worker: int, ends: NDArray[np.int64]) -> None:
        runs = self.buffers.runs[: len(ends) - 1]
        part = ctypes.addressof(self.tables.parts[worker])
        directory = self.store.states.ctypes.data
        mine = sum(run[worker].count for run in runs)
        found = sum(bucket.count for run in runs for bucket in run)
        if self.tables.grown(worker, mine, self.known + found + 1):
            self.call["rebuild"](part, directory, self.known, worker)
        else:
            self.call["settle"](part)
        self.tables.parts[worker].fresh_count = 0
        for at, run in enumerate(runs):
            bucket = ctypes.addressof(run) + worker * ctypes.sizeof(Bucket)
            ends[at + 1, worker] = self.call["insert"](
                part, bucket, directory, self.known, int(self.edges is not None)
            )
        self.tables.held[worker] += int(ends[-1, worker])

    def _number(self, worker: int, ends: NDArray[np.int64]) -> None:
        if worker >= len(ends) - 1:
            return
        heads = ends[worker].copy()
        first = self.known + int(ends[worker].sum())
        total = self.known + int(ends[worker + 1].sum()) - first
        store, parts = self.store, ctypes.addressof(self.tables.parts)
        directories = (store.states, store.parents, store.by)
        self.call["number"](
            parts,
            heads.ctypes.data,
            total,
            first,
            self.explored,
            *(directory.ctypes.data for directory in directories),
        )
        notes = self.notes[worker].ctypes.data
        self.call["judge"](store.states.ctypes.data, first, first + total, notes)


def _shares(count: int, workers: int) -> list[Share]:
    """Cut a chunk into one run for each worker."""
    ends = [count * at // workers for at in range(workers + 1)]
    return [(low, high - low) for low, high in pairwise(ends)]


def _in_turn(workers: int) -> Callable[[Task], None]:
    """Return what does every worker's share, one after the other."""

    def each(task: Task) -> None:
        for worker in range(workers):
            task(worker)

    return each
