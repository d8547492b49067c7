"""What the native code watches for, and how its notes become findings."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from fivestate.checker.exploration import RANGE, Finding
from fivestate.spec.language.ground import During, evaluate
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.trees import TRUE, Cell, Node, Took, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from fivestate.spec.language.model import Case, Codes, Model
    from fivestate.spec.language.steps import Step

WATCHED = (Kind.INVARIANT, Kind.STEP, Kind.WITNESS)
RANGE_NUMBER = 0
NONE = -1
"""In a note: the property is not decided, or no step decides it."""


class Claims:
    """The properties of a model that are judged during the search, each with its number.

    ``RANGE`` has number 0. A *note* is what native code writes down of a property: the number of
    the first state that decides it, and of the step; who decides it is worked out afterwards.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.claims = [claim for claim in model.claims if claim.kind in WATCHED]
        self.names = [RANGE, *(claim.name for claim in self.claims)]
        self._told = {
            number
            for number, claim in enumerate(self.claims, 1)
            if any(isinstance(node, Took) for node in walk(claim.condition))
        }
        self._conditions = cache(self._ground)

    def of_states(self, kind: Kind) -> list[tuple[int, tuple[Case, ...]]]:
        """Return the invariants, or the witnesses: the number and the cases of each."""
        return [
            (number, self.model.cases(claim))
            for number, claim in enumerate(self.claims, 1)
            if claim.kind is kind
        ]

    def of_step(self, step: Step) -> Iterator[tuple[int, list[Node]]]:
        """Yield what this step could break: of each step property its number and conditions."""
        written = {position for position, _ in step.updates}
        for number, claim in enumerate(self.claims, 1):
            if claim.kind is not Kind.STEP:
                continue
            action = step.action.called if number in self._told else ""
            conditions = [
                quiet if late.isdisjoint(written) else condition
                for condition, quiet, late in self._conditions(number, action)
            ]
            could = [condition for condition in conditions if condition != TRUE]
            if could:
                yield number, could

    def blank(self) -> NDArray[np.int64]:
        """Return notes on nothing: a row of state and step for each property."""
        return np.full((len(self.names), 2), NONE, np.int64)

    def findings(
        self,
        notes: Sequence[NDArray[np.int64]],
        states: Sequence[Codes],
    ) -> dict[str, Finding]:
        """Return what was found: of each property the first, whoever noted it."""
        found: dict[str, Finding] = {}
        for number, name in enumerate(self.names):
            rows = [(int(own[number, 0]), int(own[number, 1])) for own in notes]
            decided = [row for row in rows if row[0] != NONE]
            if decided:
                state, step = min(decided)
                taken = None if step == NONE else step
                detail = self._detail(number, states[state], taken) if number else ""
                found[name] = Finding(state, taken, detail)
        return found

    def _ground(self, number: int, action: str) -> list[tuple[Node, Node, frozenset[int]]]:
        """Return a step property's conditions, for all steps of an action at once.

        With each goes what it comes to where the step writes none of the cells that it reads
        behind the step, and which cells those are. Most come to nothing: a step is held against
        the few that it can touch.
        """
        claim = self.claims[number - 1]
        any_step, no_cell = During(action), During(action, frozenset())
        pairs = zip(
            self.model.cases(claim, any_step), self.model.cases(claim, no_cell), strict=True
        )
        return [
            (case.condition, quiet.condition, frozenset(_late(case.condition)))
            for case, quiet in pairs
        ]

    def _detail(self, number: int, state: Codes, taken: int | None) -> str:
        """Return the parameters of the first case that is decided there."""
        claim = self.claims[number - 1]
        after: Codes = ()
        if taken is None:
            cases = self.model.cases(claim)
        else:
            step = self.model.steps[taken]
            cases = self.model.cases(claim, step.during)
            after = _behind(step, state)
        sought = claim.kind is Kind.WITNESS
        truths = ((case, bool(evaluate(case.condition, state, after))) for case in cases)
        return next(case.binding for case, true in truths if true is sought)


def _late(condition: Node) -> Iterator[int]:
    return (node.position for node in walk(condition) if isinstance(node, Cell) and node.after)


def _behind(step: Step, state: Codes) -> Codes:
    behind = list(state)
    for position, node in step.updates:
        behind[position] = evaluate(node, state)
    return tuple(behind)
