"""What requests do: arrive, be admitted or lease, run, let the window go, finish."""

from __future__ import annotations

from fivestate.impl.allocator.base import action
from fivestate.impl.allocator.effects import Effects
from fivestate.impl.chain import Node
from fivestate.impl.requests import RUNS, Request
from fivestate.spec.vocabulary import WINDOW, Phase


class Requests(Effects):
    """The way of a request from its arrival to its end."""

    @action("A-11")
    def arrive(self, request: Request, node: Node) -> Phase:
        """A request arrives, is told what its prefix is worth now, and queues.

        Returns:
            The verdict: MISS, PARTIAL or HIT.
        """
        phase = request.phase
        self._require("arrive", "idle", phase is Phase.IDLE, phase=phase)
        self._arrivals += 1
        request.want, request.arrival = node, self._arrivals
        request.phase, request.seen = self.verdict(node), self.losses(node)
        self._queue[request] = None
        return request.phase

    @action("A-12")
    def reclassify(self, request: Request, node: Node) -> Phase:
        """A waiting request whose verdict no longer stands looks again.

        Returns:
            The verdict: MISS, PARTIAL or HIT.
        """
        self._require("reclassify", "waiting", request.waiting, phase=request.phase)
        self._require("reclassify", "mine", request.want is node, want=request.want)
        self._require("reclassify", "stale", not self.fresh(request), seen=request.seen)
        request.phase, request.seen = self.verdict(node), self.losses(node)
        return request.phase

    @action("A-13")
    def admit(self, request: Request, node: Node) -> None:
        """Admit the first waiter to recovery and claim every block it will need, at once (准入).

        Check and claim are one step, for all groups together: two requests that each hold a part
        would wait for each other for ever.
        """
        self._require("admit", "waiting", request.waiting, phase=request.phase)
        self._require("admit", "mine", request.want is node, want=request.want)
        self._require("admit", "first", self.first(request), arrival=request.arrival)
        self._require("admit", "slot", self.slot_free(), in_use=len(self._using))
        demand = self.demand(node, request)
        self._require("admit", "room", self.room(demand), **demand)
        self._stop_waiting(request)
        request.phase = Phase.RECOVERING
        self._claim_missing(node, request)
        self._claim_private(request)

    @action("A-14")
    def lease(self, request: Request) -> None:
        """Take the prefix of a hit as it was when it was checked; nobody may change it from now on.

        A hit waits its turn as well: a stream of hits would keep the blocks that a request before
        them lacks.
        """
        self._require("lease", "hit", request.phase is Phase.HIT, phase=request.phase)
        self._require("lease", "fresh", self.fresh(request), seen=request.seen)
        self._require("lease", "first", self.first(request), arrival=request.arrival)
        self._require("lease", "slot", self.slot_free(), in_use=len(self._using))
        demand = request.private_demand
        self._require("lease", "room", self.room(demand), **demand)
        self._stop_waiting(request)
        request.phase = Phase.LEASED
        self._pin(request, request.target)
        self._claim_private(request)

    @action("A-15")
    def resume(self, request: Request, node: Node) -> None:
        """Take a recovered prefix: every group is there and fits, and the prefix is known."""
        phase = request.phase
        self._require("resume", "recovering", phase is Phase.RECOVERING, phase=phase)
        self._require("resume", "mine", request.want is node, want=request.want)
        self._require("resume", "known", self.known(node), node=node)
        self._require("resume", "complete", self.complete(node), node=node)
        request.phase = Phase.LEASED
        for step in node.path():
            step.recoverers.discard(request)
        self._pin(request, node)

    @action("A-16")
    def run(self, request: Request) -> None:
        """Run: from now on kernels read what is leased."""
        phase = request.phase
        self._require("run", "leased", phase is Phase.LEASED, phase=phase)
        request.phase = Phase.RUNNING

    @action("A-17", WINDOW)
    def slide(self, request: Request) -> None:
        """The request's window moves past the prefix, and it lets go of the window cells (滑出)."""
        phase = request.phase
        self._require("slide", "running", phase is Phase.RUNNING, phase=phase)
        self._require("slide", "inside", not request.slid)
        request.slid = True
        self._unpin(request, WINDOW)

    @action("A-18")
    def finish(self, request: Request) -> None:
        """The request ends and gives back its lease and its private blocks."""
        self._require("finish", "running", request.phase in RUNS, phase=request.phase)
        self._leave(request)
