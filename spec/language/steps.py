"""Steps: an action with its arguments fixed, over the cells of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.ground import During
from fivestate.spec.language.tracing import EVERY, Action
from fivestate.spec.language.trees import FALSE, Cell, Literal, Node

if TYPE_CHECKING:
    from fivestate.spec.language.model import Model


@dataclass(frozen=True)
class Step:
    """An action with its arguments fixed: what it asks of a state and what it makes of it.

    It is grounded when its guards or updates are first asked for: most of a search's report
    needs its name only.

    Attributes:
        model: the model whose step it is.
        action: the action.
        label: how a story writes it, ``resume(r1, p0)``.
        names: the code of each parameter.
    """

    model: Model = field(repr=False, compare=False)
    action: Action
    label: str
    names: Mapping[str, int]

    @property
    def arguments(self) -> tuple[int, ...]:
        """The codes of the arguments, in the order of the parameters."""
        return tuple(self.names.values())

    @cached_property
    def guards(self) -> tuple[tuple[str, Node], ...]:
        """The guards by name, over the model's cells."""
        ground = self.model.grounder.ground
        return tuple((g.name, ground(g.condition, self.names)) for g in self.action.guards)

    @cached_property
    def updates(self) -> tuple[tuple[int, Node], ...]:
        """The cells that the step writes, by position, and what each gets.

        Raises:
            SpecError: it writes a cell twice, one of a state it does not declare, or changes a
                variable that the model lacks.
        """
        updates: dict[int, Node] = {}
        for variable, codes, value in self._effects():
            cell = self.model.cell(variable, codes)
            if isinstance(cell, Literal):
                self._refuse_change(variable, codes, cell, value)
            elif cell.position in updates:
                shown = self.model.cells[cell.position].name
                raise SpecError(f"{self.label} assigns {shown} twice: effects are simultaneous")
            else:
                updates[cell.position] = value
        kept = {at: value for at, value in updates.items() if not _is_cell(value, at)}
        self._refuse_misrouted(kept)
        return tuple(sorted(kept.items(), key=lambda item: item[0]))

    @property
    def during(self) -> During:
        """What a step property is told of this step."""
        return During(self.action.called, frozenset(position for position, _ in self.updates))

    @property
    def possible(self) -> bool:
        """Whether no guard is false in every state of this model."""
        return all(condition != FALSE for _, condition in self.guards)

    def _effects(self) -> list[tuple[str, tuple[int, ...], Node]]:
        ground, found = self.model.grounder.ground, []
        for effect in self.action.effects:
            for inner in self.model.choices(effect.over):
                names = {**self.names, **inner}
                indices = (ground(index, names) for index in effect.indices)
                codes = tuple(index.value for index in indices if isinstance(index, Literal))
                found.append((effect.variable, codes, ground(effect.value, names)))
        return found

    def _refuse_change(
        self,
        variable: str,
        codes: tuple[int, ...],
        was: Literal,
        value: Node,
    ) -> None:
        """Refuse to change a variable that the model lacks."""
        if value != was:
            shown = self.model.label(variable, codes)
            raise SpecError(
                f"{self.label} changes {shown}, which model {self.model.name} does not have: "
                "the action needs given= as the variable does",
            )

    def _refuse_misrouted(self, written: Mapping[int, Node]) -> None:
        """Refuse to change a cell of a state that is neither declared nor marked (I-2)."""
        routes, state = self.model.machine.routes, self.action.state
        if routes is None or routes.of is None or state == EVERY:
            return
        members = list(routes.of)
        declared = members[self.names[state]] if isinstance(state, str) else state
        for position in written:
            cell = self.model.cells[position]
            over = self.model.variables[cell.variable].over
            for sort, code in zip(over, cell.indices, strict=True):
                if sort is routes and members[code] not in (declared, *self.action.marks):
                    raise SpecError(
                        f"{self.label} is declared for {declared.name} and changes {cell.name}: "
                        "declare that state, mark it, or declare EVERY",
                    )


def _is_cell(value: Node, position: int) -> bool:
    return isinstance(value, Cell) and value.position == position
