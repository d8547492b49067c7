"""A tour: one allocator driven along the state graph of a model, edge by edge.

Successors and guards come from the specification's trees, compiled by the checker. Behind every
step the whole abstract state is compared; in every state that is new, every step that is disabled
is tried, and must be refused by its first false guard, with nothing changed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.impl.twin import Twin

from fivestate.checker.engines.source import Writer, build, successors_source
from fivestate.impl.allocator import Allocator
from fivestate.spec.language import Model
from fivestate.spec.language.model import Codes

ONE_BY_ONE = 16
"""In one of so many states, the state is compared behind each refusal, not only behind them all."""


class Disagreement(AssertionError):  # noqa: N818 -- a finding about the allocator
    """The allocator and the specification do not agree."""


def falses_source(model: Model) -> str:
    """Return the source of ``falses(s)``: for each step, a bit for each of its guards, if false."""
    writer = Writer(model)
    lines = ["def falses(s):", writer.unpack("s"), "    return ("]
    for step in model.steps:
        bits = [
            f"(0 if {writer.expression(condition)} else {1 << at})"
            for at, (_, condition) in enumerate(step.guards)
        ]
        lines.append(f"        {' | '.join(bits) or '0'},  # {step.label}")
    return "\n".join([*lines, "    )"]) + "\n"


class Graph:
    """The state graph of a model, as far as it has been looked at; states are numbered."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.states: list[Codes] = [model.initial]
        self.numbers = {model.initial: 0}
        self.edges: dict[int, list[tuple[int, int]]] = {}
        self.falses = build(falses_source(model), "falses")
        self._successors = build(successors_source(model), "successors")

    def successors(self, state: int) -> list[tuple[int, int]]:
        """Return the steps that are enabled in a state, each with the state that it leads to."""
        known = self.edges.get(state)
        if known is None:
            out: list[tuple[int, Codes]] = []
            bad: list[int] = []
            self._successors(self.states[state], out, bad)
            assert not bad, "a value leaves its range"
            known = self.edges[state] = [(step, self.number(codes)) for step, codes in out]
        return known

    def number(self, codes: Codes) -> int:
        """Return a state's number."""
        number = self.numbers.setdefault(codes, len(self.states))
        if number == len(self.states):
            self.states.append(codes)
        return number


@dataclass
class Report:
    """What a tour has covered.

    Attributes:
        model: the model's name.
        edges: distinct edges taken.
        states: distinct states visited; in each, every disabled step was tried.
        steps: steps taken, those on the way to an edge included.
        complete: whether no edge of the model is left.
        fired: how often each action was taken, by name, on edges taken for the first time.
        refused: how often each guard of each action was the first false one.
    """

    model: str
    edges: int = 0
    states: int = 0
    steps: int = 0
    complete: bool = False
    fired: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])


