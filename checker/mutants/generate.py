"""The mutants that are made from a machine as it stands, none of them by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from fivestate.checker.mutants.mutant import Kind, Mutant
from fivestate.checker.mutants.tighten import tightened
from fivestate.spec.language.machine import Machine
from fivestate.spec.language.tracing import Action, Effect, Guard
from fivestate.spec.language.trees import Apply, Node, Read


def generated(machine: Machine) -> Iterator[Mutant]:
    """Yield every mutant of a machine that is made by rule, each under a name of its own."""
    for action in machine.actions:
        yield from _dropped(machine, action)
        yield from _strengthened(machine, action)
        yield Mutant(f"delete {action.name}", Kind.DELETE_ACTION, machine, {action.name: None})
        yield from _weakened(machine, action)


def _dropped(machine: Machine, action: Action) -> Iterator[Mutant]:
    for guard in action.guards:
        rest = tuple(g for g in action.guards if g is not guard)
        name = f"drop {action.name}.{guard.name}"
        changed = replace(action, guards=rest)
        yield Mutant(name, Kind.DROP_GUARD, machine, {action.name: changed})


def _strengthened(machine: Machine, action: Action) -> Iterator[Mutant]:
    for at, guard in enumerate(action.guards):
        before: Counter[str] = Counter()
        for says, condition in tightened(guard.condition):
            before[says] += 1
            again = f" ({before[says]})" if before[says] > 1 else ""
            stricter = Guard(guard.name, condition)
            guards = (*action.guards[:at], stricter, *action.guards[at + 1 :])
            name = f"strengthen {action.name}.{guard.name}: {says}{again}"
            changed = replace(action, guards=guards)
            yield Mutant(name, Kind.STRENGTHEN_GUARD, machine, {action.name: changed})


def _weakened(machine: Machine, action: Action) -> Iterator[Mutant]:
    for at, effect in enumerate(action.effects):
        rest = (*action.effects[:at], *action.effects[at + 1 :])
        where = _where(action, effect)
        name = f"weaken {action.name}: {where}"
        changed = replace(action, effects=rest)
        yield Mutant(name, Kind.WEAKEN_EFFECT, machine, {action.name: changed})
        for says, value in _cases(effect):
            simpler = replace(effect, value=value)
            effects = (*action.effects[:at], simpler, *action.effects[at + 1 :])
            changed = replace(action, effects=effects)
            name = f"weaken {action.name}: {where} {says}"
            yield Mutant(name, Kind.WEAKEN_EFFECT, machine, {action.name: changed})


def _where(action: Action, effect: Effect) -> str:
    """Name a cell by its variable, and by its place among the cells of that variable."""
    same = [e for e in action.effects if e.variable == effect.variable]
    return effect.variable if len(same) == 1 else f"{effect.variable} {same.index(effect) + 1}"


def _cases(effect: Effect) -> Iterator[tuple[str, Node]]:
    """Yield what an effect comes to if one side of its condition is forgotten."""
    if isinstance(effect.value, Apply) and effect.value.operator == "ite":
        _, then, otherwise = effect.value.arguments
        yield "always", then
        if not _is_old(otherwise, effect):
            yield "never", otherwise


def _is_old(value: Node, effect: Effect) -> bool:
    """Say whether the cell keeps what it has: then the effect is dropped as a whole already."""
    if not isinstance(value, Read):
        return False
    return (value.variable, value.indices) == (effect.variable, effect.indices)
