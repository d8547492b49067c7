"""Recoveries: the steps after which a leased prefix may be read, begun and ended one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fivestate.impl.chain import Cell, CopyKey, Node, content
from fivestate.impl.pools import Blocks
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.reuse import Means, Policy, Role, Span
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, CacheState, Device, Fit, Phase

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator

BY_ITSELF = (Means.LOAD_BACK, Means.REPACK)
"""What moves bytes that are there; all else is computed, by the engine."""


@dataclass(eq=False)
class Task:
    """One cell that has to be brought into use.

    Attributes:
        means: how: by loading it back, repacking, rebuilding an index, or a replay.
        node: whose cell it is.
        state: its state.
        spans: by group, the tokens whose rows or entries it has.
        blocks: by group, the blocks to write, once it has begun.
        key: what the tier next to the device keeps it under, of a load that has begun.
    """

    means: Means
    node: Node
    state: CacheState
    spans: dict[str, Span]
    blocks: dict[str, Blocks]
    key: CopyKey | None = None

    def __str__(self) -> str:
        return f"{self.means.value} {self.state.name} of {self.node!r}"


class Recovery:
    """The recovery of one leased prefix.

    Who asks for nothing special goes through it in a loop; what moves bytes is then done on the
    way, and each task that comes out has begun, and counts as done when the next is asked for::

        for task in cache.recover(lease):
            compute(task)

    An engine that has several under way asks for ``pending``, and reports with ``begin``,
    ``done`` and ``failed``. Nothing can be read before ``finish`` has found everything complete.

    Attributes:
        node: the node at whose end the lease resumes.
        lost: entries did not check when they were loaded, or something cannot be made again: the
            lease can only be released, and the prompt be matched again.
        aborted: the lease was released before it was complete.
    """

    def __init__(
        self,
        allocator: Allocator,
        policy: Policy,
        request: Request,
        ended: Callable[[str], None],
    ) -> None:
        self._allocator, self._policy, self._request = allocator, policy, request
        self._ended = ended
        self.node = request.target
        self._begun: dict[Cell, Task] = {}
        self.lost = self.aborted = False

    @property
    def finished(self) -> bool:
        """Whether the prefix may be read."""
        return not self.aborted and self._request.phase is not Phase.RECOVERING

    def pending(self) -> list[Task]:
        """Return what may begin now; nothing while others are at it, or when it is finished."""
        with self._allocator.lock:
            if self._request.phase is not Phase.RECOVERING or self.lost or self.aborted:
                return []
            found: list[Task] = []
            moving = self._allocator.transfers_under_way
            for cell in self._allocator.claims(self.node):
                means = self._means(cell)
                if means is Means.LOAD_BACK:
                    moving += 1
                    if moving > self._allocator.settings.transfers_at_once:
                        continue
                if means is not None:
                    found.append(self._task(cell, means))
            return found

    def begin(self, task: Task) -> None:
        """Begin a task: from now on its blocks may be written.

        Raises:
            Refused: it may not begin now.
        """
        allocator, node, state = self._allocator, task.node, task.state
        with allocator.lock:
            cell = node.cells[state]
            if task.means is Means.LOAD_BACK:
                if not allocator.stored(cell):
                    self._fetch(node, state)
                task.key = allocator.load_begin(node, state)
            elif task.means is Means.REPACK:
                allocator.repack(node, state)
            else:
                allocator.make(node, state)
            task.blocks = cell.blocks
            self._begun[cell] = task

    def load(self, task: Task) -> None:
        """Move the bytes of a load from the tier next to the device to where they belong.

        Raises:
            KeyError: the tier has them no more.
            ValueError: they do not check, or it is no load that has begun.
        """
        if task.key is None:
            raise ValueError(f"load: {task} is no load that has begun")
        pages = self._allocator.settings.host.get(task.key)
        for group, blocks in task.blocks.items():
            self._allocator.pools[group].write(blocks, pages[group])

    def done(self, task: Task, offset_bytes: int = 0) -> None:
        """Report that a task has ended well.

        Args:
            task: the task.
            offset_bytes: of a load, how far each page lies behind where it should: it is repacked.

        Raises:
            Refused: it has not begun.
        """
        with self._allocator.lock:
            if self._landed(task):
                return
            node, state = task.node, task.state
            if task.means is Means.LOAD_BACK and offset_bytes:
                self._allocator.load_misaligned(node, state, offset_bytes=offset_bytes)
            elif task.means is Means.LOAD_BACK:
                self._allocator.load_good(node, state)
            elif task.means is not Means.REPACK:
                self._allocator.made(node, state)

    def failed(self, task: Task) -> None:
        """Report that what a load brought does not check: it is made again, if that can be.

        Raises:
            Refused: it has not begun, or it is no load.
        """
        with self._allocator.lock:
            if self._landed(task):
                return
            self._allocator.load_bad(task.node, task.state)
            self.lost = self.lost or not self._can_be_made(task.state)

    def finish(self) -> bool:
        """Take the prefix if all of it is complete; say whether it may be read."""
        allocator, request = self._allocator, self._request
        with allocator.lock:
            if request.phase is Phase.RECOVERING and not self.aborted:
                if not allocator.known(self.node):
                    self.lost = True
                elif allocator.complete(self.node):
                    allocator.resume(request, self.node)
                    self._ended("success")
            return self.finished

    def abort(self) -> None:
        """Note that the lease was released; tasks under way end with ``done`` all the same."""
        self.aborted = True

    def __iter__(self) -> Iterator[Task]:
        while not self.finish():
            tasks = self.pending()
            if not tasks:
                return
            for task in tasks:
                yield from self._go(task)

    def _go(self, task: Task) -> Iterator[Task]:
        try:
            self.begin(task)
        except Refused:
            return  # somebody else has begun it, or what it is made from is still missing
        if task.means not in BY_ITSELF:
            yield task
        elif task.means is Means.LOAD_BACK:
            try:
                self.load(task)
            except (KeyError, ValueError):
                self.failed(task)
                return
        self.done(task)

    def _means(self, cell: Cell) -> Means | None:
        """Return how a cell is brought into use, or nothing if it cannot begin now."""
        allocator, entries = self._allocator, cell.node.cells.get(COMPRESSED)
        if cell.state is INDEXER and entries and entries.device is not Device.READY:
            return None  # when the entries arrive, what it says will be of those before
        if cell.device is Device.READY:
            fit = cell.fit(allocator.layout)
            if fit is Fit.OK:
                return None
            if fit is not Fit.OUT_OF_STEP:
                return Means.REPACK
        elif cell.device is not Device.RESERVED:
            return None
        elif allocator.kept(cell):
            return Means.LOAD_BACK
        if cell.state is COMPRESSED:
            return None
        if not all(source.usable(allocator.layout) for source in allocator.sources(cell)):
            return None
        return Means.REBUILD_INDEX if cell.state is INDEXER else Means.REPLAY

    def _task(self, cell: Cell, means: Means) -> Task:
        node = cell.node
        groups = self._allocator.groups_of[cell.state]
        spans = {
            group.name: content(group, node.start_tokens, node.end_tokens)
            for group in groups
            if group.name in cell.sizes
        }
        return Task(means, node, cell.state, spans, {})

    def _fetch(self, node: Node, state: CacheState) -> None:
        host, disk = self._allocator.settings.host, self._allocator.settings.disk
        key = self._allocator.fetch(node, state)
        if disk is not None:  # there is one, or nothing could be fetched
            host.put(key, disk.get(key))

    def _landed(self, task: Task) -> bool:
        """Let a task end that was given up in the middle; say whether it was.

        By whomever: the work belongs to the prefix, and goes on for others who recover it. A repack
        is over when it has begun, so nothing is ever withheld for it.
        """
        cell = task.node.cells[task.state]
        if self._begun.pop(cell, None) is not task:
            raise Refused("A-22", "done", "begun", {"task": task})
        if task.means is Means.REPACK:
            return False
        return self._allocator.release_withheld(task.state, task.blocks)

    def _can_be_made(self, state: CacheState) -> bool:
        groups = self._allocator.groups_of[state]
        again = all(group.role is Role.REBUILDABLE for group in groups)
        return again and (state is INDEXER or self._policy.replay)
