"""Requests: what each is doing, which prefix it wants, and what it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fivestate.impl.pools import Blocks
from fivestate.spec.vocabulary import Phase

if TYPE_CHECKING:
    from fivestate.impl.chain import Cell, Node

WAITING = (Phase.MISS, Phase.PARTIAL, Phase.HIT)
"""The phases between arrival and admission or lease: the verdict is part of them."""

RUNS = (Phase.RUNNING, Phase.REPLAYING)
"""The phases in which a step is under way."""

IN_USE = (Phase.RECOVERING, Phase.LEASED, *RUNS, Phase.DRAINING)
"""The phases in which a request has its private blocks."""


class Request:
    """One request: a record that the allocator's actions change, and nobody else.

    Attributes:
        home: the allocator that it belongs to.
        name: what messages call it.
        private_demand: by group, the blocks that it needs for itself alone while it is in use.
        phase: what it is doing.
        want: the node at whose end it wants to resume; nothing while it is idle.
        arrival: which arrival it was; who has the smallest number has waited longest.
        seen: what the counters of loss were when it looked; its verdict stands while they are
            the same.
        slid: its window has moved past the prefix.
        copied: it has a tail of its own.
        grown: it has written behind the prefix.
        private: by group, the blocks that it has for itself alone.
        held: the cells that its lease pins.
    """

    __slots__ = (
        "arrival",
        "copied",
        "grown",
        "held",
        "home",
        "name",
        "phase",
        "private",
        "private_demand",
        "seen",
        "slid",
        "want",
    )

    def __init__(self, home: object, name: str, private_demand: Mapping[str, int]) -> None:
        self.home, self.name = home, name
        self.private_demand = dict(private_demand)
        self.phase = Phase.IDLE
        self.want: Node | None = None
        self.arrival = 0
        self.seen = 0
        self.slid = self.copied = self.grown = False
        self.private: dict[str, Blocks] = {}
        self.held: tuple[Cell, ...] = ()

    @property
    def waiting(self) -> bool:
        """Whether it waits: from its arrival until it is admitted or leases."""
        return self.phase in WAITING

    @property
    def in_use(self) -> bool:
        """Whether it has its private blocks: from admission or lease until its last kernel ends."""
        return self.phase in IN_USE

    @property
    def target(self) -> Node:
        """The node that it wants.

        Raises:
            ValueError: it is idle.
        """
        if self.want is None:
            raise ValueError(f"{self.name} is idle: it wants nothing")
        return self.want

    def __repr__(self) -> str:
        return self.name
