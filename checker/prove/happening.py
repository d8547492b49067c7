"""A counterexample as it happens: a state of a model, a step from it, and what that breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from fivestate.checker.engines import select
from fivestate.checker.exploration import Exploration, Limits
from fivestate.checker.story import Change
from fivestate.spec.language.ground import During, evaluate
from fivestate.spec.language.model import Codes, Model
from fivestate.spec.language.properties import Kind, Property
from fivestate.spec.language.run import OutOfRange, Run
from fivestate.spec.language.steps import Step

ANY_CASE = "in any case"
"""What a property without parameters fails for."""

SEARCHED = Limits(states=50_000, seconds=20)
"""How far a small model is searched for a state."""


@dataclass(frozen=True)
class Counterexample:
    """A step from a state that looks right to one that does not.

    Attributes:
        claim: the property that it breaks.
        model: a model that has the state.
        state: the state.
        step: the step, or nothing where the first state is wrong already.
        detail: the parameters for which the property fails, ``r=r1, g=WINDOW``.
        changes: what the step changes.
        ends: what the last step would do, where that is what is wrong; else empty.
    """

    claim: Property
    model: Model
    state: Codes
    step: Step | None
    detail: str
    changes: tuple[Change, ...]
    ends: str = ""

    def told(self) -> Iterator[str]:
        """Yield the lines that a reader is shown."""
        claim = self.claim
        yield f"{claim.clause} {claim.name} is not kept ({self.detail or ANY_CASE})"
        settings = ", ".join(_settings(self.model))
        yield f"  in {self.model.name}: {settings}"
        cells = zip(self.model.cells, self.state, self.model.first, strict=True)
        seen = [f"{c.name}={self.model.show(c.type, v)}" for c, v, first in cells if v != first]
        yield f"  in the state {', '.join(seen) or 'in which it starts'}"
        if self.step is not None:
            shown = "; ".join(f"{c.cell} {c.before} -> {c.after}" for c in self.changes)
            yield f"  the step {self.step.action.clause} {self.step.label}  {shown or self.ends}"
        yield f"  {claim.clause} says: {claim.sentence[:1].lower()}{claim.sentence[1:]}"

    def reachable(self) -> str:
        """Say whether the model really gets into the state."""
        exploration = explored(self.model)
        where = f"model {self.model.name}"
        for number, state in enumerate(exploration.states):
            if tuple(state) == self.state:
                steps = len(exploration.path(number))
                return f"{where} gets into that state, after {steps} steps"
        count = f"{exploration.distinct:,} states"
        if exploration.stopped:
            return f"{where} does not get into that state in its first {count}"
        return f"{where} never gets into that state: it has {count}, and it is none of them"


def explored(model: Model) -> Exploration:
    """Search a small model as far as is worth the wait."""
    return select("auto", model)(model, SEARCHED, Event(), edges=False)


def walked(model: Model, claim: Property, state: Codes, step: Step) -> Counterexample | None:
    """Take a step by the readable semantics, and return it if a property is not kept."""
    try:
        after = Run(model, state).after(step)
    except OutOfRange as error:
        return Counterexample(claim, model, state, step, "", (), str(error))
    detail = failing(model, claim, state, after, step)
    if not detail:
        return None
    changes = tuple(
        Change(cell.name, model.show(cell.type, was), model.show(cell.type, now))
        for cell, was, now in zip(model.cells, state, after, strict=True)
        if was != now
    )
    return Counterexample(claim, model, state, step, detail, changes)


def failing(
    model: Model,
    claim: Property,
    before: Codes,
    after: Codes,
    step: Step | None = None,
) -> str:
    """Return the parameters for which a property is false, or nothing if it is true."""
    during = During() if step is None else step.during
    state = before if claim.kind is Kind.STEP else after
    for case in model.cases(claim, during):
        if not evaluate(case.condition, state, after):
            return case.binding or ANY_CASE
    return ""


def _settings(model: Model) -> Iterator[str]:
    """Yield the settings that are worth a reader's while: sizes, members, what is switched on."""
    for name, value in model.settings.items():
        if isinstance(value, bool):
            if value:
                yield name
        elif isinstance(value, int):
            yield f"{name}={value}"
        elif isinstance(value, tuple):
            yield f"{name}={','.join(member.name for member in value)}"
