"""The tier next to the device is finite; before a disk, room in it costs nothing."""

from __future__ import annotations

from contextlib import suppress

from fivestate.impl.allocator.base import action
from fivestate.impl.allocator.tiers import Tiers
from fivestate.impl.chain import Node
from fivestate.impl.refusals import Refused
from fivestate.spec.vocabulary import CacheState


class Host(Tiers):
    """Room in the tier next to the device."""

    @action("A-57", "state")
    def make_host_room(self, node: Node, state: CacheState) -> None:
        """Drop a host copy that the disk has too, because a fetch lacks its place (按需淘汰).

        Nothing is lost by it; never under a load or before one.
        """
        cell = self._cell("make_host_room", node, state)
        twice = self.stored(cell) and self.archived(cell)
        self._require("make_host_room", "twice", twice)
        self._require("make_host_room", "unclaimed", self.unclaimed(cell), device=cell.device)
        self._require("make_host_room", "demanded", self.host_demanded(state), state=state)
        self._drop_copy(cell)

    def host_demanded(self, state: CacheState) -> bool:
        """Say whether a fetch waits for a place in host memory, and there is none."""
        return any(not self.host_room(cell) for cell in self.awaits_fetch(state))

    def relieve_host(self, node: Node, state: CacheState) -> bool:
        """Give up host copies that the disk has too, oldest first, until a fetch finds its place.

        Returns:
            Whether there is room for a copy of this cell now.
        """
        self._check_argument("relieve_host", "node", Node, node)
        with self._lock:
            wanted = self._cell("make_host_room", node, state)
            for cell in list(self._copied[state]):
                if self.host_room(wanted):
                    break
                with suppress(Refused):
                    self.make_host_room(cell.node, state)
            return self.host_room(wanted)
