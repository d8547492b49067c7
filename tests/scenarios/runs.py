"""Runs of the machines, told as stories: each step is written as a story prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from fivestate.spec.language import Kind, Model, Refused, Run, Term
from fivestate.spec.language.terms import lift
from fivestate.spec.language.tracing import Action, ActionSource, Guard
from fivestate.spec.language.trees import Boolean

Harm = dict[str, str]
"""What is false at the end of a run: each property's name, and its clause."""

STEP = re.compile(r"(\w+)\((.*)\)")


def take(run: Run, step: str) -> None:
    """Take a step that is written ``evict(p0, WINDOW)``."""
    written = STEP.fullmatch(step)
    assert written is not None, step
    run.take(written[1], *written[2].split(", ") if written[2] else ())


def harm(run: Run) -> Harm:
    """Return the invariants, and the properties of the last step, that are false now."""
    judged = (c for c in run.model.claims if c.kind in {Kind.INVARIANT, Kind.STEP})
    return {claim.name: claim.clause for claim in judged if not run.holds(claim.name)}


_known_right: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = set()


def right(model: Model, *steps: str) -> Run:
    """Take steps in which every rule holds throughout; what was judged once is not again."""
    run = Run(model)
    for number, step in enumerate(steps, 1):
        take(run, step)
        so_far = (model.name, model.changes, steps[:number])
        if so_far not in _known_right:
            assert not harm(run), step
            _known_right.add(so_far)
    return run


def refusal(model: Model, *steps: str) -> str:
    """Return the guard that refuses the last step; the others are taken, and nothing changes."""
    run = right(model, *steps[:-1])
    before = run.state
    try:
        take(run, steps[-1])
    except Refused as refused:
        assert run.state == before
        return refused.guard
    return ""


def wrong(model: Model, *steps: str) -> Harm:
    """Return what is false behind the last step, whatever was false on the way."""
    run = Run(model)
    for step in steps:
        take(run, step)
    return harm(run)


def made(prefix: str, *groups: str) -> list[str]:
    """Make some cells, one after the other."""
    return [f"{verb}({prefix}, {group})" for group in groups for verb in ("make", "made")]


def computed(request: str, prefix: str, *groups: str) -> list[str]:
    """Compute a prefix from nothing, publish it and run on it."""
    return [
        f"arrive({request}, {prefix})",
        f"admit({request}, {prefix})",
        *made(prefix, *groups),
        f"publish({prefix})",
        f"resume({request}, {prefix})",
        f"run({request})",
    ]


def hit(request: str, prefix: str) -> list[str]:
    """Be told HIT, and take it."""
    return [f"arrive({request}, {prefix})", f"lease({request})"]


def resumed(request: str, prefix: str, *groups: str) -> list[str]:
    """Make the cells that a recovery still lacks, and run."""
    return [*made(prefix, *groups), f"resume({request}, {prefix})", f"run({request})"]


def without_effect(model: Model, action: str, variable: str) -> Model:
    """Return the model with an action that leaves a variable as it was."""
    traced = action_of(model, action)
    kept = tuple(effect for effect in traced.effects if effect.variable != variable)
    assert len(kept) < len(traced.effects), f"{action} does not change {variable}"
    return instead(model, replace(traced, effects=kept))


def stricter(model: Model, action: str, guard: str, condition: Term) -> Model:
    """Return the model with an action one of whose guards asks something else."""
    traced = action_of(model, action)
    assert guard in {g.name for g in traced.guards}, f"{action} has no guard {guard!r}"
    asked = Guard(guard, lift(condition, Boolean()))
    guards = tuple(asked if g.name == guard else g for g in traced.guards)
    return instead(model, replace(traced, guards=guards))


def instead(model: Model, action: Action | ActionSource) -> Model:
    """Return the model with an action of the same name in another's place."""
    actions: Iterable[Action | ActionSource] = model.machine.actions
    faulty = tuple(action if known.name == action.name else known for known in actions)
    assert action in faulty, f"there is no {action.name}"
    machine = replace(model.machine, name=f"{model.machine.name}'", next=faulty)
    refines = model.refines and replace(model.refines, machine=machine)
    return replace(model, name=f"{model.name}'", machine=machine, refines=refines)


def action_of(model: Model, name: str) -> Action:
    """Return a model's traced action."""
    (traced,) = (action for action in model.machine.actions if action.name == name)
    return traced
