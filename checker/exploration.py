"""What a search has covered: the form in which every engine reports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fivestate.spec.language.model import Codes, Model

RANGE = "declared_ranges"
"""The name under which a value that leaves its declared range is found."""


@dataclass(frozen=True)
class Limits:
    """Where a search has to stop; a search that stops has proved nothing."""

    states: int | None = None
    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Finding:
    """Where a property is decided.

    Attributes:
        state: the number of the state that decides, or in which the deciding step starts.
        step: the number of the deciding step in ``model.steps``, for step properties and ranges.
        detail: the parameters for which it is decided, ``r=r1, g=WINDOW``.
    """

    state: int
    step: int | None = None
    detail: str = ""


Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Edges:
    """A state graph in compressed rows.

    The edges of state ``i`` are ``offsets[i]:offsets[i + 1]``: each leads to ``targets[e]`` by
    step ``labels[e]`` of ``model.steps``.
    """

    offsets: Integers
    targets: Integers
    labels: Integers


@dataclass(frozen=True)
class Exploration:
    """The part of a model's state graph that a search has seen.

    States are numbered in the order in which they are found, breadth first, so that a state's
    number never exceeds that of a state further away.

    Attributes:
        model: the model.
        engine: the name of the engine.
        stopped: why the search ended early; empty if it has seen everything.
        states: every state found; may decode a state only when it is asked for.
        parents: for each state the one it was found from; -1 for the first.
        parent_steps: for each state the step that led to it; -1 for the first.
        levels: how many states are at each distance from the first.
        firings: how often each step of ``model.steps`` was taken.
        findings: per property the first place that decides it: a violation, or for a witness
            the state that shows it.
        edges: the graph, where it was asked for; complete only if the search is.
        seconds: how long the search took.
    """

    model: Model
    engine: str
    stopped: str
    states: Sequence[Codes]
    parents: Sequence[int] | Integers
    parent_steps: Sequence[int] | Integers
    levels: list[int]
    firings: list[int]
    findings: dict[str, Finding]
    edges: Edges | None
    seconds: float

    @property
    def distinct(self) -> int:
        """How many distinct states were found."""
        return len(self.states)

    @property
    def transitions(self) -> int:
        """How many steps were taken, counted once from each state they start in."""
        return sum(self.firings)

    @property
    def depth(self) -> int:
        """How many steps away the furthest state is."""
        return len(self.levels) - 1

    def firings_by_action(self) -> dict[str, int]:
        """How often each action was taken, with any arguments."""
        counts = {action.name: 0 for action in self.model.actions}
        for step, fired in zip(self.model.steps, self.firings, strict=True):
            counts[step.action.name] += fired
        return counts

    def path(self, state: int) -> list[tuple[int, int]]:
        """Return a shortest way to a state: pairs of a step and the state it leads to."""
        way: list[tuple[int, int]] = []
        while state:
            way.append((int(self.parent_steps[state]), state))
            state = int(self.parents[state])
        return way[::-1]


Progress = Callable[[int, int], None]
"""Called now and then with the states found and the states explored so far."""


class Engine(Protocol):
    """A way to explore a model breadth first, until everything is seen or something stops it."""

    def __call__(
        self,
        model: Model,
        limits: Limits,
        interrupted: threading.Event,
        *,
        edges: bool,
        progress: Progress | None = None,
    ) -> Exploration:
        """Explore ``model``; keep the graph's edges only if ``edges`` asks for them."""
        ...
