"""Restart: an empty allocator gets the prefixes that an earlier process left on disk (重启恢复).

It is the machine's ``crash``: a prefix is known whose entries are complete on disk, from its first
token on; everything else is as it is in a new process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, Copied, CopyKey, Node, content
from fivestate.impl.recovery.chains import Place
from fivestate.impl.recovery.copies import Rows
from fivestate.impl.recovery.disk import DiskCopies
from fivestate.spec.need import blocks
from fivestate.spec.vocabulary import COMPRESSED


@dataclass
class Restored:
    """What a restart has found.

    Attributes:
        nodes: segments that are known again.
        cells: cells that have a copy.
        rejected: objects that are of no use: what is before them is not there.
    """

    nodes: list[Node] = field(default_factory=list[Node])
    cells: int = 0
    rejected: int = 0


def restore(allocator: Allocator) -> Restored:
    """Fill an empty allocator with what its disk has.

    No object is read: each is checked when it is loaded, and one that fails is recomputed.

    Raises:
        ValueError: the allocator is not empty, or its disk is not of ``DiskCopies``.
        DiskError: the table of places cannot be read.
    """
    disk = allocator.settings.disk
    if not isinstance(disk, DiskCopies):
        raise ValueError(f"restore: settings.disk is {disk!r}: DiskCopies are needed")  # noqa: TRY004 -- bad input is a ValueError throughout
    with allocator.lock:
        if allocator.root.children:
            raise ValueError("restore: the allocator has prefixes already: a new one is needed")
        allocator.layout, allocator.weights = disk.layout, disk.weights
        found = sorted(disk.found().items(), key=lambda each: _order(*each))
        tree = _Tree(allocator, disk)
        for name, place in found:
            tree.add(name, place)
        restored = tree.settle()
        for name, _ in found:
            disk.reject(name)
        return restored


def _order(name: str, place: Place) -> tuple[int, bool, int, str]:
    """What is before comes first; of one segment the entries, and the longest of them."""
    return place.start_tokens, place.state is not COMPRESSED, -len(place.digests), name


class _Tree:
    """The tree of nodes as it grows again."""

    def __init__(self, allocator: Allocator, disk: DiskCopies) -> None:
        self._allocator, self._disk = allocator, disk
        self._at: dict[bytes, Node] = {}
        self._serial = 0
        self._restored = Restored()

    def add(self, name: str, place: Place) -> None:
        """Attach an object to the nodes that it has the bytes of."""
        path = self._path(place)
        attached = [self._attach(node, name, place) for node in path]
        if any(attached):
            self._restored.cells += sum(attached)
        else:
            self._restored.rejected += 1

    def settle(self) -> Restored:
        """Make known whose entries are there from the first token on, and let the rest go."""
        allocator = self._allocator
        for node in allocator.nodes():
            entries = node.cells.get(COMPRESSED)
            before = node.parent is None or node.parent.known
            node.known = before and entries is not None and entries.disk is not None
            if node.known:
                self._restored.nodes.append(node)
        for node in reversed(list(allocator.nodes())):
            if not node.known:
                for cell in node.cells.values():
                    self._let_go(cell)
                allocator.prune(node)
        return self._restored

    def _let_go(self, cell: Cell) -> None:
        if cell.disk is not None:
            self._disk.drop(cell.disk.key)
            cell.disk = None
            self._restored.cells -= 1

    def _path(self, place: Place) -> list[Node]:
        """Return the nodes that a segment is made of, grown and split as far as it takes."""
        allocator, step = self._allocator, self._allocator.settings.geometry.scheduler_block_size
        node: Node | None = allocator.root if not place.parent else self._at.get(place.parent)
        if node is None:
            return []
        if node.end_tokens != place.start_tokens:
            node = self._split(node, place.start_tokens)
        path, rest = list[Node](), list(place.digests)
        while rest and node is not None:
            child = node.children.get(rest[0])
            if child is None:
                child = allocator.grow(node, rest)
                self._at.update(dict.fromkeys(child.digests, child))
            same = _same(child.digests, rest)
            if same < len(child.digests):
                child = self._split(child, child.start_tokens + same * step)
            if child is not None:
                path.append(child)
            node, rest = child, rest[same:]
        return path if not rest and node is not None else []

    def _split(self, node: Node, at_tokens: int) -> Node | None:
        """Return the upper part of a node, if it can be split there."""
        if not self._allocator.can_split(node, at_tokens):
            return None
        upper = self._allocator.split(node, at_tokens)
        self._at.update(dict.fromkeys(upper.digests, upper))
        return upper

    def _attach(self, node: Node, name: str, place: Place) -> bool:
        """Give a node's cell its blocks of an object, if they are all there and it has none."""
        cell = node.cells.get(place.state)
        rows = None if cell is None or cell.disk is not None else self._rows(cell, place)
        if cell is None or not rows:
            return False
        self._serial -= 1  # what the allocator numbers by itself starts at 1
        key = CopyKey(node.digests[-1], place.state, self._serial)
        self._disk.attach(key, name, rows, place.size_bytes)
        cell.disk = Copied(key, place.layout, complete=True)
        return True

    def _rows(self, cell: Cell, place: Place) -> Rows | None:
        """Return, by group, which blocks of an object are a cell's; nothing if some are not."""
        step = self._allocator.settings.geometry.scheduler_block_size
        node, end = cell.node, place.start_tokens + len(place.digests) * step
        rows: dict[str, tuple[int, int]] = {}
        for group in self._allocator.groups_of[place.state]:
            if group.name not in cell.sizes:
                continue
            span = content(group, node.start_tokens, node.end_tokens)
            has = content(group, place.start_tokens, end)
            if group.recurrent and span.end != has.end:
                return None
            if not has.start <= span.start <= span.end <= has.end:
                return None
            first = (span.start - has.start) // group.block_size
            rows[group.name] = first, first + blocks(span.tokens, group.block_size)
        return rows


def _same(one: list[bytes], other: list[bytes]) -> int:
    """Return how many digests two lists share at their start."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
