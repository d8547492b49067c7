"""One machine with many mutants in it, and a number that says which of them is awake.

Compiling a model takes longer than searching it. A schema is compiled once a model; each of its
mutants is then a search from another first state.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from fivestate.checker.mutants.mutant import Mutant
from fivestate.spec.language.declare import Scalar, State, within
from fivestate.spec.language.machine import Machine
from fivestate.spec.language.model import Model
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.tracing import EVERY, Action, Effect, Guard, action, require
from fivestate.spec.language.trees import TRUE, Apply, Boolean, Integer, Literal, Node, Read

AWAKE = "awake"
NOBODY = 0

Changed = tuple[int, Action]
"""The number of a mutant, and what it makes of an action."""


class Schema:
    """The machine that is each of ``mutants`` in turn, and itself while nobody is awake.

    Raises:
        ValueError: they are not all mutants of one machine.
    """

    def __init__(self, machine: Machine, mutants: Sequence[Mutant]) -> None:
        if any(mutant.machine is not machine for mutant in mutants):
            raise ValueError("a schema is made of the mutants of one machine")
        self.numbers = {mutant.name: at for at, mutant in enumerate(mutants, 1)}
        self.machine = replace(
            machine,
            state=_with_number(machine.state, len(mutants)),
            next=(*_merged(machine, mutants), _wake(len(mutants))),
        )

    def model(self, model: Model) -> Model:
        """Return a model of the schema's machine; nobody is awake in it."""
        refines = model.refines and replace(model.refines, machine=self.machine)
        return replace(model, machine=self.machine, refines=refines)

    def awake(self, model: Model, mutant: Mutant) -> Model:
        """Return that model with ``mutant`` awake from the start; all else is as it was."""
        chosen = copy(model)  # with everything that has been worked out of the model
        initial = list(model.initial)
        initial[model.positions[AWAKE, ()]] = self.numbers[mutant.name]
        chosen.__dict__["initial"] = tuple(initial)
        return chosen


def _with_number(state: type[State], highest: int) -> type[State]:
    number = Scalar("the mutant that is awake", of=within(NOBODY, highest), initial=NOBODY)
    return type("Schema", (state,), {AWAKE: number})


def _wake(highest: int) -> Action:
    class Number(Sort, letter="m", low=1, high=highest):
        """A mutant's number."""

    def wake(s: State, m: Number) -> None:
        """Wake a mutant, before anything else happens."""
        require(nobody=getattr(s, AWAKE) == NOBODY)
        setattr(s, AWAKE, m)

    wake.__annotations__["m"] = Number
    return action("A-0", state=EVERY)(wake).trace(_with_number(State, highest))


def _merged(machine: Machine, mutants: Sequence[Mutant]) -> list[Action]:
    known = {each.name: each for each in machine.actions}
    variants: dict[str, list[Changed]] = {name: [] for name in known}
    absent: dict[str, list[int]] = {name: [] for name in known}
    more: list[Action] = []
    for number, mutant in enumerate(mutants, 1):
        for name, changed in mutant.actions.items():
            if name not in known:
                more.append(_only(number, changed, name))
            elif changed is None:
                absent[name].append(number)
            elif _overlaps(known[name], changed):
                absent[name].append(number)
                more.append(_only(number, changed, f"{name}, {mutant.name}"))
            else:
                variants[name].append((number, changed))
    either = [_either(each, variants[name], absent[name]) for name, each in known.items()]
    return [*either, *more]


def _overlaps(original: Action, changed: Action) -> bool:
    """Say whether both write a variable in different ways, perhaps the same cell twice."""
    cells = {_cell(effect) for effect in original.effects}
    written = {effect.variable for effect in original.effects}
    return any(e.variable in written and _cell(e) not in cells for e in changed.effects)


def _only(number: int, changed: Action | None, name: str) -> Action:
    """Return an action that is there only while one mutant is awake."""
    if changed is None:
        raise ValueError(f"there is no action {name!r} to delete")
    guards = (Guard("awake", _is_awake([number])), *changed.guards)
    return replace(changed, name=name, guards=guards)


def _either(original: Action, variants: list[Changed], gone: list[int]) -> Action:
    """Return the action that is ``original``, or while a mutant is awake what that makes of it."""
    if not variants and not gone:
        return original
    guards = {guard.name: guard.condition for guard in original.guards}
    effects = {_cell(effect): effect for effect in original.effects}
    for _, changed in variants:
        guards |= {g.name: TRUE for g in changed.guards if g.name not in guards}
        effects |= {_cell(e): _kept(e) for e in changed.effects if _cell(e) not in effects}
    for name, condition in guards.items():
        others = [(n, {g.name: g.condition for g in c.guards}.get(name, TRUE)) for n, c in variants]
        guards[name] = _condition(condition, others)
    for cell, effect in effects.items():
        values = [
            (n, {_cell(e): e for e in c.effects}.get(cell, _kept(effect)).value)
            for n, c in variants
        ]
        effects[cell] = replace(effect, value=_value(effect.value, values))
    if gone:
        guards["there"] = Apply("not", (_is_awake(gone),), Boolean())
    return replace(
        original,
        guards=tuple(Guard(name, condition) for name, condition in guards.items()),
        effects=tuple(effects.values()),
    )


def _cell(effect: Effect) -> tuple[object, ...]:
    return effect.variable, effect.indices, effect.over


def _kept(effect: Effect) -> Effect:
    """Return the effect by which the cell keeps its value."""
    return replace(effect, value=Read(effect.variable, effect.indices, effect.value.type))


def _condition(original: Node, others: list[tuple[int, Node]]) -> Node:
    """Return a guard that is another while one of some mutants is awake."""
    dropped = [number for number, condition in others if condition == TRUE != original]
    rest = [(number, condition) for number, condition in others if number not in dropped]
    chosen = _value(original, rest)
    return Apply("or", (_is_awake(dropped), chosen), Boolean()) if dropped else chosen


def _value(original: Node, others: list[tuple[int, Node]]) -> Node:
    same: dict[Node, list[int]] = {}
    for number, value in others:
        if value != original:
            same.setdefault(value, []).append(number)
    chosen = original
    for value, numbers in same.items():
        chosen = Apply("ite", (_is_awake(numbers), value, chosen), value.type)
    return chosen


def _is_awake(numbers: list[int]) -> Node:
    awake = Read(AWAKE, (), Integer())
    tests = tuple(Apply("==", (awake, Literal(number, Integer())), Boolean()) for number in numbers)
    return tests[0] if len(tests) == 1 else Apply("or", tests, Boolean())
