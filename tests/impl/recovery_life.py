"""A random life: threads that ask, read, abort, evict and damage, with delays and faults between.

What is checked all the time: every byte that is read under a lease is what it has to be, every
block has one owner, and no more is under way than the budget allows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Lock, Thread

from tests.impl.recovery_world import Engine, allocator, digests

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, Node
from fivestate.impl.recovery import DiskCopies, HostCopies, Worker
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.impl.tiers import Budget, Transfer
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, CacheState, Device, Phase

SOON_SECONDS = 30.0
WORKERS, FRAMES = 3, 2
WORDS = "ab"


class Life:
    """One allocator and its users.

    Args:
        folder: the disk.
        seed: what decides everything but the order of threads.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.home = allocator(
            folder,
            blocks_each=14,
            host_blocks={"c2": 12, "c4": 6, "w": 8},
            reserve=2,
            transfers_at_once=2,
        )
        self.engine = Engine(self.home)
        self.seen: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self._flying, self._lock = 0, Lock()
        self._chance = Random(f"{seed} transfers")  # noqa: S311 -- not for secrets
        budget = Budget(workers=WORKERS, frames=FRAMES, queue=4)
        self.worker = Worker(self.home, budget=budget, before=self._before, offset=self._offset)

    def run(self, users: int, turns: int) -> None:
        """Live; raises what the first user found wrong."""
        chances = [Random(f"{self.seed} {user}") for user in range(users)]  # noqa: S311 -- as above
        threads = [Thread(target=self._guarded, args=(chance, turns)) for chance in chances]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        assert self.worker.idle(SOON_SECONDS)
        self.home.check()
        assert not any(self.home.doubts.values())
        assert not any(node.recoverers for node in self.home.nodes())

    def close(self) -> None:
        """End the transfers, and let the disk be what it is said to be."""
        self.worker.close()
        disk = self.home.settings.disk
        assert isinstance(disk, DiskCopies)
        disk.flush()

    def noticed(self) -> int:
        """Forget copies that the store has dropped because they did not check; say how many.

        Their recovery was given up while they were read, so the allocator would learn of it only
        from the next one.
        """
        disk, count = self.home.settings.disk, 0
        assert isinstance(disk, DiskCopies)
        for cell in self.home.cells():
            if cell.disk is not None and disk._views[cell.disk.key].name not in disk.store:
                cell.disk = None
                count += 1
        return count

    def _guarded(self, chance: Random, turns: int) -> None:
        try:
            for _ in range(turns):
                chance.choice(self._turns())(chance)
                self.home.check()
        except BaseException as failure:  # noqa: BLE001 -- it is raised again by `run`
            self.failures.append(failure)

    def _turns(self) -> list[Callable[[Random], None]]:
        often = [self.visit] * 6
        return [
            *often,
            self.store,
            self.evict,
            self.evict,
            self.drop,
            self.warm,
            self.warm,
            self.damage,
        ]

    def visit(self, chance: Random) -> None:
        """Ask for a prefix, have it recovered and read it; or go away in the middle."""
        request, node = self._admitted(chance)
        if request is None or node is None:
            return
        if request.phase is Phase.RECOVERING and not self._recovered(request, node, chance):
            return
        self.home.run(request)
        self.engine.compare(request.held)
        self.home.finish(request)
        self.seen["read"] += 1

    def _admitted(self, chance: Random) -> tuple[Request | None, Node | None]:
        """Return a request in use; nothing if there is no room, or the tree has not its place."""
        words = [chance.choice(WORDS) for _ in range(chance.randint(1, 4))]
        request = self.home.new_request("visitor", w=1)
        with self.home.lock:
            node = self._place(words)
            if node is None:
                return None, None
            self.home.arrive(request, node)
            self.seen[request.phase.name] += 1
            try:
                self._claim(request, node)
            except Refused as refused:
                self.seen[f"refused: {refused.guard}"] += 1
                if not (refused.guard == "room" and self.home.relieve(request)):
                    self.home.abort_waiting(request)
                    return None, None
                if not self.home.fresh(request):
                    self.home.reclassify(request, node)
                self._claim(request, node)
        return request, node

    def _place(self, words: list[str]) -> Node | None:
        """Return the first node on the way that is not known, or the last."""
        node: Node | None = None
        for count in range(1, len(words) + 1):
            try:
                node = self.engine.node(digests(*words[:count]))
            except ValueError:
                return None  # something is under way where it would have to be split
            if not self.home.known(node):
                break
        return node

    def _claim(self, request: Request, node: Node) -> None:
        if request.phase is Phase.HIT:
            self.home.lease(request)
        else:
            self.home.admit(request, node)

    def _recovered(self, request: Request, node: Node, chance: Random) -> bool:
        self.worker.recover(node)
        if chance.random() < 0.3:
            time.sleep(chance.random() / 500)
            self.worker.abort(request)
            self.seen["aborted"] += 1
            return False
        assert self.worker.wait(node, SOON_SECONDS)
        end = time.monotonic() + SOON_SECONDS
        while time.monotonic() < end:
            self.engine.compute(node)
            with self.home.lock:
                try:
                    if not node.known:
                        self.home.publish(node)
                    self.home.resume(request, node)
                except Refused:
                    before = not self.home.known(node) and node.known
                    if before or self.worker.lost(node):
                        break  # it is asked for again another time, what is before it first
                else:
                    self.seen["resumed"] += 1
                    return True
            self.worker.recover(node)
            time.sleep(0.001)
        self.worker.abort(request)
        self.seen["lost"] += 1
        return False

    def store(self, chance: Random) -> None:
        """Keep what can be kept off the device."""
        if chance.random() < 0.3:
            self.worker.persist()
        else:
            cell = self._any(chance)
            if cell is not None:
                self.worker.store(cell.node, cell.state)

    def evict(self, chance: Random) -> None:
        """Take a cell from the device."""
        cell = self._any(chance, device=Device.READY)
        if cell is not None:
            self._try(self.home.evict, cell)

    def drop(self, chance: Random) -> None:
        """Drop a copy."""
        cell = self._any(chance)
        if cell is not None:
            self._try(chance.choice([self.home.drop, self.home.erase]), cell)

    def warm(self, chance: Random) -> None:
        """Prefetch a prefix, and now and then give it up."""
        cell = self._any(chance, device=Device.ABSENT)
        if cell is None:
            return
        try:
            self.worker.prefetch(cell.node)
            self.seen["prefetched"] += 1
            if chance.random() < 0.3:
                self.worker.abort_prefetch(cell.node)
        except Refused as refused:
            self.seen[f"prefetch refused: {refused.guard}"] += 1

    def damage(self, chance: Random) -> None:
        """Flip a bit in host memory or on disk."""
        host = self.home.settings.host
        if chance.random() < 0.5 and isinstance(host, HostCopies):
            memory = host.memory
            with memory._lock:  # who is past the check reads what it has checked
                unread = [k for k in memory._objects if not memory._recency._readers[k]]
                if unread:
                    chance.choice(list(memory._objects[chance.choice(unread)].tensors.values()))[
                        0, 0
                    ] ^= 1
                    self.seen["damaged memory"] += 1
            return
        files = sorted((self.folder / "objects").glob("*.safetensors"))
        if files:
            with suppress(FileNotFoundError), chance.choice(files).open("r+b") as file:
                file.seek(-1, 2)
                (last,) = file.read(1)
                file.seek(-1, 2)
                file.write(bytes([last ^ 1]))
                self.seen["damaged disk"] += 1

    def _try(self, action: Callable[[Node, CacheState], None], cell: Cell) -> None:
        try:
            action(cell.node, cell.state)
            self.seen[action.__name__] += 1
        except Refused:
            pass

    def _any(self, chance: Random, device: Device | None = None) -> Cell | None:
        with self.home.lock:
            cells = [
                cell
                for cell in self.home.cells()
                if (cell.state in {COMPRESSED, WINDOW} if device is None else cell.device is device)
            ]
        return chance.choice(cells) if cells else None

    def _before(self, transfer: Transfer) -> None:
        """Delay a transfer, or let it fail."""
        del transfer
        with self._lock:
            luck, pause = self._chance.random(), self._chance.random() / 1_000
        time.sleep(pause)
        if luck < 0.05:
            raise OSError(5, "the bus is down")

    def _offset(self, cell: Cell) -> int:
        """Put some loads where they do not belong; it is called while one is under way."""
        self._hold_budget(cell.node.home)
        with self._lock:
            pause, offset = self._chance.random() / 500, self._chance.choice([0, 0, 0, 5])
        time.sleep(pause)
        return offset

    def _hold_budget(self, home: object) -> None:
        assert isinstance(home, Allocator)
        with home.lock:
            loads = sum(cell.device is Device.LOADING for cell in home.cells())
        if loads > home.settings.transfers_at_once or self.worker._transfers._frames > FRAMES:
            self.failures.append(AssertionError(f"{loads} loads are under way"))
