"""Counterexamples to induction: a state that looks right, and a step that breaks a property.

z3 finds one in a universe of few elements; it is then decoded into a state of a model and walked
with the readable semantics, so that whatever is shown really happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fivestate.checker.prove.few import Search
from fivestate.checker.prove.happening import Counterexample, explored, walked
from fivestate.checker.prove.safety import Safety
from fivestate.checker.prove.solve import Answer, Asking
from fivestate.checker.prove.universe import Sized
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Property
from fivestate.spec.language.run import Run
from fivestate.spec.language.settings import sort_setting
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.tracing import Action

SIZES = ((1, 1), (1, 2), (2, 2), (2, 3))
"""The numbers of atoms of the first and the second sort that are tried where no model fits."""


def find(
    safety: Safety,
    claim: Property,
    action: Action | None,
    asking: Asking,
    models: Iterable[Model] = (),
) -> Counterexample | None:
    """Return a counterexample, in one of ``models`` if it fits one, else of whatever size.

    Args:
        safety: what is to be proved.
        claim: the property that is not kept.
        action: the action that does not keep it; nothing for the first state.
        asking: how z3 is asked.
        models: where to look first.
    """
    for model in models:
        if action is None or action.name in {a.name for a in model.actions}:
            sizes = {s: model.elements(s) for s in _atoms(safety)}
            universe = Sized({sort: len(codes) for sort, codes in sizes.items()})
            found = Search(safety, universe, asking).find(claim, action, model)
            if found is not None:
                return found
    sorts = _atoms(safety)
    for size in SIZES:
        universe = Sized(dict(zip(sorts, size, strict=False)))
        found = Search(safety, universe, asking).find(claim, action, None)
        if found is not None:
            return found
    return None


def met(claim: Property, action: Action, models: Iterable[Model]) -> Counterexample | None:
    """Return a counterexample that a model really meets: the first one on its way."""
    for model in models:
        steps = [step for step in model.steps if step.action.name == action.name]
        for reached in explored(model).states if steps else ():
            state = tuple(reached)
            run = Run(model, state)
            for step in steps:
                if run.refusal(step) is None:
                    found = walked(model, claim, state, step)
                    if found is not None:
                        return found
    return None


def possible(safety: Safety, asking: Asking) -> dict[str, Answer]:
    """Say of every action whether it can be taken in some state that looks right.

    If none were, every theorem about it would be vacuous.
    """
    search = Search(safety, Sized(dict.fromkeys(_atoms(safety), 2)), asking)
    return {action.name: search.possible(action) for action in safety.actions}


def small_models(safety: Safety, models: Mapping[str, Model]) -> list[Model]:
    """Return the models of a safety's machine that are in its scope, the smallest first."""
    fits = [
        replace(model, machine=safety.machine, refines=None, start=())
        for model in models.values()
        if model.machine.state is safety.machine.state and _in_scope(safety, model)
    ]
    return sorted(fits, key=lambda model: len(model.cells))


def _in_scope(safety: Safety, model: Model) -> bool:
    fixed = all(model.constant(name, ()) == value for name, value in safety.fixed.items())
    routes = safety.machine.routes
    chosen = () if routes is None else model.settings[sort_setting(routes)]
    return fixed and (not safety.members or chosen == safety.members)


def _atoms(safety: Safety) -> list[type[Sort]]:
    return [s for s in safety.machine.sorts if s.of is None and s.low is None]
