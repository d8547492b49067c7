"""The tree of prefixes: nodes are added, split where prompts part, and taken away."""

from __future__ import annotations

from collections.abc import Mapping

from fivestate.impl.allocator.effects import Effects
from fivestate.impl.allocator.settings import Divisible
from fivestate.impl.chain import Cell, Copied, Node, content, sizes
from fivestate.impl.pools import CELL, PRIVATE, Blocks
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import CacheState, Copy, Device, Phase


class Tree(Effects):
    """What changes the shape of the tree; none of it is an action of the machine."""

    def grow(self, parent: Node, digests: list[bytes]) -> Node:
        """Add a node behind ``parent``: unknown, and without anything.

        Args:
            parent: the node before it, or the root.
            digests: for each scheduler block of it, the digest of the chain up to its end.

        Raises:
            ValueError: there are none, or a node behind ``parent`` begins with the same block.
        """
        self._check_argument("grow", "parent", Node, parent)
        if not digests:
            raise ValueError("grow: digests is empty: one whole scheduler block is needed")
        with self._lock:
            if digests[0] in parent.children:
                raise ValueError(f"grow: {parent!r} has a child that begins with this block")
            start = parent.end_tokens
            end = start + len(digests) * self.settings.geometry.scheduler_block_size
            node = Node(self, parent, start, end, list(digests))
            self._add_cells(node)
            parent.children[digests[0]] = node
            return node

    def _add_cells(self, node: Node) -> None:
        for state, taken in self._sizes.of(node.start_tokens, node.end_tokens).items():
            node.cells[state] = Cell(node, state, taken)

    def can_split(self, node: Node, at_tokens: int) -> bool:
        """Say whether a node may be split at a boundary inside it.

        Not while anything of it is under way or captured. Not where what is kept for its end, a
        window or a tail, would come apart, nor where a snapshot would be missing. Not where a tier
        that keeps a copy cannot cut it. At such boundaries a prompt that parts there shares less.
        """
        step = self.settings.geometry.scheduler_block_size
        if not node.start_tokens < at_tokens < node.end_tokens or at_tokens % step:
            return False
        if node.recoverers or node.graphs:
            return False
        return all(self._can_cut(cell, at_tokens) for cell in node.cells.values())

    def _can_cut(self, cell: Cell, at_tokens: int) -> bool:
        if Copy.STORING in (self.copy_of(cell), self.disk_of(cell)):
            return False
        if cell.device not in (Device.ABSENT, Device.READY):
            return False
        groups = self.groups_of[cell.state]
        if cell.state in self._whole:
            tiers = (self.settings.host, cell.copy), (self.settings.disk, cell.disk)
            cuts = all(copied is None or isinstance(tier, Divisible) for tier, copied in tiers)
            return cuts and not any(group.recurrent for group in groups)
        if self._blank(cell):
            return True
        node = cell.node
        return all(
            content(g, node.start_tokens, node.end_tokens).start >= at_tokens for g in groups
        )

    def split(self, node: Node, at_tokens: int) -> Node:
        """Split a node at a boundary inside it; the lower part stays the node that it was.

        Returns:
            The upper part, which is new. Who holds the lower part's entries holds the upper's.

        Raises:
            ValueError: it may not be split there.
        """
        self._check_argument("split", "node", Node, node)
        with self._lock:
            parent = node.parent
            if parent is None or not self.can_split(node, at_tokens):
                raise ValueError(f"split: {node!r} may not be split at {at_tokens}")
            count = (at_tokens - node.start_tokens) // self.settings.geometry.scheduler_block_size
            upper = Node(self, parent, node.start_tokens, at_tokens, node.digests[:count])
            self._add_cells(upper)
            upper.known, upper.entries_generation = node.known, node.entries_generation
            parent.children[upper.digests[0]] = upper
            node.parent, node.start_tokens, node.digests = upper, at_tokens, node.digests[count:]
            upper.children[node.digests[0]] = node
            for state in list(node.cells):
                self._cut(node, state, upper)
            self._shape += 1
            return upper

    def _cut(self, node: Node, state: CacheState, upper: Node) -> None:
        cell, groups = node.cells[state], self.groups_of[state]
        left = sizes(groups, node.start_tokens, node.end_tokens)
        if state not in self._whole:
            cell.sizes = left
            return
        first = upper.cells[state]
        first.device, first.layout, first.offset_bytes = cell.device, cell.layout, cell.offset_bytes
        first.generation, first.readers = cell.generation, cell.readers
        for group, blocks in cell.blocks.items():
            first.blocks[group] = blocks[: first.sizes[group]]
            cell.blocks[group] = blocks[first.sizes[group] :]
        cell.sizes = left
        copied = self._cut_copy(self.settings.host, cell.copy, first)
        if copied is not None:
            self._set_copy(first, copied)
        first.disk = self._cut_copy(self.settings.disk, cell.disk, first)
        if cell.readers:
            for request in self._using:
                if any(held is cell for held in request.held):
                    request.held = (first, *request.held)
        self._touch(first)

    def _cut_copy(self, tier: object, copied: Copied | None, first: Cell) -> Copied | None:
        if copied is None or not isinstance(tier, Divisible):
            return None
        upper, lower = self._new_copy(first), copied.key._replace(serial=self._serial)
        upper.layout, upper.complete = copied.layout, copied.complete
        tier.split(copied.key, upper.key, lower, first.sizes)
        copied.key = lower
        return upper

    def prune(self, node: Node) -> bool:
        """Take away a node that has nothing, that nobody wants and that nothing is behind.

        Returns:
            Whether it has been taken away.
        """
        self._check_argument("prune", "node", Node, node)
        with self._lock:
            parent = node.parent
            wanted = any(r.want is node for r in (*self._queue, *self._using))
            if parent is None or node.children or node.recoverers or wanted:
                return False
            if self._has_anything(node) or parent.children.get(node.digests[0]) is not node:
                return False
            del parent.children[node.digests[0]]
            return True

    def adopt(
        self,
        request: Request,
        node: Node,
        blocks: Mapping[CacheState, Mapping[str, Blocks]],
    ) -> None:
        """Make private blocks of a running request the cells of a new node, in one step.

        It is what a request that recovers the node would do, from its arrival to its end, with the
        blocks moved instead of written again; the running request then leases the new node, whose
        cells it goes on reading.

        Args:
            request: it runs at the end of the node's parent; or before, if others have published
                what is between.
            node: unknown and without anything of its own, as ``grow`` returns it.
            blocks: by state and group, the blocks that hold what the cell should; all written.

        Raises:
            ValueError: anything of this is not so; nothing is changed.
        """
        self._check_argument("adopt", "request", Request, request)
        self._check_argument("adopt", "node", Node, node)
        with self._lock:
            left = self._check_adoption(request, node, blocks)
            request.private |= left
            for state, by_group in blocks.items():
                cell = node.cells[state]
                for group, given in by_group.items():
                    self.pools[group].hand_over(given, PRIVATE, CELL)
                    cell.blocks[group] = given.copy()
            generation = node.entries_generation + 1
            for state in blocks:
                node.cells[state].generation = generation  # of the entries that arrive with it
                self._arrive_in_cell(node.cells[state], self.layout)
            node.entries_generation = generation
            node.known = True
            held, now = request.held, self.need(node)
            before = set(held)
            for cell in now:
                if cell not in before:
                    cell.readers += 1
            gone = before.difference(now)
            self._let_go([cell for cell in held if cell in gone] if gone else ())
            request.held, request.want, request.slid = now, node, False

    def _check_adoption(
        self,
        request: Request,
        node: Node,
        blocks: Mapping[CacheState, Mapping[str, Blocks]],
    ) -> dict[str, Blocks]:
        """Return, by group, the private blocks that are left to the request.

        Raises:
            ValueError: the node cannot be adopted.
        """
        parent = node.parent
        if (
            request.phase is not Phase.RUNNING
            or parent is None
            or (not self.known(parent) or not request.target.within(parent))
        ):
            why = "the request does not run at the end of the node's parent"
            raise _not_adopted(request, node, why)
        blank = not node.known and all(map(self._blank, node.cells.values()))
        if not blank or node.recoverers:
            raise _not_adopted(request, node, "the node is not new")
        if blocks.keys() != node.cells.keys():
            raise _not_adopted(request, node, f"blocks are for {[s.name for s in blocks]}")
        left: dict[str, Blocks] = {}
        for state, by_group in blocks.items():
            counts = {group: given.size for group, given in by_group.items()}
            if counts != node.cells[state].sizes:
                raise _not_adopted(request, node, f"{state.name} gets {counts} blocks")
            for group, given in by_group.items():
                own = self.pools[group].without(request.private.get(group, given[:0]), given)
                if own is None:
                    why = f"a block of {group} is not the request's own"
                    raise _not_adopted(request, node, why)
                left[group] = own
        for cell in self.need(node):
            missing = not cell.readers and not cell.usable(self.layout)  # who reads has it (I-3)
            if missing and cell.node is not node:
                raise _not_adopted(request, node, "what is before the node is not complete")
        return left


def _not_adopted(request: Request, node: Node, why: str) -> ValueError:
    return ValueError(f"adopt: {request!r}, {node!r}: {why}")
