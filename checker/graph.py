"""The state graph: searches on compressed rows, and the networkx view for analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fivestate.checker.exploration import Edges, Exploration, Integers

NETWORKX_STATES = 300_000
"""Above this a networkx graph takes gigabytes; the compressed rows serve instead."""


def matrix(edges: Edges) -> csr_array:
    """Return the graph as a sparse matrix: an entry for each pair of states with a step."""
    states = len(edges.offsets) - 1
    ones = np.ones(len(edges.targets), dtype=np.int8)
    return csr_array((ones, edges.targets, edges.offsets), shape=(states, states))


def components(edges: Edges) -> tuple[int, NDArray[np.int32]]:
    """Return how many strongly connected components there are, and the one of each state."""
    count, component = connected_components(matrix(edges), directed=True, connection="strong")
    return int(count), component


def sources(edges: Edges) -> NDArray[np.int32]:
    """Return the state in which each edge starts, shape (edges,)."""
    states = np.arange(len(edges.offsets) - 1, dtype=np.int32)
    return np.repeat(states, np.diff(edges.offsets))


def final_components(edges: Edges) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the component of each state, and whether nothing leads out of each component."""
    count, component = components(edges)
    before, after = component[sources(edges)], component[edges.targets]
    final = np.ones(count, dtype=np.bool_)
    final[before[before != after]] = False
    return component, final


def can_reach(edges: Edges, goal: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return, for each state, whether some path leads from it to a state in ``goal``.

    Args:
        edges: the graph.
        goal: shape (states,).

    Returns:
        Shape (states,).
    """
    into = matrix(edges).tocsc()
    reached = goal.copy()
    frontier: Integers = np.flatnonzero(reached)
    while frontier.size:
        before = np.unique(rows(into.indptr, into.indices, frontier))
        frontier = before[~reached[before]]
        reached[frontier] = True
    return reached


def rows(offsets: Integers, entries: Integers, chosen: Integers) -> Integers:
    """Return the entries of the chosen compressed rows, one row after the other."""
    counts = offsets[chosen + 1] - offsets[chosen]
    ends = counts.cumsum()
    first = np.repeat(offsets[chosen] - (ends - counts), counts)
    picked: Integers = entries[first + np.arange(int(ends[-1]) if ends.size else 0)]
    return picked


def to_networkx(exploration: Exploration) -> nx.MultiDiGraph[int]:
    """Return the graph with states as nodes and one edge a step, labelled as a story writes it.

    Raises:
        ValueError: the edges were not kept, or there are too many states.
    """
    edges = exploration.edges
    if edges is None:
        raise ValueError("the edges were not kept: explore with edges=True")
    if exploration.distinct > NETWORKX_STATES:
        message = f"{exploration.distinct:,} states are too many for networkx ({NETWORKX_STATES:,})"
        raise ValueError(message)
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(model=exploration.model.name)
    graph.add_nodes_from(range(exploration.distinct))
    labels = [step.label for step in exploration.model.steps]
    for source in range(len(edges.offsets) - 1):
        for at in range(int(edges.offsets[source]), int(edges.offsets[source + 1])):
            graph.add_edge(source, int(edges.targets[at]), step=labels[int(edges.labels[at])])
    return graph
