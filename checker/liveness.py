"""Liveness: whether whoever is in a state gets out of it, if what is promised to happen does.

A run that stays for ever stays, from some point on, in one strongly connected part of the graph.
It is a fair run if nothing that is weakly fair stays possible there without being taken, and
nothing strongly fair is possible there at all without being taken. What happens finitely often
has happened before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from fivestate.checker.graph import sources
from fivestate.checker.truth import Columns, truth
from fivestate.spec.language.properties import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fivestate.checker.exploration import Exploration, Integers
    from fivestate.spec.language.machine import Fairness
    from fivestate.spec.language.model import Model
    from fivestate.spec.language.properties import Property

    Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Trap:
    """Where a fair run stays for ever: the states it comes back to, and for whom it is a trap."""

    states: Integers
    detail: str


class FairGraph:
    """A state graph without what happens finitely often, and with what is promised.

    Args:
        exploration: a complete search with its edges.
        fairness: the promises; the machine's own unless others are to be tried.
    """

    def __init__(self, exploration: Exploration, fairness: Fairness | None = None) -> None:
        edges = exploration.edges
        if edges is None or exploration.stopped:
            raise ValueError("liveness is judged on a whole graph with its edges")
        model = exploration.model
        promised = fairness or model.machine.fairness
        names = {
            kind: {source.name for source in chosen}
            for kind, chosen in (
                ("weak", promised.weak),
                ("strong", promised.strong),
                ("finite", promised.finite),
            )
        }
        self.exploration = exploration
        self.states = exploration.distinct
        self.before, self.after = sources(edges), edges.targets
        self.finite = np.isin(edges.labels, _numbers(model, names["finite"]))
        by_step = np.argsort(edges.labels, kind="stable")
        bounds = np.searchsorted(edges.labels[by_step], np.arange(len(model.steps) + 1))
        self.edges_of = [by_step[bounds[n] : bounds[n + 1]] for n in range(len(model.steps))]
        self.weak = _numbers(model, names["weak"] - names["strong"])
        self.strong = _numbers(model, names["strong"])

    def trap(self, claim: Property) -> Trap | None:
        """Return where a fair run can stay that ``claim`` says it must leave, or nothing."""
        columns = Columns(self.exploration.states)
        for case in self.exploration.model.cases(claim):
            states = self.fair_part(truth(case.condition, columns))
            if states is not None:
                return Trap(states, case.binding)
        return None

    def fair_part(self, inside: Mask) -> Integers | None:
        """Return the nearest part of ``inside`` in which a fair run can stay, or nothing."""
        while inside.any():
            part, number = self._parts(inside)
            sizes = np.bincount(part[inside], minlength=number)
            possible = sizes > 0
            for step in self.weak:
                enabled, taken = self._in_parts(step, part, inside, number)
                possible &= (enabled < sizes) | taken
            rest = inside & possible[part]
            unfair = np.zeros(number, dtype=np.bool_)
            for step in self.strong:
                enabled, taken = self._in_parts(step, part, inside, number)
                missed = (enabled > 0) & ~taken
                unfair |= missed
                at = self.before[self.edges_of[step]]
                rest[at[missed[part[at]]]] = False
            fair = possible & ~unfair
            if fair.any():
                first = int(np.flatnonzero(inside & fair[part])[0])
                chosen: Integers = np.flatnonzero(inside & (part == part[first]))
                return chosen
            inside = rest
        return None

    def _parts(self, inside: Mask) -> tuple[Integers, int]:
        """Return the strongly connected part of each state; outside, each is a part alone."""
        keep = inside[self.before] & inside[self.after] & ~self.finite
        ones = np.ones(int(keep.sum()), dtype=np.int8)
        pairs = (self.before[keep], self.after[keep])
        graph = csr_array((ones, pairs), shape=(self.states, self.states))
        number, part = connected_components(graph, directed=True, connection="strong")
        return part, int(number)

    def _in_parts(
        self,
        step: int,
        part: Integers,
        inside: Mask,
        number: int,
    ) -> tuple[Integers, Mask]:
        """Return in how many states of each part a step is possible, and if it stays inside."""
        edges = self.edges_of[step]
        before, after = self.before[edges], self.after[edges]
        here = inside[before]
        before, after = before[here], after[here]
        enabled = np.bincount(part[before], minlength=number)
        taken = np.zeros(number, dtype=np.bool_)
        stays = inside[after] & (part[before] == part[after])
        taken[part[before[stays]]] = True
        return enabled, taken


def traps(
    exploration: Exploration,
    fairness: Fairness | None = None,
) -> dict[str, Trap | None]:
    """Return, for each claim that a state is left, the trap that refutes it, if there is one."""
    graph = FairGraph(exploration, fairness)
    claims = exploration.model.claims
    return {claim.name: graph.trap(claim) for claim in claims if claim.kind is Kind.ESCAPE}


def _numbers(model: Model, names: Iterable[str]) -> list[int]:
    wanted = set(names)
    return [n for n, step in enumerate(model.steps) if step.action.name in wanted]
