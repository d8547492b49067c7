"""Where a mutant's graph departs from the graph of the machine, which is known."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fivestate.checker.graph import sources
from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.truth import Columns, column, truth
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Kind, Property
from fivestate.spec.language.steps import Step
from fivestate.spec.language.tracing import Action
from fivestate.spec.language.trees import FALSE, TRUE, Cell, May, Node, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fivestate.checker.exploration import Edges, Exploration, Integers


@dataclass
class Difference:
    """How a mutant's graph departs from the machine's, at the states the machine reaches.

    Where nothing departs at any of these, the mutant reaches no others: its graph is the same.

    Attributes:
        removed: the edges that the mutant lacks.
        added: whether it has an edge that the machine lacks, or one that leads elsewhere.
    """

    removed: list[Integers] = field(default_factory=list["Integers"])
    added: bool = False

    @property
    def same(self) -> bool:
        """Whether the graphs are the same."""
        return not self.removed and not self.added

    @property
    def smaller(self) -> bool:
        """Whether the mutant's graph is a part of the machine's."""
        return bool(self.removed) and not self.added


class Graph:
    """A model's whole graph, and its states by cell."""

    def __init__(self, exploration: Exploration) -> None:
        """Take a complete exploration.

        Raises:
            ValueError: it was stopped, or the edges were not kept.
        """
        if exploration.edges is None or exploration.stopped:
            raise ValueError("a mutant is held against a whole graph with its edges")
        self.exploration, self.model = exploration, exploration.model
        self.edges: Edges = exploration.edges
        self.columns = _Kept(exploration)
        self.sources = sources(self.edges)

    @cached_property
    def _by_step(self) -> list[Integers]:
        order = np.argsort(self.edges.labels, kind="stable").astype(np.int32)
        steps = np.arange(len(self.model.steps) + 1)
        bounds = np.searchsorted(self.edges.labels, steps, sorter=order)
        return [order[bounds[n] : bounds[n + 1]] for n in range(len(self.model.steps))]

    @cached_property
    def witnesses(self) -> dict[str, NDArray[np.bool_]]:
        """For each witness the states that show it."""
        return {
            claim.name: _shown(self.model, claim, self.columns)
            for claim in self.model.claims
            if claim.kind is Kind.WITNESS
        }

    def shown(self, mutant: Mutant, states: Integers) -> dict[str, NDArray[np.bool_]]:
        """Return for each witness which of these states show it to a mutant.

        What a witness asks of an action that is another in the mutant is asked of that one.
        """
        model = copy(self.model)  # with everything that has been worked out of it
        actions = ((action, mutant.actions.get(action.name, action)) for action in model.actions)
        model.__dict__["actions"] = tuple(now for _, now in actions if now is not None)
        model.__dict__.pop("grounder", None)
        shown = {name: shown[states] for name, shown in self.witnesses.items()}
        for claim in model.claims:
            asked = {node.action for node in walk(claim.condition) if isinstance(node, May)}
            if not asked.isdisjoint(mutant.actions):
                shown[claim.name] = _shown(model, claim, _Chosen(self.columns, states))
        return shown

    def difference(self, mutant: Mutant) -> Difference:
        """Return where ``mutant`` departs from the machine in this model.

        Raises:
            SpecError: what the mutant does is refused already where the model is written.
        """
        found = Difference()
        for name, changed in mutant.actions.items():
            old = [(n, s) for n, s in enumerate(self.model.steps) if s.action.name == name]
            new = {s.label: s for s in steps_of(self.model, changed)} if changed else {}
            if changed and not old and name in {a.name for a in self.model.machine.actions}:
                continue  # the model does not have the action
            for number, step in old:
                self._compare(found, number, step, new.pop(step.label, None))
            found.added |= any(self._enabled(step.guards).size > 0 for step in new.values())
        return found

    def _compare(self, found: Difference, number: int, old: Step, new: Step | None) -> None:
        edges = self._by_step[number]
        at = self.sources[edges]
        if new is None:
            if edges.size:
                found.removed.append(edges)
            return
        known = set(old.guards)
        stays = np.ones(at.size, dtype=np.bool_)
        for _, condition in new.guards:
            if condition not in {c for _, c in known}:
                stays &= truth(condition, _Chosen(self.columns, at))
        if not stays.all():
            found.removed.append(edges[~stays])
        if found.added:
            return
        if not known <= set(new.guards):
            found.added = self._enabled(new.guards).size > int(stays.sum())
        if not found.added and self._differs(old, new, at[stays]):
            found.added = True

    def _enabled(self, guards: Iterable[tuple[str, Node]]) -> Integers:
        """Return the states in which all guards hold."""
        conditions = [condition for _, condition in guards if condition != TRUE]
        states: Integers = np.arange(self.exploration.distinct, dtype=np.int32)
        if FALSE in conditions:
            return states[:0]
        for condition in conditions:
            states = states[truth(condition, _Chosen(self.columns, states))]
        return states

    def _differs(self, old: Step, new: Step, at: Integers) -> bool:
        """Say whether the two steps lead from some of these states to different ones."""
        was, now = dict(old.updates), dict(new.updates)
        chosen = _Chosen(self.columns, at)
        for position in was.keys() | now.keys():
            kept = Cell(position, self.model.cells[position].type)
            before, after = was.get(position, kept), now.get(position, kept)
            if before != after and (column(before, chosen) != column(after, chosen)).any():
                return True
        return False


def _shown(model: Model, claim: Property, columns: Columns) -> NDArray[np.bool_]:
    shown = np.zeros(columns.states, dtype=np.bool_)
    for case in model.cases(claim):
        shown |= truth(case.condition, columns)
    return shown


def steps_of(model: Model, action: Action) -> list[Step]:
    """Return the steps that an action has in a model, if its constants allow it there.

    Raises:
        SpecError: one of them writes what it must not.
    """
    if model.grounder.ground(action.given, {}) == FALSE:
        return []
    steps = list(model._steps(action))  # noqa: SLF001 -- one action, of no machine yet
    for step in steps:
        _ = step.updates  # so that what is refused is refused here
    return steps


class _Kept(Columns):
    """Columns that are unpacked once, and kept small."""

    def __init__(self, exploration: Exploration) -> None:
        super().__init__(exploration.states)
        self._columns: dict[int, NDArray[np.int8]] = {}

    def __getitem__(self, position: int) -> NDArray[np.int64]:
        return self._small(position).astype(np.int64)

    def of(self, chosen: Integers, position: int) -> NDArray[np.int64]:
        """Return the values of one cell in some of the states."""
        return self._small(position)[chosen].astype(np.int64)

    def _small(self, position: int) -> NDArray[np.int8]:
        if position not in self._columns:
            self._columns[position] = super().__getitem__(position).astype(np.int8)
        return self._columns[position]


class _Chosen(Columns):
    """The columns of some of the states."""

    def __init__(self, columns: _Kept, chosen: Integers) -> None:
        super().__init__(())
        self.states = len(chosen)
        self._of, self._chosen = columns, chosen

    def __getitem__(self, position: int) -> NDArray[np.int64]:
        return self._of.of(self._chosen, position)
