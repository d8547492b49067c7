"""How a named mutant is written: as an action of the machine, and what is wrong about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fivestate.checker.mutants.mutant import Kind, Mutant
from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language.machine import Machine
from fivestate.spec.language.terms import Term
from fivestate.spec.language.tracing import Action, Guard, parameters, tracing
from fivestate.spec.language.trees import TRUE

Body = Callable[..., None]
"""A few lines in the language of actions: the guards and the effects that are not as they were."""

YES = Term(TRUE)


def amended(
    name: str,
    body: Body,
    machine: Machine = ALLOCATOR,
    *,
    unwritten: str = "",
) -> Action:
    """Return an action with the guards and effects of ``body`` instead of its own.

    A guard replaces the one of its name, an effect the one on the same cell; others are added.
    The action's own effects on the variable ``unwritten`` go first.
    """
    original = _action(name, machine)
    with parameters(body, skip=1) as elements, tracing(name) as trace:
        body(machine.state(trace), *elements)
    guards = {guard.name: guard for guard in original.guards}
    guards |= {guard.name: guard for guard in trace.guards}
    effects = {
        (e.variable, e.indices, e.over): e for e in original.effects if e.variable != unwritten
    }
    effects |= {(e.variable, e.indices, e.over): e for e in trace.effects}
    return replace(original, guards=tuple(guards.values()), effects=tuple(effects.values()))


def without(name: str, guard: str, machine: Machine = ALLOCATOR) -> Action:
    """Return an action that one guard no longer refuses.

    Raises:
        ValueError: it has no such guard.
    """
    original = _action(name, machine)
    kept: tuple[Guard, ...] = tuple(g for g in original.guards if g.name != guard)
    if len(kept) == len(original.guards):
        raise ValueError(f"{name} has no guard {guard!r}")
    return replace(original, guards=kept)


def fault(
    name: str,
    sentence: str,
    source: str,
    *actions: Action,
    machine: Machine = ALLOCATOR,
) -> Mutant:
    """Return a named mutant."""
    faulty = {action.name: action for action in actions}
    return Mutant(name, Kind.NAMED, machine, faulty, sentence, source)


def _action(name: str, machine: Machine) -> Action:
    found = {action.name: action for action in machine.actions}.get(name)
    if found is None:
        raise ValueError(f"{machine.name} has no action {name!r}")
    return found
