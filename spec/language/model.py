"""Models: a machine with its sorts counted and its constants fixed, ready to be explored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from fivestate.spec.language.declare import Variable
from fivestate.spec.language.errors import ModelError, SpecError
from fivestate.spec.language.ground import ANY_STEP, During, Grounder, connect, evaluate
from fivestate.spec.language.machine import Machine, Refinement
from fivestate.spec.language.properties import Property
from fivestate.spec.language.settings import Setting, check, parse, sort_setting, table_key
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.steps import Step
from fivestate.spec.language.tracing import Action
from fivestate.spec.language.trees import (
    Atom,
    Boolean,
    Bound,
    Cell,
    Enumerated,
    Integer,
    Literal,
    Maybe,
    Node,
    Type,
)

Codes = tuple[int, ...]
"""Values as small whole numbers; a state is the codes of all its cells."""


@dataclass(frozen=True, slots=True)
class CellInfo:
    """One cell of a model's state: its printed name, its type and its declared bounds."""

    name: str
    variable: str
    indices: Codes
    type: Type
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Case:
    """A property with its parameters fixed: ``binding`` says how, as in ``r=r1, g=WINDOW``."""

    claim: Property
    binding: str
    condition: Node


@dataclass(frozen=True)
class Model:
    """A machine of a fixed size.

    Attributes:
        name: what the command line calls it.
        says: one sentence: what it shows.
        machine: the machine.
        settings: for each sort its number of atoms or its members, for each constant its value;
            for a table, a value for each member.
        start: a run, from the machine's first state, to the state where the model starts; each
            step is written as in a story, ``("resume", "r1", "p0")``.
        start_says: what that state is, in a few words.
        refines: the simpler machine that this one refines, if that is claimed.
        changes: what ``set`` has changed, as written.
    """

    name: str
    says: str
    machine: Machine
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    start: tuple[tuple[str, ...], ...] = ()
    start_says: str = ""
    refines: Refinement | None = None
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            ModelError: one is unknown, missing or out of its range.
        """
        check(self.name, self.machine, self.settings)
        for law in self.machine.rules:
            if self._fixed(law.given) and not all(
                evaluate(case.condition, ()) for case in self.cases(law)
            ):
                raise ModelError(f"model {self.name}: its settings contradict: {law.sentence}")

    def set(self, *texts: str) -> Model:
        """Return this model with some settings changed, each written ``name=value``.

        ``request=3``, ``group=COMPRESSED,WINDOW``, ``aborts=false``, ``cap=2`` for every group or
        ``cap.WINDOW=2`` for one.

        Raises:
            ModelError: a text is malformed, or a setting is unknown or out of range.
        """
        settings = dict(self.settings)
        for text in texts:
            name, value = parse(text, self.machine, settings)
            settings[name] = value
        return replace(self, settings=settings, changes=(*self.changes, *texts))

    def elements(self, sort: type[Sort]) -> Codes:
        """Return the codes of a sort's elements in this model."""
        known = self._elements.get(sort)
        if known is None:
            known = self._elements[sort] = self._count(sort)
        return known

    def _count(self, sort: type[Sort]) -> Codes:
        if sort.low is not None and sort.high is not None:
            low, high = self._fixed(sort.low), self._fixed(sort.high)
            return tuple(range(low, high + 1))
        chosen = self.settings[sort_setting(sort)]
        if isinstance(chosen, tuple):
            members = list(sort.of or ())
            return tuple(sorted(members.index(member) for member in chosen))
        return tuple(range(chosen)) if isinstance(chosen, int) else ()

    def constant(self, name: str, indices: Codes) -> int:
        """Return the value of a switch, a size or one cell of a table or relation."""
        return self.constants.get((name, indices), 0)

    @cached_property
    def _elements(self) -> dict[type[Sort], Codes]:
        return {}

    @cached_property
    def constants(self) -> dict[tuple[str, Codes], int]:
        """The value of each constant at some codes; what a table does not list is 0."""
        fixed: dict[tuple[str, Codes], int] = {}
        for name, value in self.settings.items():
            if isinstance(value, Mapping):
                fixed.update({(name, table_key(key)): int(n) for key, n in value.items()})
            elif isinstance(value, int):
                fixed[name, ()] = int(value)
        return fixed

    @cached_property
    def cells(self) -> tuple[CellInfo, ...]:
        """The cells of a state, in the order in which a state lists them."""
        return tuple(self._cells())

    @cached_property
    def positions(self) -> dict[tuple[str, Codes], int]:
        """The position of each variable's cells in a state."""
        return {(cell.variable, cell.indices): at for at, cell in enumerate(self.cells)}

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """The machine's variables that this model has."""
        declared = self.machine.state.variables
        return {name: v for name, v in declared.items() if self._fixed(v.given)}

    @cached_property
    def first(self) -> Codes:
        """The machine's first state, before the run to ``start``."""
        values = tuple(self._first_value(c.variable, c.indices).value for c in self.cells)
        for cell, value in zip(self.cells, values, strict=True):
            if not cell.low <= value <= cell.high:
                message = f"{cell.name} starts at {value}, outside {cell.low}..{cell.high}"
                raise SpecError(f"model {self.name}: {message}")
        return values

    @cached_property
    def initial(self) -> Codes:
        """The state in which this model starts."""
        from fivestate.spec.language.run import Run  # noqa: PLC0415 -- a run is a view of a model

        run = Run(self, self.first)
        for name, *arguments in self.start:
            run.take(name, *arguments)
        return run.state

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every action of this model with every choice of arguments, in the order of ``NEXT``."""
        return tuple(step for action in self.actions for step in self._steps(action))

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The machine's actions that this model has."""
        routes = self.machine.routes
        present = () if routes is None else self.elements(routes)
        members = [] if routes is None else list(routes.of or ())
        return tuple(
            action
            for action in self.machine.actions
            if self._fixed(action.given)
            and (action.state not in members or members.index(action.state) in present)
        )

    @cached_property
    def claims(self) -> tuple[Property, ...]:
        """The machine's properties that this model has."""
        return tuple(claim for claim in self.machine.claims if self._fixed(claim.given))

    def cases(self, claim: Property, during: During = ANY_STEP) -> tuple[Case, ...]:
        """Return a property for every choice of its parameters, of a step: ``during`` it."""
        return tuple(
            Case(
                claim,
                ", ".join(f"{b.name}={self.show(b.type, names[b.name])}" for b in claim.parameters),
                self.grounder.ground(claim.condition, names, during),
            )
            for names in self.choices(claim.parameters)
        )

    @cached_property
    def grounder(self) -> Grounder:
        """What turns trees over sorts into trees over this model's cells."""
        return Grounder(self.elements, self.constant, self.cell, self.may)

    def show(self, kind: Type, code: int) -> str:
        """Return how a value is printed and written: ``True``, ``READY``, ``p0``, ``NOTHING``."""
        match kind:
            case Boolean():
                return str(bool(code))
            case Integer():
                return str(code)
            case Enumerated(enum):
                return list(enum)[code].name
            case Atom(sort):
                return f"{sort.letter}{code}"
            case Maybe(sort):
                return f"{sort.letter}{code - 1}" if code else "NOTHING"

    def abstract(self) -> Model:
        """Return the simpler machine, at this model's sizes.

        Raises:
            ModelError: this model does not claim to refine one.
        """
        if self.refines is None:
            message = f"model {self.name} refines nothing"
            raise ModelError(message)
        simple = self.refines.abstract
        wanted = {sort_setting(sort) for sort in simple.sorts} | {c.name for c in simple.constants}
        settings = {name: value for name, value in self.settings.items() if name in wanted}
        return Model(f"{self.name} as {simple.name}", self.refines.sentence, simple, settings)

    def _fixed(self, node: Node) -> int:
        return evaluate(self.grounder.ground(node, {}), ())

    def cell(self, variable: str, indices: Codes) -> Cell | Literal:
        """Return a variable's cell, or its first value if this model lacks the variable.

        Raises:
            SpecError: the variable has no such cell here.
        """
        if variable not in self.variables:
            return self._first_value(variable, indices)
        position = self.positions.get((variable, indices))
        if position is None:
            raise SpecError(
                f"model {self.name} has no {self.label(variable, indices)}: "
                "ask exists() whether the element is there",
            )
        return Cell(position, self.variables[variable].type)

    def may(self, name: str, codes: Codes) -> Node:
        """Return the condition under which an action may be taken with these arguments."""
        variants = (action for action in self.actions if action.called == name)
        return connect("or", (self._guarded(action, codes) for action in variants))

    def _guarded(self, action: Action, codes: Codes) -> Node:
        names = {b.name: code for b, code in zip(action.parameters, codes, strict=True)}
        guards = (self.grounder.ground(guard.condition, names) for guard in action.guards)
        return connect("and", guards)

    def _first_value(self, name: str, indices: Codes) -> Literal:
        variable = self.machine.state.variables[name]
        bounds = [sort.named(f"#{at}") for at, sort in enumerate(variable.over)]
        names = {bound.name: code for bound, code in zip(bounds, indices, strict=True)}
        node = self.grounder.ground(variable.initial_at(*bounds), names)
        return Literal(evaluate(node, ()), variable.type)

    def label(self, name: str, indices: Codes) -> str:
        """Return a cell's printed name."""
        sorts = self.machine.state.variables[name].over
        pairs = zip(sorts, indices, strict=True)
        shown = ", ".join(self.show(sort.element_type(), code) for sort, code in pairs)
        return f"{name}[{shown}]" if shown else name

    def _cells(self) -> Iterator[CellInfo]:
        for name, variable in self.variables.items():
            for codes in product(*(self.elements(sort) for sort in variable.over)):
                low, high = self._bounds(name, codes)
                label = self.label(name, codes)
                yield CellInfo(label, name, codes, variable.type, low, high)

    def _bounds(self, name: str, codes: Codes) -> tuple[int, int]:
        variable = self.machine.state.variables[name]
        match variable.of, variable.type:
            case Boolean(), _:
                return 0, 1
            case Maybe(sort), _:
                return 0, len(self.elements(sort))
            case _, Enumerated(enum):
                return 0, len(enum) - 1
            case _:
                declared = variable.range
        assert declared is not None  # noqa: S101 -- the other domains are handled above
        named = {sort.letter: code for sort, code in zip(variable.over, codes, strict=True)}
        low, high = (
            evaluate(self.grounder.ground(bound, named), ())
            for bound in (declared.low, declared.high)
        )
        if low > high:
            message = f"model {self.name}: {name} ranges over {low}..{high}, which is empty"
            raise ModelError(message)
        return low, high

    def choices(self, bounds: tuple[Bound, ...]) -> Iterator[dict[str, int]]:
        """Yield every choice of elements for bound names: the code of each name."""
        for codes in product(*(self.elements(bound.sort) for bound in bounds)):
            yield {bound.name: code for bound, code in zip(bounds, codes, strict=True)}

    def _steps(self, action: Action) -> Iterator[Step]:
        for names in self.choices(action.parameters):
            shown = ", ".join(self.show(b.type, names[b.name]) for b in action.parameters)
            yield Step(self, action, f"{action.name}({shown})", names)
