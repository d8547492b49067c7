"""Checks: what must hold of an allocator at any time, recomputed from the owners themselves."""

from __future__ import annotations

from collections import Counter

from fivestate.impl.allocator.derived import Derived
from fivestate.impl.chain import Node
from fivestate.impl.pools import Blocks, Owner
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import Device, Phase


class Checks(Derived):
    """The one conservation check: counters are compared with what they count."""

    def check(self) -> None:
        """Check that every block has one owner, and that every count is what it counts.

        It reads the null blocks, so on a device it waits for it.

        Raises:
            AssertionError: something does not hold; the message names it.
        """
        with self._lock:
            for group, pool in self.pools.items():
                pool.check(self._owned(group))
            self._check_cells()
            self._check_copying()
            self._check_interest()
            if not self.null_dirty:
                for group, pool in self.pools.items():
                    _hold(pool.null_is_clean(), f"the null block of {group} is not zero")

    def _owned(self, group: str) -> dict[Owner, list[Blocks]]:
        doubts = [doubt for lots in self.doubts.values() for doubt in lots]
        return {
            Owner.CELL: [c.blocks[group] for c in self.cells() if group in c.blocks],
            Owner.PRIVATE: [r.private[group] for r in self._using if group in r.private],
            Owner.DOOMED: [d.blocks[group] for d in doubts if group in d.blocks],
        }

    def _check_copying(self) -> None:
        copies = (copied for cell in self.cells() for copied in (cell.copy, cell.disk))
        moving = {copied for copied in copies if copied is not None and not copied.complete}
        _hold(self._copying == moving, f"{len(self._copying)} copies are on their way")

    def _check_cells(self) -> None:
        readers = Counter(cell for request in self._using for cell in request.held)
        for cell in self.cells():
            counts = {group: int(blocks.size) for group, blocks in cell.blocks.items()}
            absent, ready = cell.device is Device.ABSENT, cell.device is Device.READY
            _hold(counts == ({} if absent else cell.sizes), f"{cell!r} has {counts} blocks")
            _hold(cell.readers == readers[cell], f"{cell!r}: readers = {cell.readers}")
            _hold((cell in self._order[cell.state]) == ready, f"{cell!r} is out of the order")
            reserved, copied = cell.device is Device.RESERVED, cell.copy is not None
            _hold((cell in self._reserved) == reserved, f"{cell!r} is reserved")
            _hold((cell in self._copied[cell.state]) == copied, f"{cell!r} has a copy")
            _hold((cell in self._loading) == (cell.device is Device.LOADING), f"{cell!r} loads")
            stale = ready and any(self.pools[g].stale[b].any() for g, b in cell.blocks.items())
            _hold(not stale, f"{cell!r} has a block that its last owner wrote")

    def _check_interest(self) -> None:
        interest = Counter[tuple[Node, Request | Node]](
            (step, request)
            for request in self._using
            if request.phase is Phase.RECOVERING
            for step in request.target.path()
        )
        for node in self.nodes():
            if node.prefetching:
                interest.update((step, node) for step in node.path())
        for node in self.nodes():
            expected = {who for step, who in interest if step is node}
            _hold(node.recoverers == expected, f"{node!r}: recoverers = {node.recoverers}")
        for request in self._queue:
            _hold(request.waiting, f"{request!r} is in the queue, and {request.phase.name}")
        for request in self._using:
            _hold(request.in_use, f"{request!r} has a slot, and is {request.phase.name}")


def _hold(truth: bool, message: str) -> None:  # noqa: FBT001 -- what holds is a truth
    if not truth:
        raise AssertionError(message)