class Tour:
    """One allocator on its way through the graph.

    Args:
        model: a model of ``spec.allocator``.
        allocator: what makes the allocator; a faulty one can be given.
        graph: the model's graph, where it has been looked at before.
    """

    def __init__(
        self,
        model: Model,
        allocator: type[Allocator] = Allocator,
        graph: Graph | None = None,
    ) -> None:
        self.model, self._make = model, allocator
        self.graph = graph or Graph(model)
        self.report = Report(model.name)
        self._left: dict[int, list[tuple[int, int]]] = {}
        self._names = [step.action.name for step in model.steps]
        self._guards = [[name for name, _ in step.guards] for step in model.steps]
        self._start()

    def _start(self) -> None:
        self.twin, self.at = Twin(self.model, self._make), 0
        self._compare(0, "the start")

    def cover(self, most_edges: int) -> Report:
        """Take edges that have not been taken until ``most_edges`` are, or none is left.

        Where there is a choice, the action that was taken least is: so a short tour sees them all.

        Raises:
            Disagreement: the allocator does something else than the specification.
        """
        report = self.report
        while report.edges < most_edges:
            left = self._visit()
            if left:
                fired, names = report.fired, self._names
                chosen = min(range(len(left)), key=lambda at: fired[names[left[at][0]]])
                step, target = left.pop(chosen)
                self._take(step, target)
                report.edges += 1
                fired[names[step]] += 1
                continue
            way = self._way_to_open(self.at)
            if way is None and self.at:
                self._start()
            elif way is None:
                report.complete = True
                break
            else:
                for step, target in way:
                    self._take(step, target)
        return report

    def follow(self, way: Iterable[int]) -> None:
        """Take some steps from the start; those that have not been taken count.

        Raises:
            Disagreement: the allocator does something else than the specification.
        """
        self._start()
        for step in way:
            left = self._visit()
            (edge,) = (e for e in self.graph.successors(self.at) if e[0] == step)
            if edge in left:
                left.remove(edge)
                self.report.edges += 1
                self.report.fired[self._names[step]] += 1
            self._take(*edge)

    def _way_to_open(self, start: int) -> list[tuple[int, int]] | None:
        """Return a shortest way to a state with an edge that has not been taken."""
        came: dict[int, tuple[int, int]] = {start: (-1, -1)}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            if self._left.get(state, True):
                way: list[tuple[int, int]] = []
                while state != start:
                    step, before = came[state]
                    way.append((step, state))
                    state = before
                return way[::-1]
            for step, target in self.graph.successors(state):
                if target not in came:
                    came[target] = step, state
                    queue.append(target)
        return None

    def _take(self, step: int, target: int) -> None:
        label = self.model.steps[step].label
        try:
            self.twin.take(step)
        except Exception as error:
            raise Disagreement(f"{self.model.name}: {label} fails: {error!r}") from error
        self.report.steps += 1
        self.at = target
        self._compare(target, label)

    def _compare(self, number: int, label: str) -> None:
        expected, found = self.graph.states[number], self.twin.state()
        if found != expected:
            show, cells = self.model.show, self.model.cells
            told = [
                f"{cell.name} is {show(cell.type, has)}, not {show(cell.type, should)}"
                for cell, has, should in zip(cells, found, expected, strict=True)
                if has != should
            ]
            raise Disagreement(f"{self.model.name}: behind {label}: {'; '.join(told)}")

    def _visit(self) -> list[tuple[int, int]]:
        """Return the edges that are left here; in a new state, try whatever is disabled first."""
        left = self._left.get(self.at)
        if left is None:
            self.refuse_all()
            self.twin.allocator.check()
            left = self._left[self.at] = list(self.graph.successors(self.at))
            self.report.states += 1
        return left

    def refuse_all(self) -> None:
        """Try every step that is disabled here.

        Raises:
            Disagreement: one is not refused, or not by its first false guard, or changes something.
        """
        each = self.report.states % ONE_BY_ONE == 0
        for step, false in enumerate(self.graph.falses(self.graph.states[self.at])):
            if false:
                self.refuse(step, false)
                if each:
                    self._compare(self.at, f"refused {self.model.steps[step].label}")
        self._compare(self.at, "refusals")

    def refuse(self, step: int, false: int) -> None:
        """Try a step some of whose guards are false: ``false`` has a bit for each.

        Raises:
            Disagreement: it is not refused, or not by the first of them.
        """
        guard = self._guards[step][(false & -false).bit_length() - 1]
        label = self.model.steps[step].label
        try:
            refused = self.twin.refusal(step)
        except Exception as error:
            raise Disagreement(f"{self.model.name}: {label} fails: {error!r}") from error
        if refused is None:
            raise Disagreement(f"{self.model.name}: {label} is not refused by {guard!r}")
        if (refused.guard, refused.clause) != (guard, self.model.steps[step].action.clause):
            said = f"{refused.clause} {refused.guard!r}"
            raise Disagreement(f"{self.model.name}: {label} is refused by {said}, not by {guard!r}")
        self.report.refused[self._names[step], guard] += 1


def walk(tour: Tour, way: Iterable[int]) -> None:
    """Take some steps from where the tour is, comparing behind each."""
    for step in way:
        (target,) = (t for s, t in tour.graph.successors(tour.at) if s == step)
        tour._take(step, target)
