"""What every action of the allocator stands on: the lock, the one hook for guards, the pools."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Concatenate, ParamSpec, TypeVar

import torch

from fivestate.impl.allocator.settings import Settings
from fivestate.impl.chain import Cell, CellSizes, Copied, Node
from fivestate.impl.pools import Blocks, Pool
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.language import EVERY
from fivestate.spec.reuse import CacheGroup, Shape
from fivestate.spec.vocabulary import CacheState

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self", bound="Base")


@dataclass(frozen=True)
class Implements:
    """What a method says about the action of the machine that it is.

    Attributes:
        clause: the action's id.
        name: its name.
        state: the state that it is for, the name of the parameter that says so, or ``EVERY``.
        parameters: the kind of each parameter, by name, in order.
    """

    clause: str
    name: str
    state: CacheState | str
    parameters: dict[str, type]


KINDS: dict[str, type] = {"Request": Request, "Node": Node, "CacheState": CacheState}
"""What an action's parameters are: a request, a prefix, or the state of a cell."""


def action(
    clause: str,
    state: CacheState | str = EVERY,
) -> Callable[[Callable[Concatenate[Self, P], R]], Callable[Concatenate[Self, P], R]]:
    """Make the method below an action of the machine: checked arguments, under the one lock.

    Args:
        clause: the action's id.
        state: the state that it is for, the name of the parameter that says so, or ``EVERY``.
    """

    def decorate(
        method: Callable[Concatenate[Self, P], R],
    ) -> Callable[Concatenate[Self, P], R]:
        name = method.__name__
        hints = method.__annotations__
        kinds = {parameter: KINDS[hint] for parameter, hint in hints.items() if hint in KINDS}
        Base.actions[name] = Implements(clause, name, state, kinds)
        pairs = tuple(kinds.items())
        fixed = state if isinstance(state, CacheState) else None

        @functools.wraps(method)
        def locked(self: Self, /, *args: P.args, **options: P.kwargs) -> R:
            for (parameter, kind), value in zip(pairs, args, strict=False):
                if type(value) is not kind or getattr(value, "home", self) is not self:
                    self._check_argument(name, parameter, kind, value)
            for parameter in kinds.keys() & options.keys() if options else ():
                self._check_argument(name, parameter, kinds[parameter], options[parameter])
            if fixed is not None and fixed not in self.groups_of:
                raise Refused(clause, name, "state", {"state": fixed})
            with self._lock:
                return method(self, *args, **options)

        return locked

    return decorate


@dataclass(eq=False)
class Doubt:
    """Blocks of one cell that a transfer may still touch: withheld until it has landed.

    Attributes:
        state: the cell's state.
        blocks: by group, the blocks.
        landed: whether the transfer has ended.
    """

    state: CacheState
    blocks: dict[str, Blocks]
    landed: bool = False


