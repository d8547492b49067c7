"""A twin: an allocator at a model's size, with kernels and transfers that touch real memory.

What a cell should hold is a fixed function of its prefix, its state, the epoch of the weights, and
of an index also of the generation of its entries, laid out as the epoch of the kernels says. The
kernels here read their sources before they write, so bytes are right only if they were right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b

import numpy as np
import torch

from fivestate.impl.abstraction import Abstraction, Raw
from fivestate.impl.allocator import Allocator, Doubt, Memory, Settings
from fivestate.impl.chain import Cell, CopyKey, Node
from fivestate.impl.pools import Blocks
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.allocator import state as constants
from fivestate.spec.language import Model
from fivestate.spec.language.model import Codes
from fivestate.spec.language.steps import Step
from fivestate.spec.reuse import CacheGroup, Geometry
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Bytes, CacheState

PAGE_BYTES = 16
OFFSET_BYTES = 4
"""How far a misaligned load misses."""

GROUPS = {
    COMPRESSED: CacheGroup(name="c", state=COMPRESSED, block_size=2, ratio=2, bytes_per_entry=16),
    TAIL: CacheGroup(name="t", state=TAIL, block_size=2, ratio=2, lookback=2, bytes_per_entry=8),
    WINDOW: CacheGroup(name="w", state=WINDOW, block_size=2, window=2, bytes_per_entry=8),
    INDEXER: CacheGroup(name="i", state=INDEXER, block_size=2, ratio=2, bytes_per_entry=16),
}
"""One block a cell: the machine's frame."""

_WORD = (1 << 32) - 1
_ALL_WORDS = sum(1 << shift for shift in range(0, 8 * PAGE_BYTES, 32))
_HALF = (1 << 4 * PAGE_BYTES) - 1
GARBAGE = 0xEE


