"""A crowd: threads that recover, lease, read, abort, store and evict the same few prefixes.

Each thread does with one request what an engine does with many, sleeping wherever something could
come between. What it reads under its lease is compared with what should be there.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.impl.twin import GARBAGE, Twin

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, Node
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.models import DEEP
from fivestate.spec.vocabulary import Bytes, Device, Phase

THREADS = 8
MODEL = DEEP.set(
    *("prefix=4", f"request={THREADS}", "slots=5", "cap=7", "budget=2"),
    *("graphs=false", "layouts=false", "weights=false", "crashes=false"),
)
"""Fewer frames than four prefixes and five requests in use would take."""

LONGEST_SLEEP_SECONDS = 0.0004
PAUSES = 0.15
"""The share of guards behind which a thread sleeps."""


class Slow(Allocator):
    """An allocator in which time passes between a check and what relies on it."""

    def _require(self, action: str, guard: str, truth: bool, /, **given: object) -> None:  # noqa: FBT001 -- as the hook
        super()._require(action, guard, truth, **given)
        if random.random() < PAUSES:  # noqa: S311 -- no secret
            time.sleep(random.random() * LONGEST_SLEEP_SECONDS)  # noqa: S311 -- no secret


class Crowd:
    """Threads over one allocator.

    Attributes:
        done: how often each thing was done, over all threads.
        wrong: what was found that must not be.

    Args:
        allocator: what makes the allocator; a faulty one can be given.
    """

    def __init__(self, allocator: type[Allocator] = Slow) -> None:
        self.twin = Twin(MODEL, allocator)
        self.allocator, self.world = self.twin.allocator, self.twin.world
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._end = 0.0

    def run(self, seconds: float) -> None:
        """Let every thread work for some seconds, or until something wrong is found."""
        self._end = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._guarded, args=(request, seed), daemon=True)
            for seed, request in enumerate(self.twin.requests)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 30)
            if thread.is_alive():
                self.wrong.append("a thread does not end")

    def _guarded(self, request: Request, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 -- no secret
        try:
            while time.monotonic() < self._end and not self.wrong:
                self._live(request, chance)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it must not be
            self.wrong.append(repr(error))

    def _try(self, action: Callable[..., object], *arguments: object) -> str:
        """Take a step, and return the guard that refuses it, or nothing."""
        try:
            action(*arguments)
        except Refused as refused:
            self.done[f"{action.__name__} refused by {refused.guard}"] += 1
            return refused.guard
        self.done[action.__name__] += 1
        return ""

    def _live(self, request: Request, chance: random.Random) -> None:
        """Want a prefix, get it and read it, or give up."""
        node, allocator = chance.choice(self.twin.prefixes), self.allocator
        self._tend(node, chance)
        allocator.arrive(request, node)
        while request.waiting and time.monotonic() < self._end:
            self._nap(chance)
            if chance.random() < 0.02:
                allocator.abort_waiting(request)
                return
            take = allocator.lease if request.phase is Phase.HIT else allocator.admit
            arguments = (request,) if request.phase is Phase.HIT else (request, node)
            match self._try(take, *arguments):
                case "fresh":
                    self._nap(chance)
                    self._try(allocator.reclassify, request, node)
                case "room":
                    allocator.relieve(request)
        if request.phase is Phase.RECOVERING:
            self._recover(request, node, chance)
        if request.phase is Phase.LEASED:
            self._read(request, chance)
        elif request.waiting:
            allocator.abort_waiting(request)
        if chance.random() < 0.2:
            allocator.check()
            self.done["check"] += 1

    def _recover(self, request: Request, node: Node, chance: random.Random) -> None:
        allocator = self.allocator
        while time.monotonic() < self._end:
            for cell in node.cells.values():
                self._fill(request, cell, chance)
                if request.phase is not Phase.RECOVERING:
                    return
            self._try(allocator.publish, node)
            if not self._try(allocator.resume, request, node):
                return
            if chance.random() < 0.05:
                break
        for doubt in allocator.abort_recovery(request, node):  # a store that reads what is given up
            self._nap(chance)
            allocator.land(doubt.state, doubt=doubt)
            self._try(allocator.reclaim, doubt.state)

    def _fill(self, request: Request, cell: Cell, chance: random.Random) -> None:
        """Load or make a cell that is due, unless somebody else does."""
        allocator, (node, state) = self.allocator, (cell.node, cell.state)
        if cell.device is not Device.RESERVED:
            return
        if not self._try(allocator.load_begin, node, state):
            self._move_in(request, cell, chance)
        elif not self._try(allocator.make, node, state):
            self.world.put(cell, half=True)
            self._nap(chance)
            if chance.random() < 0.1 and self._abandon(request, cell, chance):
                return
            self.world.put(cell, half=False)
            allocator.made(node, state)

    def _move_in(self, request: Request, cell: Cell, chance: random.Random) -> None:
        allocator, (node, state) = self.allocator, (cell.node, cell.state)
        assert cell.copy is not None
        pages = allocator.settings.host.get(cell.copy.key)
        self._nap(chance)
        if chance.random() < 0.1 and self._abandon(request, cell, chance):
            return
        if chance.random() < 0.1:
            self.world.fill(cell.blocks, GARBAGE)
            allocator.load_bad(node, state)
            return
        for name, blocks in cell.blocks.items():
            self.world.pages[name][blocks] = pages[name].numpy()
        allocator.load_good(node, state)

    def _abandon(self, request: Request, cell: Cell, chance: random.Random) -> bool:
        """Abort in the middle of a transfer, which then lands late; say if that was done.

        Not if somebody else still recovers the prefix: then the transfer would go on, and whoever
        began it is the one to end it.
        """
        with self.allocator.lock:
            if self.allocator.others_recover(request, cell.node):
                return False
            doubts = self.allocator.abort_recovery(request, cell.node)
        self.done["withheld"] += len(doubts)
        for doubt in doubts:
            self._nap(chance)
            self.world.fill(doubt.blocks, GARBAGE)
            self.allocator.land(doubt.state, doubt=doubt)
            self._try(self.allocator.reclaim, doubt.state)
        return True

    def _read(self, request: Request, chance: random.Random) -> None:
        """Read what is leased, several times, and compare."""
        allocator = self.allocator
        if chance.random() < 0.05:
            allocator.abort_leased(request)
            return
        self._compare(request)
        allocator.run(request)
        for _ in range(chance.randrange(1, 4)):
            self._nap(chance)
            self._compare(request)
        if chance.random() < 0.3:
            allocator.slide(request)
            self._nap(chance)
            self._compare(request)
        if chance.random() < 0.2:
            allocator.abort_step(request)
            self._compare(request)
            allocator.drained(request)
        else:
            allocator.finish(request)

    def _compare(self, request: Request) -> None:
        for cell in request.held:
            held = self.world.held(cell)
            self.done["compared"] += 1
            if held is not Bytes.RIGHT:
                self.wrong.append(f"{request!r} reads {held.name} in {cell!r}")

    def _tend(self, node: Node, chance: random.Random) -> None:
        """Do what an engine does beside: store, drop, evict."""
        allocator = self.allocator
        cell = chance.choice(list(node.cells.values()))
        match chance.randrange(4):
            case 0:
                if not self._try(allocator.store_begin, node, cell.state):
                    self._store(cell, chance)
            case 1:
                self._try(allocator.drop, node, cell.state)
            case 2:
                self._try(allocator.evict, node, cell.state)
            case _:
                pass

    def _store(self, cell: Cell, chance: random.Random) -> None:
        assert cell.copy is not None
        key, pools = cell.copy.key, self.allocator.pools
        self._nap(chance)
        pages = {name: pools[name].read(blocks) for name, blocks in cell.blocks.items()}
        if chance.random() < 0.2:
            self._try(self.allocator.store_bad, cell.node, cell.state)
            return
        self.allocator.settings.host.put(key, pages)
        if self._try(self.allocator.store_good, cell.node, cell.state):
            self.allocator.settings.host.drop(key)  # it was given up under the store

    @staticmethod
    def _nap(chance: random.Random) -> None:
        time.sleep(chance.random() * LONGEST_SLEEP_SECONDS)
