"""Stories: a shortest run to the place that decides a property, told step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fivestate.spec.language.run import OutOfRange, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fivestate.checker.exploration import Exploration, Finding
    from fivestate.spec.language.model import Codes, Model
    from fivestate.spec.language.steps import Step


@dataclass(frozen=True)
class Change:
    """A cell that a step changes: its printed name and its two values."""

    cell: str
    before: str
    after: str


@dataclass(frozen=True)
class Line:
    """One step of a story."""

    clause: str
    step: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Story:
    """A run from a model's start that decides a property.

    Attributes:
        lines: the steps, in order.
        detail: the parameters for which the property is decided, ``r=r1, g=WINDOW``.
        ends: what the last step would do, where that is what is wrong; else empty.
        replay: Python that walks the same run and shows the same end.
        round: steps that lead from the end back to it, for ever.
    """

    lines: tuple[Line, ...]
    detail: str
    ends: str
    replay: str
    round: tuple[Line, ...] = ()

    @property
    def length(self) -> int:
        """How many steps it takes."""
        return len(self.lines)


def tell(
    exploration: Exploration,
    finding: Finding,
    check: str,
    around: Sequence[int] = (),
) -> Story:
    """Return the shortest story that leads to ``finding``.

    Args:
        exploration: the search that found it.
        finding: where the property is decided.
        check: the Python expression over ``run`` that a replay ends with, if it can be judged
            on one run, else empty.
        around: steps that lead from there back to it, where that is what is wrong.
    """
    model = exploration.model
    way = [number for number, _ in exploration.path(finding.state)]
    if finding.step is not None:
        way.append(finding.step)
    run = Run(model)
    ends = ""
    lines: list[Line] = []
    for number in way:
        try:
            lines.append(_taken(run, model.steps[number]))
        except OutOfRange as error:
            ends = str(error)
            step = model.steps[number]
            lines.append(Line(step.action.clause, step.label, ()))
    rounds = tuple(_taken(run, model.steps[number]) for number in around)
    steps = [model.steps[number] for number in (*way, *around)]
    replay = _replay(model, steps, check, ends)
    return Story(tuple(lines), finding.detail, ends, replay, rounds)


def _taken(run: Run, step: Step) -> Line:
    """Take a step and return the line that tells it."""
    before = run.state
    run.take(step.action.name, *_arguments(step.label))
    return Line(step.action.clause, step.label, _changes(run.model, before, run.state))


def _changes(model: Model, before: Codes, after: Codes) -> tuple[Change, ...]:
    return tuple(
        Change(cell.name, model.show(cell.type, was), model.show(cell.type, now))
        for cell, was, now in zip(model.cells, before, after, strict=True)
        if was != now
    )


def _arguments(label: str) -> list[str]:
    inside = label[label.index("(") + 1 : -1]
    return inside.split(", ") if inside else []


def _replay(model: Model, steps: list[Step], check: str, ends: str) -> str:
    """Return the run as Python: it raises, or its last line is False, as the story says."""
    changed = f".set({', '.join(map(repr, model.changes))})" if model.changes else ""
    lines = [
        "from fivestate.spec.language import Run",
        "from fivestate.spec.models import MODELS",
        f"run = Run(MODELS[{model.name!r}]{changed})",
    ]
    for step in steps:
        arguments = "".join(f", {argument!r}" for argument in _arguments(step.label))
        lines.append(f"run.take({step.action.name!r}{arguments})")
    if ends:
        lines[-1] += "  # raises OutOfRange"
    elif check:
        lines.append(f"print({check})")
    return "\n".join(lines)
