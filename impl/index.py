"""Index: from the digests of a prompt to the node in which what is known of it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from fivestate.impl.keys import NARROW_BYTES, Prompt

if TYPE_CHECKING:
    from fivestate.impl.chain import Node

TAILS_OF_ONE = 8
"""How many ends of sequences are remembered behind one block: the latest."""

REMEMBERED_BYTES = 64 << 20
"""How many bytes of such ends are remembered in all; the oldest block's go first."""

SWEEP_AT = 4_096
"""How many digests there are, at the least, before useless ones are looked for."""


class Found(NamedTuple):
    """How far a prompt is known.

    Attributes:
        node: the node in which the known part ends; the root where nothing is known.
        blocks: scheduler blocks whose digests are known.
        tokens: tokens that were seen, in whole hash blocks: those, and some behind them.
    """

    node: Node
    blocks: int
    tokens: int


class Index:
    """The nodes of a tree by their digests, and the ends of sequences that fill no block.

    A node is found by each of its digests. The tree gives up leaves only, so the digests of one
    prompt that are in it are its first ones: a search by halves finds how many. A node that is
    there and not known hides everything behind it.

    It is not thread-safe: who calls it holds the allocator's lock.
    """

    def __init__(
        self,
        root: Node,
        remembered_bytes: int = REMEMBERED_BYTES,
        sweep_at: int = SWEEP_AT,
    ) -> None:
        self._root = root
        self._nodes: dict[bytes, Node] = {}
        self._tails: dict[bytes, deque[bytes]] = {}
        self._tail_bytes = 0
        self._remembered_bytes = remembered_bytes
        self._sweep_at = self._least = sweep_at

    def __len__(self) -> int:
        return len(self._nodes)

    def put(self, node: Node) -> None:
        """Let a node be found by each of its digests, instead of who was before."""
        self._nodes.update(dict.fromkeys(node.digests, node))

    def clear(self) -> None:
        """Forget everything."""
        self._nodes.clear()
        self._tails.clear()
        self._tail_bytes = 0

    def find(self, prompt: Prompt) -> Found:
        """Return how far a prompt is known.

        Cost: a lookup for each halving of the number of blocks, and one for each node on the way.
        """
        digests, nodes = prompt.digests(), self._nodes
        low, high = 0, len(digests)
        if high and digests[-1] in nodes:
            low = high
        while low < high:
            middle = (low + high + 1) // 2
            if digests[middle - 1] in nodes:
                low = middle
            else:
                high = middle - 1
        node = nodes[digests[low - 1]] if low else self._root
        step = prompt.keys.step_tokens
        while node.start_tokens >= low * step and node.parent is not None:
            node = node.parent  # it has been split since it was put
        found, at = node, node.parent
        while at is not None:
            if not node.known:
                found, low = at, node.start_tokens // step
            node, at = at, at.parent
        return Found(found, low, low * step + self._seen(prompt, low))

    def sweep(self, nodes: Iterable[Node], prune: Callable[[Node], bool]) -> None:
        """Take away what nobody can use any more, from the leaves on.

        It looks at every node, so it waits until the index has doubled.

        Args:
            nodes: every node, each after its parent.
            prune: takes a node away if nothing is left of it, and says whether it did.
        """
        if len(self._nodes) < self._sweep_at:
            return
        for node in reversed(list(nodes)):
            if not node.known and prune(node):
                self._remove(node)
        self._sweep_at = max(2 * len(self._nodes), self._least)

    def _remove(self, node: Node) -> None:
        for digest in node.digests:
            self._nodes.pop(digest, None)
        if node.parent is not None:
            self.put(node.parent)  # it may have been a part of this one when that was put

    def note(self, prompt: Prompt) -> None:
        """Remember the end of a sequence that fills no block: it was seen, if it comes again."""
        blocks = len(prompt) // prompt.keys.step_tokens
        tail = prompt.behind(blocks)
        if len(tail) < prompt.keys.fine_tokens * NARROW_BYTES:
            return
        parent = prompt.chained(blocks)
        tails = self._tails.get(parent)
        if tails is None:
            tails = self._tails[parent] = deque(maxlen=TAILS_OF_ONE)
        elif tail in tails:
            return
        elif len(tails) == TAILS_OF_ONE:
            self._tail_bytes -= len(tails[0])
        tails.append(tail)
        self._tail_bytes += len(tail)
        while self._tail_bytes > self._remembered_bytes:
            oldest = self._tails.pop(next(iter(self._tails)))
            self._tail_bytes -= sum(map(len, oldest))

    def _seen(self, prompt: Prompt, blocks: int) -> int:
        """Return how many tokens behind a block were seen, in whole hash blocks."""
        tails = self._tails.get(prompt.chained(blocks))
        if not tails:
            return 0
        behind, size = prompt.behind(blocks), prompt.keys.fine_tokens
        return max(_shared(behind, tail) for tail in tails) // (size * NARROW_BYTES) * size


def _shared(one: bytes, other: bytes) -> int:
    """Return how many bytes two strings share at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
