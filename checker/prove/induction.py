"""Induction: what holds of the first state, and is kept by every action, holds of every state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.counting import laws
from fivestate.checker.prove.encode import Translator
from fivestate.checker.prove.instances import AnySize, Grounding
from fivestate.checker.prove.safety import Safety, choices
from fivestate.checker.prove.signature import Expression
from fivestate.checker.prove.solve import Answer, Asking
from fivestate.checker.prove.states import Names, States
from fivestate.checker.verdicts import Verdict
from fivestate.spec.language.properties import Property
from fivestate.spec.language.tracing import Action

START = "the first state"


@dataclass(frozen=True)
class Outcome:
    """Whether one property, by its name, holds in the first state, or is kept by one action."""

    claim: str
    place: str
    verdict: Verdict
    seconds: float


Solver = Any


class Induction:
    """The obligations of one machine.

    Args:
        safety: what is to be proved.
        asking: how z3 is asked.
        without: names of invariants that may not be relied on.
    """

    def __init__(
        self, safety: Safety, asking: Asking, without: frozenset[str] = frozenset()
    ) -> None:
        self.safety, self._asking, self._without = safety, asking, without

    def start(self) -> list[Outcome]:
        """Ask of every invariant whether it holds in the first state."""
        universe = AnySize(self.safety.members)
        states = States(self.safety.machine, universe)
        first = Translator(universe, states.first)
        goals = {c: list(_parts(states, c, first)) for c in self.safety.invariants}
        grounding = Grounding(universe)
        for condition in self.safety.granted(states):
            grounding.tell(condition)
        return list(self._ask(START, grounding, goals, ()))

    def step(self, action: Action) -> list[Outcome]:
        """Ask of every invariant whether an action keeps it, and of every step property."""
        universe = self._any.universe.copy()
        states = States(self.safety.machine, universe)
        names = states.fresh(action.parameters)
        goals = self._goals(states, action, names)
        grounding = self._any.copy(universe)
        grounding.facts = list(self._any.facts)
        for condition in self.enabled(states, action, names):
            grounding.tell(condition)
        atoms = tuple(names[b.name] for b in action.parameters if b.sort.of is None)
        return list(self._ask(action.name, grounding, goals, atoms))

    def enabled(self, states: States, action: Action, names: Names) -> list[Expression]:
        """Return that a model has an action, and that its guards are true."""
        return [
            *self.safety.has(action),
            states.static.value(action.given, {}),
            states.inside(action.parameters, names),
            *(states.here.value(guard.condition, names) for guard in action.guards),
        ]

    @cached_property
    def _any(self) -> Grounding:
        """What is known of any state that looks right."""
        universe = AnySize(self.safety.members)
        states = States(self.safety.machine, universe)
        grounding = Grounding(universe)
        for condition in self.safety.granted(states):
            grounding.tell(condition)
        for claim in (*self.safety.invariants, *self.safety.steps):
            some = states.fresh(claim.parameters, "some ")
            for bound in claim.parameters:
                if bound.sort.of is None:  # most goals speak of them, so they are put in once
                    grounding.add(some[bound.name])
        for claim in self.safety.invariants:
            if claim.name not in self._without:
                free = states.fresh(claim.parameters, "any ")
                atoms = [free[bound.name] for bound in claim.parameters if bound.sort.of is None]
                holds = z3.And(list(_parts(states, claim, states.here, "any ")))
                grounding.always(holds, tuple(atoms))
        return grounding

    @cached_property
    def _before(self) -> dict[Property, list[Expression]]:
        """What every invariant says of some elements in the state before."""
        states = States(self.safety.machine, self._any.universe)
        return {c: list(_parts(states, c, states.here)) for c in self.safety.invariants}

    def _goals(
        self,
        states: States,
        action: Action,
        names: Names,
    ) -> dict[Property, list[Expression]]:
        then, during = states.then(action, names), states.during(action, names)
        goals: dict[Property, list[Expression]] = {}
        for claim, before in self._before.items():
            after = _parts(states, claim, then)
            changed = (new for old, new in zip(before, after, strict=True) if not new.eq(old))
            goals[claim] = list(changed)
        for claim in self.safety.steps:
            goals[claim] = list(_parts(states, claim, during))
        return goals

    def _ask(
        self,
        place: str,
        grounding: Grounding,
        goals: dict[Property, list[Expression]],
        changed: tuple[Expression, ...],
    ) -> Iterator[Outcome]:
        for law in laws(grounding, changed):
            grounding.tell(law)
        solver = self._asking.solver()
        solver.add(grounding.facts)
        for claim, parts in goals.items():
            started = time.perf_counter()
            answer = self._refute(solver, grounding, parts) if parts else Answer.NO
            verdict = Verdict.PROVED if answer is Answer.NO else Verdict.UNDETERMINED
            yield Outcome(claim.name, place, verdict, time.perf_counter() - started)

    def _refute(self, solver: Solver, grounding: Grounding, parts: list[Expression]) -> Answer:
        """Look for elements of which the parts are not all true."""
        doubt = z3.simplify(z3.Not(z3.And(parts)))
        if z3.is_false(doubt):
            return Answer.NO
        problem = grounding.copy(grounding.universe)
        problem.tell(doubt)
        solver.push()
        solver.add(problem.facts)
        answer = self._asking.ask(solver)
        solver.pop()
        return answer


def _parts(
    states: States,
    claim: Property,
    translator: Translator,
    prefix: str = "some ",
) -> Iterator[Expression]:
    """Yield a property for each of its members, of elements of any name."""
    given = states.static.value(claim.given, {})
    for names in choices(states, claim, prefix):
        there = states.inside(claim.parameters, names)
        condition = translator.value(claim.condition, names)
        yield z3.Implies(z3.And(given, there), condition)
