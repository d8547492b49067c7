"""Faults to seed: a model like another whose machine does something wrong."""

from collections.abc import Iterable
from dataclasses import replace

from fivestate.spec.language import Model
from fivestate.spec.language.tracing import Action, ActionSource, Guard
from fivestate.spec.language.trees import FALSE


def faulty(model: Model, *actions: ActionSource) -> Model:
    """Return the model with some actions replaced by others of the same names."""
    instead = {source.name: source for source in actions}
    known = {source.name for source in model.machine.next}
    assert set(instead) <= known, f"{set(instead) - known} would not replace anything"
    return _with(model, (instead.get(source.name, source) for source in model.machine.next))


def without_guard(model: Model, action: str, guard: str) -> Model:
    """Return the model with an action that is no longer refused by one of its guards."""
    (traced,) = (a for a in model.machine.actions if a.name == action)
    kept = tuple(g for g in traced.guards if g.name != guard)
    assert len(kept) == len(traced.guards) - 1, f"{action} has no guard {guard!r}"
    weak = replace(traced, guards=kept)
    return _with(model, (weak if a.name == action else a for a in model.machine.actions))


def without_action(model: Model, action: str) -> Model:
    """Return the model with an action that is never possible."""
    never = Guard("never", FALSE)
    return _with(
        model,
        (
            replace(a, guards=(*a.guards, never)) if a.name == action else a
            for a in model.machine.actions
        ),
    )


def _with(model: Model, actions: Iterable[Action | ActionSource]) -> Model:
    old = model.machine
    machine = replace(old, name=f"{old.name}'", next=tuple(actions))
    refines = model.refines
    if refines is not None:
        refines = replace(refines, machine=machine)
    return replace(model, name=f"{model.name}'", machine=machine, refines=refines)
