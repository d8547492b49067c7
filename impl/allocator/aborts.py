"""Ways out in the middle: a request is aborted while it waits, recovers, holds or runs."""

from __future__ import annotations

from fivestate.impl.allocator.base import Doubt, action
from fivestate.impl.allocator.effects import Effects
from fivestate.impl.chain import Cell, Node
from fivestate.impl.requests import RUNS, Request
from fivestate.spec.vocabulary import Copy, Device, Phase


class Aborts(Effects):
    """Who goes away gives back what it had; what may still be touched is withheld."""

    def _lose_interest(self, node: Node, interest: Request | Node) -> list[Doubt]:
        """Somebody no longer recovers a prefix; with the last interest in a node it is cancelled.

        Returns:
            What is withheld for transfers and kernels that may still fly.
        """
        doubts: list[Doubt] = []
        for step in node.path():
            step.recoverers.discard(interest)
            if not step.recoverers:
                for cell in step.cells.values():
                    doubts += self._cancel(cell)
        return doubts

    def _cancel(self, cell: Cell) -> list[Doubt]:
        """Give up what a recovery has made so far of one cell.

        What was reserved is free again. Blocks that a transfer may still touch are withheld, since
        the transfer cannot be called back. What nobody could find any more is given up.
        """
        known, device = cell.node.known, cell.device
        unseen = device is Device.READY and not known
        storing = self.copy_of(cell) is Copy.STORING
        doubts: list[Doubt] = []
        if device in (Device.WRITING, Device.LOADING) or (unseen and storing):
            doubts.append(self._withhold(cell))
        elif device is Device.RESERVED or unseen:
            self._empty(cell)
        if not known:
            self._drop_copy(cell)
            self._drop_disk(cell)
        return doubts

    @action("A-31")
    def abort_waiting(self, request: Request) -> None:
        """A waiting request goes away."""
        self._require("abort_waiting", "waiting", request.waiting, phase=request.phase)
        self._stop_waiting(request)
        self._blank_request(request)

    @action("A-32")
    def abort_recovery(self, request: Request, node: Node) -> list[Doubt]:
        """A recovering request goes away; with the last interest the recovery is cancelled.

        Returns:
            What is withheld: who moves or writes these blocks lets them ``land`` when it ends.
        """
        phase = request.phase
        self._require("abort_recovery", "recovering", phase is Phase.RECOVERING, phase=phase)
        self._require("abort_recovery", "mine", request.want is node, want=request.want)
        doubts = self._lose_interest(node, request)
        self._return_private(request)
        self._blank_request(request)
        return doubts

    @action("A-33")
    def abort_leased(self, request: Request) -> None:
        """A request that holds its prefix and has read nothing goes away."""
        phase = request.phase
        self._require("abort_leased", "leased", phase is Phase.LEASED, phase=phase)
        self._leave(request)

    @action("A-34")
    def abort_step(self, request: Request) -> None:
        """A running request goes away; kernels in flight still read, so it drains, lease held."""
        self._require("abort_step", "running", request.phase in RUNS, phase=request.phase)
        request.phase = Phase.DRAINING

    @action("A-35")
    def drained(self, request: Request) -> None:
        """The last kernel of an aborted request has ended."""
        phase = request.phase
        self._require("drained", "draining", phase is Phase.DRAINING, phase=phase)
        self._leave(request)
