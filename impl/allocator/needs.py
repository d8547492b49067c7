"""Needs: which cells a resume requires, which a recovery, and whether they are there."""

from __future__ import annotations

from fivestate.impl.allocator.base import Base
from fivestate.impl.allocator.settings import MADE_FROM
from fivestate.impl.chain import Cell, Node
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, CacheState, Device


class Needs(Base):
    """What follows from the shape of the tree: a prefix is a path, and needs cells along it."""

    def need(self, node: Node) -> tuple[Cell, ...]:
        """Return the cells that a resume at the end of ``node`` requires, the first tokens first.

        Entries and index of every node from the root on; of windows, tails and chunks those that
        overlap what the query behind the node reads.
        """
        shape, cells = node._need  # noqa: SLF001 -- what it needs is remembered where it is asked
        if shape != self._shape:
            before = (-1, ()) if node.parent is None else node.parent._need  # noqa: SLF001 -- as above
            if before[0] == self._shape and self.has_rows(node):
                whole = [cell for cell in before[1] if cell.state in self._whole]
                cells = (*whole, *node.cells.values())
            else:
                cells = tuple(self._needed(node))
            node._need = self._shape, cells  # noqa: SLF001 -- as above
        return cells

    def has_rows(self, node: Node) -> bool:
        """Say whether a node is so long that it has every row that a resume at its end requires.

        Then its own windows, tails and chunks are required and no others; a shorter one may do too.
        """
        return node.tokens >= self._most_rows

    def _needed(self, node: Node) -> list[Cell]:
        path, found = node.path(), list[Cell]()
        first = {state: self._first_needed(state, node.end_tokens) for state in self.groups_of}
        for step in path:
            for state, cell in step.cells.items():
                if state in self._whole or step.end_tokens > first[state]:
                    found.append(cell)
        return found

    def _first_needed(self, state: CacheState, end_tokens: int) -> int:
        needs = (group.need(end_tokens) for group in self.groups_of[state])
        return min((need.start for need in needs if need.tokens), default=end_tokens)

    def sources(self, cell: Cell) -> list[Cell]:
        """Return the cells that a cell is made from.

        They are those of its own node, and the entries before it; of entries, all that a resume at
        the start of their node requires, for they are computed from there.
        """
        node = cell.node
        own = [node.cells[state] for state in MADE_FROM[cell.state] if state in node.cells]
        before = node.parent
        if before is None or before.parent is None or cell.state is INDEXER:
            return own
        needed = self.need(before)
        if cell.state is not COMPRESSED:
            needed = tuple(other for other in needed if other.state is COMPRESSED)
        return [*needed, *own]

    def claims(self, node: Node) -> tuple[Cell, ...]:
        """Return the cells that a recovery of ``node`` requires.

        They are what a resume at its end needs, also at the end of each node on the way that is
        not known, for it has to be published; and what the missing ones of these are made from.
        Entries of a node that is known are loaded, so nothing is claimed to compute them; if that
        load fails, whoever recovers has to abort and be admitted to more.
        """
        unknown = (step for step in node.path() if not step.known and step is not node)
        claimed = dict.fromkeys(cell for step in (*unknown, node) for cell in self.need(step))
        look = list(claimed)
        while look:
            cell = look.pop()
            loaded = cell.state is COMPRESSED and cell.node.known
            if cell.device is not Device.READY and not loaded:
                more = [source for source in self.sources(cell) if source not in claimed]
                claimed.update(dict.fromkeys(more))
                look += more
        return tuple(claimed)

    def known(self, node: Node) -> bool:
        """Say whether the prefix that ends with ``node`` is in the hash index."""
        step: Node | None = node
        while step is not None:
            if not step.known:
                return False
            step = step.parent
        return True

    def complete(self, node: Node) -> bool:
        """Say whether all that a resume at the end of ``node`` requires is there and fits."""
        layout = self.layout
        for cell in self.need(node):  # noqa: SIM110 -- twice as fast as all()
            if not cell.usable(layout):
                return False
        return True

    def losses(self, node: Node) -> int:
        """Return how often something of the prefix that ends with ``node`` has been lost."""
        losses, step = self._everywhere, node
        while step.parent is not None:
            losses += step.losses
            step = step.parent
        return losses
