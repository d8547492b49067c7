"""A life: random prompts over one tree, and all that happens to it besides.

Prompts share beginnings of any length, so nodes are split; prefixes are evicted, stored, loaded
back, aborted, laid out anew, and lost with the process. What a lease reads is compared with what
its tokens should have left.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import numpy as np
import torch
from numpy.typing import NDArray
from tests.impl.forest import MAKING, STEP, Forest

from fivestate.impl.allocator import Memory
from fivestate.impl.chain import Cell, Node, content
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, Device, Fit, Phase

STORABLE = frozenset({COMPRESSED, WINDOW})
MOST_RUNNING = 3


def convert(group: str, pages: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """Return pages in another layout: epoch ``n`` has every byte XORed with ``n``."""
    del group
    return pages ^ ((old ^ new) % 256)


class Life:
    """A forest that random things happen to, and what has happened."""

    def __init__(self, seed: int, *, disk: bool, limited: bool) -> None:
        self.chance = random.Random(seed)  # noqa: S311 -- no secret
        limits = {"c2": 24, "c4": 24, "swa": 12} if limited else {}
        self.forest = Forest(
            num_blocks=24,
            slots=8,
            storable=STORABLE,
            disk=Memory() if disk else None,
            host_blocks=limits,
            convert=convert,
        )
        self.allocator = self.forest.allocator
        self.running: list[Request] = []
        self.done: Counter[str] = Counter()

    def marks(self, cell: Cell) -> dict[str, NDArray[np.uint8]]:
        """Return, by group, the byte that fills each page: it depends on the tokens alone."""
        node, found = cell.node, dict[str, NDArray[np.uint8]]()
        for group in self.allocator.groups_of[cell.state]:
            if group.name in cell.sizes:
                span = content(group, node.start_tokens, node.end_tokens)
                firsts = range(span.start, span.end, group.block_size)
                keys = [
                    (node.digests[(a - node.start_tokens) // STEP], a, group.name) for a in firsts
                ]
                found[group.name] = np.array([hash(key) % 256 for key in keys], np.uint8)
        return found

    def write(self, cell: Cell) -> None:
        """Write what the tokens of a cell leave in it."""
        for group, marks in self.marks(cell).items():
            pool = self.allocator.pools[group]
            pool.storage.numpy()[cell.blocks[group]] = marks[:, None] ^ (
                self.allocator.layout % 256
            )

    def compare(self, request: Request) -> None:
        """Compare what a lease pins with what should be there."""
        for cell in request.held:
            for group, marks in self.marks(cell).items():
                pages = self.allocator.pools[group].read(cell.blocks[group]).numpy()
                assert (pages == marks[:, None] ^ (self.allocator.layout % 256)).all(), cell
                self.done["compared"] += 1

    def find(self, prompt: str) -> Node:
        """Return the node of a prompt: split where it parts from others, and grow the rest."""
        node, digests = self.allocator.root, [prompt[: i + 1].encode() for i in range(len(prompt))]
        while digests:
            child = node.children.get(digests[0])
            if child is None:
                return self.allocator.grow(node, digests)
            pairs = zip(child.digests, digests, strict=False)
            same = sum(one == other for one, other in pairs)
            if same < len(child.digests):
                at_tokens = child.start_tokens + same * STEP
                if not self.allocator.can_split(child, at_tokens):
                    self.done["boundary not offered"] += 1
                    return node
                child = self.allocator.split(child, at_tokens)
                self.done["split"] += 1
            node, digests = child, digests[same:]
        return node

    def arrive(self) -> None:
        """Serve a prompt as far as it can be: read what is leased, and perhaps go on running."""
        prompt = "".join(self.chance.choices("ab", k=self.chance.randrange(1, 7)))
        node, request = self.find(prompt), self.forest.request(c2=1, swa=1)
        told = self.allocator.arrive(request, node)
        self.done[told.name] += 1
        if told is Phase.HIT and self.allocator.room(request.private_demand):
            self.allocator.lease(request)
        else:
            if not self.allocator.room(self.allocator.demand(node, request)):
                self.done["relieved"] += self.allocator.relieve(request)
            with suppress(Refused):
                self.allocator.admit(request, node)
            if request.phase is not Phase.RECOVERING or not self.recover(request, node):
                if request.waiting:
                    self.allocator.abort_waiting(request)
                return
        self.compare(request)
        self.allocator.run(request)
        self.running.append(request)

    def recover(self, request: Request, node: Node) -> bool:
        """Bring everything of a recovery to where it can be read; say if that was possible."""
        lost = self.done["entries lost"]
        for step in node.path():
            for state in MAKING:
                cell = step.cells.get(state)
                if self.chance.random() < 0.03:
                    self.abort(request, node)
                    return False
                if cell is not None:
                    self.mend(cell)
                if self.done["entries lost"] > lost:  # more has to be claimed to compute them
                    self.abort(request, node)
                    return False
            if not step.known:
                self.allocator.publish(step)
        self.allocator.resume(request, node)
        return True

    def abort(self, request: Request, node: Node) -> None:
        """Give a recovery up."""
        for doubt in self.allocator.abort_recovery(request, node):
            self.allocator.land(doubt.state, doubt=doubt)
            self.allocator.reclaim(doubt.state)
        self.done["abort"] += 1

    def mend(self, cell: Cell) -> None:
        """Bring one cell of a recovery to where it can be read."""
        allocator, (node, state) = self.allocator, (cell.node, cell.state)
        lost = self.done["entries lost"]
        if cell.device is Device.RESERVED and self.bring(cell):
            self.done["loaded"] += 1
        if self.done["entries lost"] > lost:
            return
        if cell.device is Device.RESERVED or cell.fit(allocator.layout) is Fit.OUT_OF_STEP:
            allocator.make(node, state)
            self.write(cell)
            allocator.made(node, state)
        elif cell.fit(allocator.layout) is Fit.OLD_LAYOUT:
            allocator.repack(node, state)
            self.done["repacked"] += 1

    def bring(self, cell: Cell) -> bool:
        """Load a cell from whatever tier has it; say if that went well."""
        allocator, (node, state) = self.allocator, (cell.node, cell.state)
        host, disk = allocator.settings.host, allocator.settings.disk
        if cell.copy is None and cell.disk is not None and disk is not None:
            allocator.relieve_host(node, state)
            with suppress(Refused):
                key = allocator.fetch(node, state)
                host.put(key, disk.get(key))
                self.done["fetched"] += 1
        try:
            key = allocator.load_begin(node, state)
        except Refused:
            return False
        if self.chance.random() < 0.1:
            allocator.load_bad(node, state)
            self.done["entries lost"] += state is COMPRESSED
            return False
        for group, pages in host.get(key).items():
            allocator.pools[group].write(cell.blocks[group], pages)
        allocator.load_good(node, state)
        return True

    def leave(self) -> None:
        """Let a running request end."""
        if self.running:
            request = self.running.pop(self.chance.randrange(len(self.running)))
            self.compare(request)
            self.allocator.finish(request)

    def any_cell(self, what: str) -> Cell | None:
        """Return some cell that something could be done with, if there is one."""
        cells = list(self.allocator.cells())
        if what in {"demote", "drop"}:
            cells = [cell for cell in cells if cell.copy is not None]
        elif what == "erase":
            cells = [cell for cell in cells if cell.disk is not None]
        return self.chance.choice(cells) if cells else None

    def tend(self) -> None:
        """Evict, store, demote, drop or erase something."""
        what = self.chance.choice(["evict", "store", "store", "demote", "demote", "drop", "erase"])
        cell = self.any_cell(what)
        if cell is None:
            return
        allocator, (node, state) = self.allocator, (cell.node, cell.state)
        with suppress(Refused):
            match what:
                case "store":
                    key = allocator.store_begin(node, state)
                    pools = allocator.pools
                    pages = {g: pools[g].read(blocks) for g, blocks in cell.blocks.items()}
                    allocator.settings.host.put(key, pages)
                    allocator.store_good(node, state)
                case "demote" if allocator.settings.disk is not None:
                    key = allocator.demote_begin(node, state)
                    allocator.settings.disk.put(key, allocator.settings.host.get(key))
                    allocator.demote_good(node, state)
                case "demote":
                    pass
                case _:
                    getattr(allocator, what)(node, state)
            self.done[what] += 1

    def change(self) -> None:
        """Change the kernels, if nobody runs."""
        with suppress(Refused):
            self.allocator.change_kernels()
            self.done["change"] += 1

    def restart(self) -> None:
        """Lose the process."""
        self.allocator.crash()
        self.running.clear()
        self.done["restart"] += 1

    def prune(self) -> None:
        """Take away whatever has nothing left."""
        for node in reversed(list(self.allocator.nodes())):
            self.done["pruned"] += self.allocator.prune(node)

    def step(self) -> None:
        """Let one random thing happen, and check the books."""
        if len(self.running) >= MOST_RUNNING:
            self.leave()
        things = [self.arrive, self.leave, self.tend, self.tend, self.change, self.restart]
        (thing,) = self.chance.choices([*things, self.prune], [8, 3, 4, 4, 0.5, 0.2, 1])
        thing()
        self.allocator.check()
