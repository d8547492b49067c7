"""What follows from what the allocator has: who holds what, what is usable, what has room."""

from __future__ import annotations

from itertools import chain

from fivestate.impl.allocator.needs import Needs
from fivestate.impl.chain import Cell, Node, copy_state
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import COMPRESSED, CacheState, Copy, Device, Phase

COMPLETE = (Copy.STORED, Copy.OLD)


class Derived(Needs):
    """The questions that guards ask, under the names that the machine gives them."""

    def copy_of(self, cell: Cell) -> Copy:
        """Return what the tier next to the device has of a cell."""
        return copy_state(cell.copy, self.layout)

    def disk_of(self, cell: Cell) -> Copy:
        """Return what the disk behind that tier has of a cell."""
        return copy_state(cell.disk, self.layout)

    @staticmethod
    def stored(cell: Cell) -> bool:
        """Say whether the tier next to the device has a complete copy."""
        return cell.copy is not None and cell.copy.complete

    @staticmethod
    def archived(cell: Cell) -> bool:
        """Say whether the disk behind that tier has a complete copy."""
        return cell.disk is not None and cell.disk.complete

    def kept(self, cell: Cell) -> bool:
        """Say whether some tier off the device has a complete copy."""
        return self.stored(cell) or self.archived(cell)

    def copies(self, group: str, state: CacheState) -> int:
        """Return how many blocks of a group the tier next to the device has, or is getting."""
        return sum(cell.sizes.get(group, 0) for cell in self._copied[state])

    def dirty_copies(self, group: str, state: CacheState) -> int:
        """Return how many of them the disk does not have: these cannot just be given up."""
        copied = self._copied[state]
        return sum(cell.sizes.get(group, 0) for cell in copied if not self.archived(cell))

    def host_room(self, cell: Cell) -> bool:
        """Say whether a copy of the cell fits into the tier next to the device now."""
        limits = self.settings.host_blocks
        return all(
            group not in limits or self.copies(group, cell.state) + count <= limits[group]
            for group, count in cell.sizes.items()
        )

    def host_stays_clean(self, cell: Cell) -> bool:
        """Say whether with a copy of the cell that the disk lacks, a fetch still finds a place.

        The place is that of copies that can be given up at once, since the disk has them too; it
        has to do for the largest copy there has been.
        """
        limits = self.settings.host_blocks
        return all(
            group not in limits
            or self.dirty_copies(group, cell.state)
            + count
            + max(count, self._largest.get(group, 0))
            <= limits[group]
            for group, count in cell.sizes.items()
        )

    def awaits_fetch(self, state: CacheState) -> list[Cell]:
        """Return the cells of a state that wait for a copy that only the disk has."""
        return [
            cell
            for cell in self._reserved
            if cell.state is state and cell.copy is None and self.archived(cell)
        ]

    def verdict(self, node: Node) -> Phase:
        """Return what a request that looks at ``node`` now is told: MISS, PARTIAL or HIT.

        HIT: all that a resume at its end requires is there and fits. PARTIAL: the entries of the
        whole prefix are somewhere, and all else can be made from them.
        """
        if not self.known(node):
            return Phase.MISS
        if self.complete(node):
            return Phase.HIT
        entries = [cell for cell in self.need(node) if cell.state is COMPRESSED]
        somewhere = all(cell.device is Device.READY or self.kept(cell) for cell in entries)
        return Phase.PARTIAL if entries and somewhere else Phase.MISS

    def fresh(self, request: Request) -> bool:
        """Say whether the verdict that a waiting request was told still stands."""
        want = request.want
        return request.waiting and want is not None and request.seen == self.losses(want)

    def first(self, request: Request) -> bool:
        """Say whether no request has waited longer."""
        return next(iter(self._queue), request) is request

    @staticmethod
    def unleased(cell: Cell) -> bool:
        """Say whether nobody holds the cell."""
        return not cell.readers

    @staticmethod
    def recovering(node: Node) -> bool:
        """Say whether somebody recovers this node, for itself or for a node behind it."""
        return bool(node.recoverers)

    @staticmethod
    def others_recover(request: Request, node: Node) -> bool:
        """Say whether somebody other than this request recovers the node."""
        return bool(node.recoverers - {request})

    def missing(self, node: Node) -> dict[str, int]:
        """Return, by group, how many blocks a recovery of ``node`` lacks."""
        lacking: dict[str, int] = {}
        for cell in self.claims(node):
            if cell.device is Device.ABSENT:
                for group, count in cell.sizes.items():
                    lacking[group] = lacking.get(group, 0) + count
        return lacking

    def demand(self, node: Node, request: Request) -> dict[str, int]:
        """Return, by group, how many free blocks an admission of the request to ``node`` asks.

        The one formula: admission and eviction on demand both ask it. Two that disagree leave a
        waiter stuck (vLLM #39734).
        """
        asked = self.missing(node)
        for group, count in request.private_demand.items():
            asked[group] = asked.get(group, 0) + count
        return asked

    def room(self, demand: dict[str, int]) -> bool:
        """Say whether every pool has as many free blocks as are asked of it."""
        pools = self.pools
        for group, count in demand.items():  # noqa: SIM110 -- twice as fast as all()
            if pools[group].free < count:
                return False
        return True

    def slot_free(self) -> bool:
        """Say whether one more request may be in use."""
        return len(self._using) < self.settings.slots

    def replaying(self, node: Node) -> bool:
        """Say whether a captured step is reading the node now."""
        return any(r.phase is Phase.REPLAYING and r.want is node for r in self._using)

    def only_copy(self, cell: Cell) -> bool:
        """Say whether it is compressed KV with no copy elsewhere: all else hangs on it."""
        return cell.state is COMPRESSED and not self.kept(cell)

    def dependants_gone(self, cell: Cell) -> bool:
        """Say whether nothing is left that is worth something only with this cell.

        That is all else of its node, on the device or off it, and whatever is behind the node.
        """
        node = cell.node
        return all(self._blank(other) for other in node.cells.values() if other is not cell) and (
            not any(self._has_anything(child) for child in node.children.values())
        )

    @staticmethod
    def _blank(cell: Cell) -> bool:
        return cell.device is Device.ABSENT and cell.copy is None and cell.disk is None

    def _has_anything(self, node: Node) -> bool:
        """Say whether a node, or one behind it, is known or has a cell on some tier."""
        return any(
            step.known or not all(self._blank(cell) for cell in step.cells.values())
            for step in chain((node,), node.descendants())
        )
