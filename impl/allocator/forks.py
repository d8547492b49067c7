"""Forks: two requests go on from one prefix, and neither writes into what both read."""

from __future__ import annotations

from fivestate.impl.allocator.base import action
from fivestate.impl.allocator.effects import Effects
from fivestate.impl.chain import Node
from fivestate.impl.pools import Blocks
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import TAIL, Phase


class Forks(Effects):
    """A prefix shared by who runs on it."""

    @action("A-36")
    def fork(self, source: Request, request: Request, node: Node) -> None:
        """A second request goes on from where a running one stands (分叉).

        It needs no verdict, for the first holds what both read; it does need its own blocks, and
        does not take them from who waits.
        """
        running = source.phase is Phase.RUNNING
        self._require("fork", "running", running, phase=source.phase)
        self._require("fork", "theirs", source.want is node, want=source.want)
        idle = request.phase is Phase.IDLE
        self._require("fork", "idle", idle, phase=request.phase)
        self._require("fork", "nobody_waits", not self._queue, waiting=len(self._queue))
        self._require("fork", "slot", self.slot_free(), in_use=len(self._using))
        demand = request.private_demand
        self._require("fork", "room", self.room(demand), **demand)
        complete = self.known(node) and self.complete(node)
        self._require("fork", "complete", complete, node=node)
        request.phase, request.want = Phase.LEASED, node
        self._pin(request, node)
        self._claim_private(request)

    @action("A-37", TAIL)
    def copy_on_write(self, request: Request) -> dict[str, Blocks]:
        """A request that will write into the tail's last block copies it first (写时复制).

        From then on it reads its own, and lets the shared one go.

        Returns:
            By group, its own blocks of the tail.

        Raises:
            ValueError: it has fewer private blocks than the tail; nothing is copied.
        """
        phase = request.phase
        self._require("copy_on_write", "running", phase is Phase.RUNNING, phase=phase)
        self._require("copy_on_write", "shared", not request.copied)
        shared, own = self._shared_tail(request), dict[str, Blocks]()
        for group, blocks in shared.items():
            own[group] = request.private.get(group, blocks[:0])[: blocks.size]
            if own[group].size < blocks.size:
                has = f"{own[group].size} private blocks of {group}"
                raise ValueError(f"copy_on_write: {request!r} has {has}, the tail {blocks.size}")
        for group, blocks in shared.items():
            self.pools[group].write(own[group], self.pools[group].read(blocks))
        request.copied = True
        self._unpin(request, TAIL)
        return own

    def _shared_tail(self, request: Request) -> dict[str, Blocks]:
        """Return the blocks of the tail at the end of the request's prefix, by group."""
        cell = request.target.cells.get(TAIL)
        return {} if cell is None else cell.blocks

    @action("A-38", TAIL)
    def append(self, request: Request) -> dict[str, Blocks]:
        """A request writes its next rows behind the prefix, into a tail of its own.

        Returns:
            By group, the blocks of the tail that it writes to.
        """
        phase = request.phase
        self._require("append", "running", phase is Phase.RUNNING, phase=phase)
        self._require("append", "own", request.copied)
        self._require("append", "new", not request.grown)
        request.grown = True
        shared = self._shared_tail(request)
        if not request.copied:
            return shared
        return {group: request.private[group][: blocks.size] for group, blocks in shared.items()}
