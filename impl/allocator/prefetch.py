"""Recovery that nobody has asked for yet: it may use what is left over, and no more."""

from __future__ import annotations

from fivestate.impl.allocator.aborts import Aborts
from fivestate.impl.allocator.base import Doubt, action
from fivestate.impl.chain import Node
from fivestate.spec.vocabulary import Device


class Prefetch(Aborts):
    """Prefixes that are recovered for nobody."""

    @action("A-61")
    def prefetch(self, node: Node) -> None:
        """Start recovering a known prefix for nobody, out of blocks beyond the reserve (预热).

        Without the reserve it would take again and again the block that was evicted for a waiter:
        recovery that starves requests (恢复把在线请求挤爆).
        """
        self._require("prefetch", "known", self.known(node), node=node)
        wanted = any(r.want is node for r in (*self._queue, *self._using))
        self._require("prefetch", "unheld", not wanted, node=node)
        useful = any(cell.device is Device.ABSENT for cell in self.claims(node))
        self._require("prefetch", "useful", useful, node=node)
        asked = {**dict.fromkeys(self.settings.reserve, 0), **self.missing(node)}
        asked = {name: n + self.settings.reserve.get(name, 0) for name, n in asked.items()}
        self._require("prefetch", "reserve", self.room(asked), **asked)
        node.prefetching = True
        self._claim_missing(node, node)

    @action("A-62")
    def prefetched(self, node: Node) -> None:
        """A prefetch is complete: its cells may be leased, or evicted, like any other."""
        self._require("prefetched", "prefetching", node.prefetching, node=node)
        self._require("prefetched", "known", self.known(node), node=node)
        self._require("prefetched", "complete", self.complete(node), node=node)
        node.prefetching = False
        for step in node.path():
            step.recoverers.discard(node)

    @action("A-63")
    def abort_prefetch(self, node: Node) -> list[Doubt]:
        """A prefetch is given up; if no request has joined it, the recovery is cancelled.

        Returns:
            What is withheld: who moves or writes these blocks lets them ``land`` when it ends.
        """
        self._require("abort_prefetch", "prefetching", node.prefetching, node=node)
        node.prefetching = False
        return self._lose_interest(node, node)
