"""Room on demand: what is evicted, in which order, when the first waiter lacks blocks."""

from __future__ import annotations

from fivestate.impl.allocator.cells import Cells
from fivestate.impl.allocator.host import Host
from fivestate.impl.allocator.tree import Tree
from fivestate.impl.chain import Cell
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.need import round_up
from fivestate.spec.vocabulary import CacheState, Device


class Room(Cells, Host, Tree):
    """The policy behind ``make_room``: each state in its own order."""

    def relieve(self, request: Request) -> bool:
        """Evict until the pools have what the first waiter lacks, and no more than that.

        Each state goes in its own order, what was let go longest ago first: chains from their
        leaves, windows wherever they are. Of a long node only the end goes. Nothing is evicted for
        a waiter that is not the first: it would be taken from whoever comes before.

        Returns:
            Whether there is room for it now.

        Raises:
            ValueError: it does not wait.
        """
        self._check_argument("relieve", "request", Request, request)
        with self._lock:
            if not request.waiting:
                raise ValueError(f"relieve: {request!r} does not wait")
            demand = self.demand(request.target, request)
            if self.first(request):
                own = frozenset(self.claims(request.target))
                for state in self.groups_of:
                    while self._relieve_state(state, demand, own):
                        pass
            return self.room(demand)

    def _relieve_state(
        self,
        state: CacheState,
        demand: dict[str, int],
        own: frozenset[Cell],
    ) -> bool:
        """Evict cells of a state in their order; say if it is worth another round.

        It is if something went and more is lacking: what was behind a cell may be gone by now.
        """
        went = False
        for cell in list(self._order[state]):
            lacking = self._lacking(cell, demand)
            if not lacking:
                return False
            went |= cell not in own and self._give_way(cell, lacking)
        return went

    def _lacking(self, cell: Cell, demand: dict[str, int]) -> dict[str, int]:
        """Return, by group of the cell, how many blocks are lacking."""
        lacking = {group: demand.get(group, 0) - self.pools[group].free for group in cell.sizes}
        return {group: count for group, count in lacking.items() if count > 0}

    def _give_way(self, cell: Cell, lacking: dict[str, int]) -> bool:
        """Evict a cell, or as much of its end as is lacking, if it may go; say if it went."""
        behind = cell.node.children.values() if self.only_copy(cell) else ()
        if cell.readers or any(map(self._has_anything, behind)):
            return False
        try:
            self._shorten(cell, lacking)
            if self.only_copy(cell):
                self._clear_dependants(cell)
            self.make_room(cell.node, cell.state)
        except Refused:
            return False
        return True

    def _shorten(self, cell: Cell, lacking: dict[str, int]) -> None:
        """Split a node whose cell has more than is lacking, so that its beginning stays."""
        if cell.state not in self._whole:
            return
        step, node = self.settings.geometry.scheduler_block_size, cell.node
        tokens = max(
            round_up(count * self.pools[group].group.block_size, step)
            for group, count in lacking.items()
        )
        at_tokens = node.end_tokens - tokens
        if self.can_split(node, at_tokens):
            self.split(node, at_tokens)

    def _clear_dependants(self, cell: Cell) -> None:
        """Give up, on every tier, what is worth nothing without this cell."""
        for other in cell.node.cells.values():
            if other is cell:
                continue
            if other.device is Device.READY:
                self.evict(other.node, other.state)
            if self.stored(other):
                self.drop(other.node, other.state)
            if self.archived(other):
                self.erase(other.node, other.state)
