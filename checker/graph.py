"""The state graph: searches on compressed rows, and the networkx view for analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fivestate.checker.exploration import Edges, Exploration

NETWORKX_STATES = 300_000
"""Above this a networkx graph takes gigabytes; the compressed rows serve instead."""


def can_reach(edges: Edges, goal: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return, for each state, whether some path leads from it to a state in ``goal``.

    Args:
        edges: the graph.
        goal: shape (states,).

    Returns:
        Shape (states,).
    """
    states = len(edges.offsets) - 1
    sources = np.repeat(np.arange(states), np.diff(edges.offsets))
    order = np.argsort(edges.targets, kind="stable")
    into = sources[order]
    starts = np.searchsorted(edges.targets[order], np.arange(states + 1))
    reached = goal.copy()
    frontier = np.flatnonzero(reached)
    while frontier.size:
        counts = starts[frontier + 1] - starts[frontier]
        first = np.repeat(starts[frontier] - np.concatenate(([0], counts.cumsum()[:-1])), counts)
        before = np.unique(into[first + np.arange(counts.sum())])
        frontier = before[~reached[before]]
        reached[frontier] = True
    return reached


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
