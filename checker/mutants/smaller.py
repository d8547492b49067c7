"""A part of a known graph, as a search would have found it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from fivestate.checker.exploration import Edges, Exploration, Finding
from fivestate.checker.graph import rows
from fivestate.spec.language.model import Codes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fivestate.checker.exploration import Integers
    from fivestate.checker.mutants.difference import Graph
    from fivestate.checker.mutants.mutant import Mutant


def without(graph: Graph, mutant: Mutant, removed: Iterable[Integers]) -> Exploration:
    """Return what a search would find of a mutant that lacks these edges of ``graph``.

    Invariants and step properties are not looked at: where they hold of the whole, they hold of
    a part.
    """
    edges = _kept(graph.edges, removed)
    states, parents, steps, levels = _searched(edges)
    names = np.full(graph.exploration.distinct, -1, dtype=np.int32)
    names[states] = np.arange(len(states), dtype=np.int32)
    counts = np.diff(edges.offsets)[states]
    order = rows(edges.offsets, np.arange(len(edges.targets)), states)
    part = Edges(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        names[edges.targets[order]],
        edges.labels[order],
    )
    model = graph.model
    return Exploration(
        model=model,
        engine="part",
        stopped="",
        states=_Part(graph, states),
        parents=names[parents],
        parent_steps=steps,
        levels=levels,
        firings=np.bincount(part.labels, minlength=len(model.steps)).tolist(),
        findings=_witnesses(graph, mutant, states),
        edges=part,
        seconds=0.0,
    )


def _kept(edges: Edges, removed: Iterable[Integers]) -> Edges:
    keep = np.ones(len(edges.targets), dtype=np.bool_)
    for chosen in removed:
        keep[chosen] = False
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)])
    return Edges(before[edges.offsets], edges.targets[keep], edges.labels[keep])


def _searched(edges: Edges) -> tuple[Integers, Integers, Integers, list[int]]:
    """Search breadth first: the states in order, the parent and step of each, and the levels."""
    seen = np.zeros(len(edges.offsets) - 1, dtype=np.bool_)
    frontier: Integers = np.zeros(1, dtype=np.int32)
    seen[0] = True
    found: list[Integers] = [frontier]
    parents: list[Integers] = [np.zeros(1, dtype=np.int32)]
    steps: list[Integers] = [np.full(1, -1)]
    while frontier.size:
        counts = edges.offsets[frontier + 1] - edges.offsets[frontier]
        before = np.repeat(frontier, counts)
        after = rows(edges.offsets, edges.targets, frontier)
        labels = rows(edges.offsets, edges.labels, frontier)
        fresh = np.flatnonzero(~seen[after])
        _, first = np.unique(after[fresh], return_index=True)
        chosen = fresh[np.sort(first)]
        frontier = after[chosen]
        seen[frontier] = True
        found.append(frontier)
        parents.append(before[chosen])
        steps.append(labels[chosen])
    levels = [len(level) for level in found if len(level)]
    return np.concatenate(found), np.concatenate(parents), np.concatenate(steps), levels


def _witnesses(graph: Graph, mutant: Mutant, states: Integers) -> dict[str, Finding]:
    findings: dict[str, Finding] = {}
    for name, shown in graph.shown(mutant, states).items():
        at = np.flatnonzero(shown)
        if at.size:
            findings[name] = Finding(int(at[0]))
    return findings


class _Part(Sequence[Codes]):
    """Some states of a known graph, in an order of their own."""

    def __init__(self, graph: Graph, chosen: Integers) -> None:
        self._graph, self._chosen = graph, chosen

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> Codes: ...
    @overload
    def __getitem__(self, index: slice) -> list[Codes]: ...
    def __getitem__(self, index: int | slice) -> Codes | list[Codes]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        return self._graph.exploration.states[int(self._chosen[places])]

    def column(self, position: int) -> NDArray[np.int64]:
        """Return the values of one cell in all states."""
        return self._graph.columns.of(self._chosen, position)
