"""Runs: a model walked by hand, one named action at a time. The readable semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fivestate.spec.language.errors import ModelError, Refused, did_you_mean
from fivestate.spec.language.ground import During, evaluate
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.trees import Cell, Node, walk

if TYPE_CHECKING:
    from fivestate.spec.language.model import Codes, Model
    from fivestate.spec.language.steps import Step


class OutOfRange(Exception):  # noqa: N818 -- a finding about the machine, as Refused is
    """An action would put a value outside its declared range; the state is unchanged."""


class Run:
    """A model's state and the actions that change it.

    >>> run = Run(model)
    >>> run.take("lease", "r1")
    """

    def __init__(self, model: Model, state: Codes | None = None) -> None:
        self.model = model
        self.state = model.initial if state is None else state
        self._before = self.state
        self._took = ""
        self._steps = {(step.action.name, step.label): step for step in model.steps}

    def take(self, action: str, *arguments: str) -> None:
        """Take one step.

        Raises:
            ModelError: the model has no such action or no such arguments.
            Refused: a guard is false.
            OutOfRange: the action would put a value outside its range.
        """
        step = self.step(action, *arguments)
        refusal = self.refusal(step)
        if refusal is not None:
            raise refusal
        after = self.after(step)
        self._before, self.state, self._took = self.state, after, action

    def step(self, action: str, *arguments: str) -> Step:
        """Return the step that is written ``action(arguments)``.

        Raises:
            ModelError: the model has no such action or no such arguments.
        """
        label = f"{action}({', '.join(arguments)})"
        step = self._steps.get((action, label))
        if step is None:
            message = f"model {self.model.name} has no {label}; "
            near = [known for name, known in self._steps if name == action]
            if not near:
                raise ModelError(message + did_you_mean(action, {name for name, _ in self._steps}))
            raise ModelError(message + did_you_mean(label, near))
        return step

    def refusal(self, step: Step) -> Refused | None:
        """Return why ``step`` is refused now: its first false guard, or nothing."""
        for guard, condition in step.guards:
            if not evaluate(condition, self.state):
                clause, values = step.action.clause, self._values(condition)
                return Refused(clause, step.label, guard, values)
        return None

    def enabled(self) -> list[str]:
        """Return the steps that can be taken now, as a story writes them."""
        return [step.label for step in self.model.steps if self.refusal(step) is None]

    def after(self, step: Step) -> Codes:
        """Return the state behind a step whose guards are true.

        Raises:
            OutOfRange: a value would leave its declared range.
        """
        state = list(self.state)
        for position, node in step.updates:
            value = evaluate(node, self.state)
            cell = self.model.cells[position]
            if not cell.low <= value <= cell.high:
                message = f"{step.label}: {cell.name} = {value} leaves {cell.low}..{cell.high}"
                raise OutOfRange(message)
            state[position] = value
        return tuple(state)

    def holds(self, name: str) -> bool:
        """Say whether an invariant holds now, a step property of the last step, a witness here.

        Before the first step every step property holds.

        Raises:
            ModelError: the model has no such property, or it is judged on the whole graph.
        """
        claims = {claim.name: claim for claim in self.model.claims}
        claim = claims.get(name)
        if claim is None or claim.kind is Kind.ESCAPE:
            message = f"model {self.model.name} cannot judge {name!r} on one run; "
            raise ModelError(message + did_you_mean(name, claims))
        if claim.kind is Kind.STEP and not self._took:
            return True
        cases = self.model.cases(claim, During(self._took))
        truths = (
            evaluate(case.condition, self._before_of(claim.kind), self.state) for case in cases
        )
        return any(truths) if claim.kind is Kind.WITNESS else all(truths)

    def value(self, cell: str) -> str:
        """Return the value of a cell by its printed name, such as ``device[p0, WINDOW]``."""
        shown = self.show()
        if cell not in shown:
            message = f"model {self.model.name} has no cell {cell!r}; "
            raise ModelError(message + did_you_mean(cell, shown))
        return shown[cell]

    def show(self) -> dict[str, str]:
        """Return every cell with its value, as printed."""
        pairs = zip(self.model.cells, self.state, strict=True)
        return {cell.name: self.model.show(cell.type, code) for cell, code in pairs}

    def _before_of(self, kind: Kind) -> Codes:
        return self._before if kind is Kind.STEP else self.state

    def _values(self, condition: Node) -> dict[str, str]:
        found = dict.fromkeys(n.position for n in walk(condition) if isinstance(n, Cell))
        cells = self.model.cells
        return {
            cells[at].name: self.model.show(cells[at].type, self.state[at]) for at in sorted(found)
        }
