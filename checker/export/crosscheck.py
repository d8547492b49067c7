"""The cross-check: a model counted by Spin, for comparison with what our engines count."""

from __future__ import annotations

from fivestate.checker.counts import Counts
from fivestate.checker.export import promela, spin
from fivestate.spec.language.model import Model


def spin_counts(model: Model) -> Counts:
    """Return the counts of ``model`` as Spin finds them.

    Raises:
        SpinError: Spin is missing, stopped early, or found a value out of its range.
    """
    text = promela.export(model)
    found = spin.search(text, profile=True)
    firings = {action.name: 0 for action in model.actions}
    actions = {step.label: step.action.name for step in model.steps}
    steps = promela.steps_by_line(text)
    for line, times in found.taken.items():
        firings[actions[steps[line]]] += times
    return Counts(found.distinct, found.transitions, found.depth, firings)
