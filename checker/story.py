"""Stories: a shortest run to the place that decides a property, told step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fivestate.spec.language.run import OutOfRange, Run

if TYPE_CHECKING:
    from fivestate.checker.exploration import Exploration, Finding
    from fivestate.spec.language.model import Codes, Model, Step


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
    """

    lines: tuple[Line, ...]
    detail: str
    ends: str
    replay: str

    @property
    def length(self) -> int:
        """How many steps it takes."""
        return len(self.lines)


def tell(exploration: Exploration, finding: Finding, check: str) -> Story:
    """Return the shortest story that leads to ``finding``.

    Args:
        exploration: the search that found it.
        finding: where the property is decided.
        check: the Python expression over ``run`` that a replay ends with, if it can be judged
            on one run, else empty.
    """
    model = exploration.model
    run = Run(model)
    lines: list[Line] = []
    way = [number for number, _ in exploration.path(finding.state)]
    if finding.step is not None:
        way.append(finding.step)
    ends = ""
    for number in way:
        step = model.steps[number]
        before = run.state
        try:
            run.take(step.action.name, *_arguments(step.label))
        except OutOfRange as error:
            ends = str(error)
        lines.append(Line(step.action.clause, step.label, _changes(model, before, run.state)))
    steps = [model.steps[number] for number in way]
    return Story(tuple(lines), finding.detail, ends, _replay(model, steps, check, ends))


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