def convert(group: str, pages: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """Return pages in another layout: epoch ``n`` has every word XORed with ``n``."""
    del group
    return (pages.view(torch.int32) ^ (old ^ new)).view(torch.uint8)


def pattern(cell: Cell, weights: int) -> int:
    """Return what a cell should hold in layout 0, as one number."""
    node = cell.node
    generation = node.entries_generation if cell.state is INDEXER else 0
    text = f"{node.digests[-1]!r} {cell.state.value} {weights} {generation}"
    return int.from_bytes(blake2b(text.encode(), digest_size=PAGE_BYTES).digest(), "little")


RUNS_ON_P0 = (
    *("arrive(r0, p0)", "admit(r0, p0)"),
    *(f"{v}(p0, {g})" for g in ("COMPRESSED", "WINDOW") for v in ("make", "made")),
    *("publish(p0)", "resume(r0, p0)", "run(r0)"),
)
"""How p0 comes to be known with both groups, and r0 to run on it."""


class World:
    """Kernels and transfers: whoever touches the memory that the allocator hands out."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.pages = {name: pool.storage.numpy() for name, pool in allocator.pools.items()}
        self.late: list[Doubt] = []
        self.moves: dict[Cell, tuple[CopyKey, dict[str, Blocks]]] = {}

    def see(self, cell: Cell, pages: Raw) -> Bytes:
        """Say what a kernel that read these pages as this cell's now would see."""
        (page,) = pages.values()  # one group a state, one block a cell
        held = int.from_bytes(page.tobytes(), "little")
        layout, whole = self.allocator.layout, pattern(cell, self.allocator.weights)
        if held == (whole ^ (layout * _ALL_WORDS)):
            return Bytes.RIGHT
        if held == (whole ^ (layout * _ALL_WORDS)) & _HALF:
            return Bytes.FIXABLE
        back = 8 * OFFSET_BYTES
        for placed in (held, (held >> back) | (held & ((1 << back) - 1)) << 8 * PAGE_BYTES - back):
            epoch = (placed ^ whole) & _WORD
            if placed == whole ^ (epoch * _ALL_WORDS) and epoch <= layout:
                return Bytes.FIXABLE
        return Bytes.WRONG

    def flying(self, state: CacheState) -> int:
        """Return how many blocks transfers may still reach that nobody waits for."""
        lots = [doubt for doubt in self.late if doubt.state is state]
        return sum(int(blocks.size) for doubt in lots for blocks in doubt.blocks.values())

    def held(self, cell: Cell) -> Bytes:
        """See what is in a cell's blocks."""
        if not cell.blocks:
            return Bytes.WRONG
        return self.see(cell, {name: self.pages[name][ids] for name, ids in cell.blocks.items()})

    def fill(self, blocks: dict[str, Blocks], value: int) -> None:
        """Write some value all over blocks."""
        for name, ids in blocks.items():
            self.pages[name][ids] = value

    def put(self, cell: Cell, *, half: bool) -> None:
        """Write what a cell should hold, or the first half of it and nothing behind."""
        value = pattern(cell, self.allocator.weights) ^ (self.allocator.layout * _ALL_WORDS)
        page = np.frombuffer(
            (value & _HALF if half else value).to_bytes(PAGE_BYTES, "little"), "u1"
        )
        for name, ids in cell.blocks.items():
            self.pages[name][ids] = page

    def sources_right(self, cell: Cell) -> bool:
        """Say whether what a kernel would read to make the cell is right."""
        return all(self.held(source) is Bytes.RIGHT for source in self.allocator.sources(cell))


class Twin:
    """An allocator, its world, and both as a state of the model.

    Args:
        model: a model of ``spec.allocator``.
        allocator: what makes the allocator; a faulty one can be given.
    """

    def __init__(self, model: Model, allocator: type[Allocator] = Allocator) -> None:
        self.model = model
        members = list(CacheState)
        states = [members[code] for code in model.elements(constants.Group)]
        groups = tuple(GROUPS[state] for state in states)

        def table(name: str) -> dict[str, int]:
            return {
                GROUPS[state].name: model.constant(name, (members.index(state),))
                for state in states
            }

        stores, disk = model.constant("stores", ()), model.constant("disk", ())
        self.allocator = allocator(
            Settings(
                geometry=Geometry("machine", groups),
                num_blocks=table("cap"),
                slots=model.constant("slots", ()),
                transfers_at_once=model.constant("budget", ()),
                storable=frozenset(
                    state
                    for state in states
                    if stores and model.constant("storable", (members.index(state),))
                ),
                reserve=table("reserve"),
                host_blocks=table("host"),
                disk=Memory() if disk else None,
                convert=convert,
            )
        )
        root = self.allocator.root
        self.prefixes = [
            self.allocator.grow(root, [f"p{code}".encode()])
            for code in model.elements(constants.Prefix)
        ]
        self.requests = [
            self.allocator.new_request(f"r{code}", **table("private"))
            for code in model.elements(constants.Request)
        ]
        self.world = World(self.allocator)
        self.view = Abstraction(model, self.allocator, self.prefixes, self.requests, self.world)
        self._bound = [self._arguments(step) for step in model.steps]
        self._methods = [getattr(self.allocator, step.action.name) for step in model.steps]

    def _arguments(self, step: Step) -> tuple[Request | Node | CacheState, ...]:
        elements: dict[type, Sequence[Request | Node | CacheState]] = {
            constants.Prefix: self.prefixes,
            constants.Request: self.requests,
            constants.Group: list(CacheState),
        }
        pairs = zip(step.action.parameters, step.arguments, strict=True)
        return tuple(elements[bound.sort][code] for bound, code in pairs)

    def state(self) -> Codes:
        """Return the state of the model that the allocator is in."""
        return self.view.state()

    def refusal(self, step: int) -> Refused | None:
        """Try a step that should be refused, and return the refusal."""
        try:
            self._methods[step](*self._bound[step])
        except Refused as refused:
            return refused
        return None

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The steps of the model, by how they are written in stories."""
        return {step.label: number for number, step in enumerate(self.model.steps)}

    def tell(self, *labels: str) -> None:
        """Take steps that are written as stories are."""
        for label in labels:
            self.take(self.numbers[label])

    def take(self, step: int) -> None:
        """Take a step, and let the world do to memory what goes with it."""
        name, arguments = self.model.steps[step].action.name, self._bound[step]
        keywords = {"offset_bytes": OFFSET_BYTES} if name == "load_misaligned" else {}
        result = self._methods[step](*arguments, **keywords)
        happens = getattr(self, f"_{name}", None)
        if happens is not None:
            happens(result, *arguments)

    def _make(self, _: object, node: Node, state: CacheState) -> None:
        self._begin(node.cells[state])

    def _reindex(self, _: object, node: Node) -> None:
        self._begin(node.cells[INDEXER])

    def _begin(self, cell: Cell) -> None:
        if self.world.sources_right(cell):
            self.world.put(cell, half=True)
        else:
            self.world.fill(cell.blocks, GARBAGE)

    def _made(self, _: object, node: Node, state: CacheState) -> None:
        cell = node.cells[state]
        if self.world.held(cell) is Bytes.FIXABLE and self.world.sources_right(cell):
            self.world.put(cell, half=False)
        else:
            self.world.fill(cell.blocks, GARBAGE)

    def _load_begin(self, key: CopyKey, node: Node, state: CacheState) -> None:
        cell = node.cells[state]
        self.world.moves[cell] = key, cell.blocks

    def _load_good(self, _: object, node: Node, state: CacheState) -> None:
        self._bring(node.cells[state], 0)

    def _load_misaligned(self, _: object, node: Node, state: CacheState) -> None:
        self._bring(node.cells[state], OFFSET_BYTES)

    def _bring(self, cell: Cell, offset_bytes: int) -> None:
        key, into = self.world.moves.pop(cell)
        pages = self.allocator.settings.host.get(key)
        for name, ids in into.items():
            self.world.pages[name][ids] = np.roll(pages[name].numpy(), offset_bytes, 1)

    def _load_bad(self, _: object, node: Node, state: CacheState) -> None:
        _, into = self.world.moves.pop(node.cells[state])
        self.world.fill(into, GARBAGE)

    def _store_good(self, _: object, node: Node, state: CacheState) -> None:
        cell = node.cells[state]
        if cell.copy is not None:
            pools = self.allocator.pools
            pages = {name: pools[name].read(ids) for name, ids in cell.blocks.items()}
            self.allocator.settings.host.put(cell.copy.key, pages)

    def _demote_good(self, _: object, node: Node, state: CacheState) -> None:
        disk, copied = self.allocator.settings.disk, node.cells[state].disk
        assert disk is not None
        assert copied is not None
        disk.put(copied.key, self.allocator.settings.host.get(copied.key))

    def _fetch(self, key: CopyKey, node: Node, state: CacheState) -> None:
        del node, state
        disk = self.allocator.settings.disk
        assert disk is not None
        self.allocator.settings.host.put(key, disk.get(key))

    def _abort_recovery(self, doubts: list[Doubt], request: Request, node: Node) -> None:
        del request, node
        self.world.late += doubts

    def _abort_prefetch(self, doubts: list[Doubt], node: Node) -> None:
        del node
        self.world.late += doubts

    def _land(self, doubt: Doubt, state: CacheState) -> None:
        del state
        self.world.late.remove(doubt)
        self.world.fill(doubt.blocks, GARBAGE)

    def _capture(self, _: object, request: Request, node: Node) -> None:
        del request, node
        for pages in self.world.pages.values():
            pages[0] = GARBAGE

    def _append(self, blocks: dict[str, Blocks], request: Request) -> None:
        del request
        self.world.fill(blocks, GARBAGE)

    def _crash(self, _: object) -> None:
        self.world.late.clear()
        self.world.moves.clear()
