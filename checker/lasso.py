"""Lassos: a run that never leaves a trap, told as a way there and a round that repeats."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from fivestate.checker.liveness import FairGraph, Trap

Hop = tuple[int, int]
"""A step's number and the state it leads to."""


class Rounds:
    """The part of a graph in which a fair run stays.

    Args:
        graph: the graph and its promises.
        trap: where the run stays.
    """

    def __init__(self, graph: FairGraph, trap: Trap) -> None:
        edges = graph.exploration.edges
        if edges is None:
            raise ValueError("a lasso needs the graph's edges")
        inside = np.zeros(graph.states, dtype=np.bool_)
        inside[trap.states] = True
        keep = inside[graph.before] & inside[graph.after] & ~graph.finite
        self.start = int(trap.states[0])
        self.hops: dict[int, list[Hop]] = {int(state): [] for state in trap.states}
        for before, step, after in zip(
            graph.before[keep].tolist(),
            edges.labels[keep].tolist(),
            graph.after[keep].tolist(),
            strict=True,
        ):
            self.hops[before].append((step, after))
        self.promised = [*graph.weak, *graph.strong]
        self.possible = {
            step: {int(s) for s in graph.before[graph.edges_of[step]] if inside[s]}
            for step in self.promised
        }

    def round(self) -> list[int]:
        """Return the steps of a round from the start back to it that keeps every promise.

        Each promised step is taken in it, or impossible somewhere on it. Empty: where the run
        stays, nothing that is promised is possible.
        """
        tour: list[int] = []
        at, visited, taken = self.start, {self.start}, set[int]()
        for step in self.promised:
            kept = step in taken or any(s not in self.possible[step] for s in visited)
            if kept:
                continue
            for hop_step, state in self._way(at, _is(step), self._impossible(step)):
                tour.append(hop_step)
                taken.add(hop_step)
                visited.add(state)
                at = state
        if at != self.start or tour:
            tour += [step for step, _ in self._way(at, _never, _is(self.start))]
        return tour

    def _impossible(self, step: int) -> Callable[[int], bool]:
        return lambda state: state not in self.possible[step]

    def _way(
        self,
        start: int,
        wanted_step: Callable[[int], bool],
        wanted_state: Callable[[int], bool],
    ) -> list[Hop]:
        """Return the shortest way to a wanted state, or over a wanted step."""
        if wanted_state(start):
            return []
        back: dict[int, tuple[int, Hop]] = {}
        seen, todo = {start}, deque([start])
        while todo:
            state = todo.popleft()
            for hop in self.hops[state]:
                step, after = hop
                if wanted_step(step) or (wanted_state(after) and after not in seen):
                    return [*self._trail(back, start, state), hop]
                if after not in seen:
                    seen.add(after)
                    back[after] = (state, hop)
                    todo.append(after)
        raise ValueError("a fair part does not let its promises be kept")

    @staticmethod
    def _trail(back: dict[int, tuple[int, Hop]], start: int, state: int) -> list[Hop]:
        trail: list[Hop] = []
        while state != start:
            state, hop = back[state]
            trail.append(hop)
        return trail[::-1]


def _is(wanted: int) -> Callable[[int], bool]:
    return lambda number: number == wanted


def _never(step: int) -> bool:
    del step
    return False
