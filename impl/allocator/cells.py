"""What happens to cells on the device: they are made, published, repacked, evicted."""

from __future__ import annotations

from fivestate.impl.allocator.base import Doubt, action
from fivestate.impl.allocator.effects import Effects
from fivestate.impl.allocator.settings import MADE_FROM
from fivestate.impl.chain import Cell, Node
from fivestate.impl.pools import Blocks, Owner
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, CacheState, Copy, Device, Fit


class Cells(Effects):
    """The life of a cell."""

    @action("A-21", "state")
    def make(self, node: Node, state: CacheState) -> dict[str, Blocks]:
        """Start making a missing or stale cell from the cells it is made from (写入, 重算, 重建).

        COMPRESSED is computed from the tokens, if the prefix is not known; WINDOW and INDEXER from
        it; TAIL from it and WINDOW. A recovery makes cells under a prefix that is known.

        Returns:
            By group, the blocks to write; what their last owner wrote has been zeroed.
        """
        cell = self._cell("make", node, state)
        fit = cell.fit(self.layout)
        stale = fit is Fit.OUT_OF_STEP and self.recovering(node)
        due = cell.device is Device.RESERVED or stale
        self._require("make", "due", due, device=cell.device, fit=fit)
        unknown = state is not COMPRESSED or not node.known
        self._require("make", "unknown", unknown, known=node.known)
        usable = all(source.usable(self.layout) for source in self.sources(cell))
        self._require("make", "sources", usable)
        return self._start_writing(cell)

    def _start_writing(self, cell: Cell) -> dict[str, Blocks]:
        cell.device, cell.generation = Device.WRITING, cell.node.entries_generation
        self._order[cell.state].pop(cell, None)
        self._reserved.discard(cell)
        for group, blocks in cell.blocks.items():
            self.pools[group].clean(blocks)
        return cell.blocks

    @action("A-22", "state")
    def made(self, node: Node, state: CacheState) -> None:
        """The cell is complete."""
        cell = self._cell("made", node, state)
        writing = cell.device is Device.WRITING
        self._require("made", "writing", writing, device=cell.device)
        self._arrive_in_cell(cell, self.layout)

    @action("A-23", COMPRESSED)
    def publish(self, node: Node) -> None:
        """Put the prefix into the hash index, once every group of it is complete (发布)."""
        self._require("publish", "unknown", not node.known, known=node.known)
        self._require("publish", "complete", self.complete(node), node=node)
        node.known = True

    @action("A-24", "state")
    def repack(self, node: Node, state: CacheState) -> None:
        """Move a cell's bytes to where, and into the layout in which, the kernels look (重排).

        It repairs place and layout, never an index that is out of step. Only for who recovers: it
        costs bandwidth.
        """
        cell = self._cell("repack", node, state)
        fit = cell.fit(self.layout)
        unfit = fit in (Fit.MISALIGNED, Fit.OLD_LAYOUT)
        self._require("repack", "unfit", unfit, fit=fit)
        self._require("repack", "wanted", self.recovering(node), node=node)
        for group, blocks in cell.blocks.items():
            pool = self.pools[group]
            pages = pool.read(blocks)
            if cell.offset_bytes:
                pages = pages.roll(-cell.offset_bytes, 1)
            if cell.layout != self.layout:
                pages = self.settings.convert(group, pages, cell.layout, self.layout)
            pool.write(blocks, pages)
        cell.layout, cell.offset_bytes = self.layout, 0

    @action("A-25", INDEXER)
    def reindex(self, node: Node) -> dict[str, Blocks]:
        """Rebuild an index in place, while nobody holds it and no graph reads it (索引更新).

        A request that was told HIT before must look again.

        Returns:
            By group, the blocks to write.
        """
        cell = self._cell("reindex", node, INDEXER)
        usable = cell.usable(self.layout)
        self._require("reindex", "usable", usable, device=cell.device)
        self._require("reindex", "unleased", self.unleased(cell), readers=cell.readers)
        self._require("reindex", "settled", not self.recovering(node), node=node)
        self._require("reindex", "uncaptured", not node.graphs, graphs=len(node.graphs))
        sources = all(source.usable(self.layout) for source in self.sources(cell))
        self._require("reindex", "sources", sources)
        node.losses += 1
        return self._start_writing(cell)

    def _require_evictable(self, action: str, cell: Cell) -> None:
        """Refuse to take a cell that somebody holds, reads, stores or builds on."""
        node, device = cell.node, cell.device
        self._require(action, "ready", device is Device.READY, device=device)
        self._require(action, "unleased", self.unleased(cell), readers=cell.readers)
        self._require(action, "settled", not self.recovering(node), node=node)
        self._require(action, "uncaptured", not node.graphs, graphs=len(node.graphs))
        storing = self.copy_of(cell) is Copy.STORING
        self._require(action, "not_storing", not storing)
        builds = any(
            other.device is Device.WRITING and cell.state in MADE_FROM[other.state]
            for other in node.cells.values()
        )
        self._require(action, "not_a_source", not builds)
        last = not self.only_copy(cell) or self.dependants_gone(cell)
        self._require(action, "last", last)

    @action("A-26", "state")
    def evict(self, node: Node, state: CacheState) -> None:
        """Take the blocks of a cell that nobody holds or recovers (淘汰).

        Each state is evicted on its own. Compressed KV without a copy goes last, and the hash entry
        goes with it.
        """
        cell = self._cell("evict", node, state)
        self._require_evictable("evict", cell)
        self._take_frame(cell)

    @action("A-27", "state")
    def make_room(self, node: Node, state: CacheState) -> None:
        """Evict because the first waiter lacks a block of this state (按需淘汰).

        Demand is admission's own formula; a pool that is merely not empty may still be too small.
        Never a cell of the waiter's own prefix: it would be missing next.
        """
        cell = self._cell("make_room", node, state)
        self._require_evictable("make_room", cell)
        self._require("make_room", "demanded", self.demanded(cell), state=state)
        self._take_frame(cell)

    def demanded(self, cell: Cell) -> bool:
        """Say whether the first waiter, on another prefix, lacks blocks such as this cell's."""
        request = next(iter(self._queue), None)
        if request is None:
            return False
        want = request.target
        if cell.node is want or any(cell is claimed for claimed in self.claims(want)):
            return False
        demand = self.demand(want, request)
        return any(self.pools[group].free < demand.get(group, 0) for group in cell.sizes)

    @action("A-28", "state")
    def land(self, state: CacheState, *, doubt: Doubt | None = None) -> Doubt:
        """A transfer whose request is gone reaches its blocks.

        Args:
            state: the state that it was for.
            doubt: which one; by default the one that was given up first.
        """
        flying = [lot for lot in self.doubts.get(state, ()) if not lot.landed]
        if doubt is not None:
            flying = [lot for lot in flying if lot is doubt]
        self._require("land", "flying", bool(flying), state=state)
        flying[0].landed = True
        return flying[0]

    def release_withheld(self, state: CacheState, blocks: dict[str, Blocks]) -> bool:
        """Land what is withheld of these blocks and give it back; say whether anything was.

        Args:
            state: the state that they are for.
            blocks: what the cell had when its transfer began, and no other with the same numbers.
        """
        with self._lock:
            for doubt in self.doubts[state]:
                if doubt.blocks is blocks:
                    self.land(state, doubt=doubt)
                    self.reclaim(state)
                    return True
        return False

    @action("A-29", "state")
    def reclaim(self, state: CacheState) -> None:
        """Give back withheld blocks, once their transfer has landed."""
        lots = self.doubts.get(state, [])
        landed = next((lot for lot in lots if lot.landed), None)
        self._require("reclaim", "landed", landed is not None, state=state)
        assert landed is not None  # noqa: S101 -- the guard above says so
        lots.remove(landed)
        for group, blocks in landed.blocks.items():
            self.pools[group].give(blocks, Owner.DOOMED)
