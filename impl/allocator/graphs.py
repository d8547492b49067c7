"""Captured graphs: what they read stays where it was, or they are not replayed (静态图)."""

from __future__ import annotations

from dataclasses import dataclass

from fivestate.impl.allocator.base import action
from fivestate.impl.allocator.effects import Effects
from fivestate.impl.chain import Cell, Node
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import Phase

Addresses = tuple[tuple[int, bytes, bytes], ...]
"""For each group of each cell: where its pool is, and which blocks of which generation it has."""


@dataclass(frozen=True, eq=False)
class Captured:
    """What a captured step reads, as it was when it was captured.

    Attributes:
        node: the prefix at whose end it was captured.
        cells: the cells that it reads.
        addresses: where they are, and of which generation each block is.
        layout: the epoch of the kernels that it consists of.
        weights: the epoch of the weights that it reads.
    """

    node: Node
    cells: tuple[Cell, ...]
    addresses: Addresses
    layout: int
    weights: int


class Graphs(Effects):
    """The static-graph guard: replay only while everything stands as captured, else run eagerly."""

    def addresses(self, cells: tuple[Cell, ...]) -> Addresses:
        """Return where the blocks of some cells are, and of which generation each is."""
        return tuple(
            (
                self.pools[group].storage.data_ptr(),
                blocks.tobytes(),
                self.pools[group].generation[blocks].tobytes(),
            )
            for cell in cells
            for group, blocks in cell.blocks.items()
        )

    def stands(self, graph: object) -> bool:
        """Say whether a captured step would still read what it was captured on."""
        return isinstance(graph, Captured) and (
            (graph.layout, graph.weights) == (self.layout, self.weights)
            and graph.addresses == self.addresses(graph.cells)
        )

    @action("A-71")
    def capture(self, request: Request, node: Node) -> Captured:
        """Capture a step of a running request; its cells stay where they are until ``invalidate``.

        Capture runs kernels on padding, which writes to the null blocks.

        Returns:
            What the step reads.
        """
        phase = request.phase
        self._require("capture", "running", phase is Phase.RUNNING, phase=phase)
        self._require("capture", "mine", request.want is node, want=request.want)
        whole = not request.slid and not request.copied
        self._require("capture", "whole", whole, slid=request.slid, copied=request.copied)
        self._require("capture", "none", node.graph is None, node=node)
        quiet = not any(other.phase is Phase.REPLAYING for other in self._using)
        self._require("capture", "quiet", quiet)
        cells = self.need(node)
        graph = Captured(node, cells, self.addresses(cells), self.layout, self.weights)
        node.graph = graph
        for step in node.path():
            step.graphs.add(graph)
        self.null_dirty = True
        return graph

    @action("A-72")
    def scrub(self) -> None:
        """Clean the null blocks."""
        self._require("scrub", "dirty", self.null_dirty)
        for pool in self.pools.values():
            pool.scrub_null()
        self.null_dirty = False

    @action("A-73")
    def replay(self, request: Request, node: Node) -> None:
        """Replay a graph on a leased prefix instead of running kernel by kernel (重放).

        Whoever cannot runs eagerly; recovery always does, outside the graph.
        """
        phase = request.phase
        self._require("replay", "leased", phase is Phase.LEASED, phase=phase)
        self._require("replay", "mine", request.want is node, want=request.want)
        self._require("replay", "captured", self.stands(node.graph), node=node)
        self._require("replay", "null_clean", not self.null_dirty)
        request.phase = Phase.REPLAYING

    @action("A-74")
    def invalidate(self, node: Node) -> None:
        """Give up a graph that is not being replayed; its cells may go again."""
        self._require("invalidate", "captured", node.graph is not None, node=node)
        self._require("invalidate", "quiet", not self.replaying(node), node=node)
        self._drop_graph(node)

    def _drop_graph(self, node: Node) -> None:
        for step in node.path():
            step.graphs.discard(node.graph)
        node.graph = None