class Base:
    """What an allocator has.

    Attributes:
        settings: its sizes and its policy.
        groups_of: by state, the voting groups of that state.
        pools: by group, the pool.
        root: the node before every prefix; it has no tokens, and is always known.
        layout: the epoch of the kernels; goes up when they change.
        weights: the epoch of the weights; goes up when they change.
        null_dirty: something may have been written to the null blocks.
        doubts: by state, what is withheld, in the order in which it was given up.
    """

    actions: ClassVar[dict[str, Implements]] = {}

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        geometry, device = settings.geometry, torch.device(settings.device)
        self.groups_of: dict[CacheState, tuple[CacheGroup, ...]] = {}
        for group in geometry.voting:
            self.groups_of[group.state] = (*self.groups_of.get(group.state, ()), group)
        self.pools: dict[str, Pool] = {
            group.name: Pool(
                group,
                settings.num_blocks[group.name],
                settings.page_bytes.get(group.name, group.layers * group.page_size_bytes),
                device,
            )
            for group in geometry.groups
        }
        self._sizes = CellSizes(self.groups_of)
        self.root = Node(self, None, 0, 0, [])
        self.layout = self.weights = 0
        self.null_dirty = False
        self.doubts: dict[CacheState, list[Doubt]] = {state: [] for state in self.groups_of}
        self._lock = threading.RLock()
        self._queue: dict[Request, None] = {}  # who waits, the longest first
        self._using: dict[Request, None] = {}  # who is in use
        self._reserved: set[Cell] = set()
        self._loading: set[Cell] = set()
        self._copying: set[Copied] = set()  # on their way to the host tier or to disk
        self._copied: dict[CacheState, dict[Cell, None]] = {state: {} for state in self.groups_of}
        self._largest: dict[str, int] = {}  # by group, the most blocks that a copy has had
        self._order: dict[CacheState, OrderedDict[Cell, None]] = {
            state: OrderedDict() for state in self.groups_of
        }
        self._arrivals = self._serial = self._everywhere = self._shape = 0
        # The states of which every node of a prefix is needed, whatever its end.
        self._whole = {
            state
            for state, groups in self.groups_of.items()
            if any(group.shape in (Shape.PREFIX, Shape.POINT) for group in groups)
        }
        self._most_rows = max(group.most_rows for group in geometry.voting)

    def new_request(self, name: str = "request", **private_demand: int) -> Request:
        """Return a new idle request.

        Args:
            name: what messages call it.
            private_demand: by group, the blocks that it needs for itself alone while in use.

        Raises:
            ValueError: a group is unknown, or a number is negative or more than its pool has.
        """
        for group, count in private_demand.items():
            pool = self.pools.get(group)
            if pool is None:
                known = ", ".join(self.pools)
                raise ValueError(f"{name}: there is no group {group!r}; known: {known}")
            if not 0 <= count <= pool.num_blocks:
                allowed = f"0 to {pool.num_blocks} is allowed"
                raise ValueError(f"{name}: private_demand of {group} = {count}: {allowed}")
        return Request(self, name, private_demand)

    @property
    def lock(self) -> threading.RLock:
        """The one lock: whoever holds it takes several steps as one."""
        return self._lock

    @property
    def transfers_under_way(self) -> int:
        """How many loads, stores and demotions are under way."""
        return len(self._loading) + len(self._copying)

    def oldest(self, state: CacheState) -> Iterator[Cell]:
        """Yield the complete cells of a state, what was let go longest ago first."""
        yield from self._order[state]

    def nodes(self) -> Iterator[Node]:
        """Yield every node but the root, each after its parent."""
        return self.root.descendants()

    def cells(self) -> Iterator[Cell]:
        """Yield every cell."""
        for node in self.nodes():
            yield from node.cells.values()

    def _require(self, action: str, guard: str, truth: bool, /, **given: object) -> None:  # noqa: FBT001 -- a guard is a truth
        """Refuse the action if the guard is false: every guard of every action comes through here.

        Raises:
            Refused: it is false.
        """
        if not truth:
            raise Refused(self.actions[action].clause, action, guard, given)

    def _cell(self, action: str, node: Node, state: CacheState) -> Cell:
        """Return a node's cell.

        Raises:
            Refused: the node has no cell of this state.
        """
        cell = node.cells.get(state)
        if cell is None:
            given = {"node": node, "state": state}
            raise Refused(self.actions[action].clause, action, "state", given)
        return cell

    def _check_argument(self, action: str, parameter: str, kind: type, value: object) -> None:
        """Refuse an argument of the wrong kind, or of another allocator.

        Raises:
            ValueError: it is.
        """
        if not isinstance(value, kind):
            shown = f"{action}: {parameter} is {value!r}"
            raise ValueError(f"{shown}: a {kind.__name__} is allowed")  # noqa: TRY004 -- bad input is a ValueError throughout
        if getattr(value, "home", self) is not self:
            raise ValueError(f"{action}: {parameter} = {value!r} belongs to another allocator")
