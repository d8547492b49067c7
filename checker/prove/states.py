"""States of a machine as z3 sees them: the first, an unknown one, and the one behind a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.encode import Translator, View
from fivestate.checker.prove.signature import Expression, Value, choose, equal, symbol, unknown
from fivestate.checker.prove.universe import Universe
from fivestate.spec.language.declare import Variable
from fivestate.spec.language.machine import Machine
from fivestate.spec.language.tracing import Action, Effect
from fivestate.spec.language.trees import TRUE, Bound

Names = Mapping[str, Value]


@dataclass(frozen=True)
class States:
    """The states of one machine in one universe."""

    machine: Machine
    universe: Universe

    def before(self, name: str, indices: tuple[Expression, ...]) -> Value:
        """Return a cell of an unknown state.

        What a model lacks is its first value: as the language reads it.
        """
        variable = self._variables[name]
        over = tuple(sort.element_type() for sort in variable.over)
        value = unknown(name, over, variable.type, indices)
        if variable.given == TRUE:
            return value
        return choose(self._given[name], value, self.first(name, indices))

    def first(self, name: str, indices: tuple[Expression, ...]) -> Value:
        """Return a cell of the machine's first state."""
        variable = self._variables[name]
        bounds = tuple(sort.named(f"#{at}") for at, sort in enumerate(variable.over))
        names = {bound.name: index for bound, index in zip(bounds, indices, strict=True)}
        return self.static.value(variable.initial_at(*bounds), names)

    def behind(self, action: Action, names: Names) -> View:
        """Return the state behind an action: the state before, with its effects applied."""
        known: dict[tuple[object, ...], tuple[Names, Value]] = {}

        def read(name: str, indices: tuple[Expression, ...]) -> Value:
            key = (name, *(index.get_id() for index in indices))
            if key not in known:  # z3 reuses the ids of what is forgotten, so nothing is
                kept = {str(at): index for at, index in enumerate(indices)}
                known[key] = kept, self._behind(action, names, name, indices)
            return known[key][1]

        return read

    def written(
        self,
        action: Action,
        names: Names,
        variable: str,
        indices: tuple[Expression, ...],
    ) -> Value | None:
        """Return what an action makes of a cell, or nothing if it never writes the variable."""
        effects = [effect for effect in action.effects if effect.variable == variable]
        if not effects:
            return None
        value = self.before(variable, indices)
        for effect in effects:
            value = self._applied(effect, names, indices, value)
        return value

    def _behind(
        self,
        action: Action,
        names: Names,
        variable: str,
        indices: tuple[Expression, ...],
    ) -> Value:
        value = self.written(action, names, variable, indices)
        if value is None:
            return self.before(variable, indices)
        if self._variables[variable].given == TRUE:
            return value
        return choose(self._given[variable], value, self.first(variable, indices))

    @cached_property
    def here(self) -> Translator:
        """What translates a condition on the unknown state."""
        return Translator(self.universe, self.before)

    @cached_property
    def static(self) -> Translator:
        """What translates what is the same in every state."""
        return Translator(self.universe)

    def then(self, action: Action, names: Names) -> Translator:
        """Return what translates a condition on the state behind an action."""
        return Translator(self.universe, self.behind(action, names), origin=self.here)

    def during(self, action: Action, names: Names) -> Translator:
        """Return what translates a step property of an action."""
        behind = self.behind(action, names)
        return Translator(self.universe, self.before, behind=behind, took=action.name)

    def fresh(self, bounds: tuple[Bound, ...], prefix: str = "") -> Names:
        """Return unknown elements for bound names."""
        return {bound.name: symbol(f"{prefix}{bound.name}", bound.type) for bound in bounds}

    def inside(self, bounds: tuple[Bound, ...], names: Names) -> Expression:
        """Say that the elements are of their sorts."""
        return z3.And([self.static.there(bound.sort, names[bound.name]) for bound in bounds])

    def _applied(
        self,
        effect: Effect,
        names: Names,
        indices: tuple[Expression, ...],
        otherwise: Value,
    ) -> Value:
        inner = dict(names)
        where: list[Expression] = []
        for index, element in zip(effect.indices, indices, strict=True):
            if isinstance(index, Bound) and index in effect.over:
                inner[index.name] = element
            else:
                where.append(equal(self.here.value(index, names), element))
        value = self.here.value(effect.value, inner)
        return choose(z3.And(where), value, otherwise) if where else value

    @cached_property
    def _variables(self) -> dict[str, Variable]:
        return self.machine.state.variables

    @cached_property
    def _given(self) -> dict[str, Expression]:
        return {name: self.static.value(v.given, {}) for name, v in self._variables.items()}
