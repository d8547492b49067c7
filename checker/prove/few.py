"""A universe of few elements, in which z3 looks for a state that looks right and a bad step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.encode import Translator, present
from fivestate.checker.prove.happening import ANY_CASE, Counterexample, failing, walked
from fivestate.checker.prove.safety import Safety
from fivestate.checker.prove.signature import (
    Expression,
    Value,
    enumeration,
    literal,
    unknown,
)
from fivestate.checker.prove.solve import Answer, Asking
from fivestate.checker.prove.states import Names, States
from fivestate.checker.prove.universe import Sized
from fivestate.spec.language.model import Codes, Model
from fivestate.spec.language.properties import Kind, Property
from fivestate.spec.language.run import Run
from fivestate.spec.language.settings import Setting, sort_setting
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.tracing import Action
from fivestate.spec.language.trees import Atom, Boolean, Constant, Enumerated, Maybe, Type


class Search:
    """A universe of few elements in which a state and a step are looked for."""

    def __init__(self, safety: Safety, universe: Sized, asking: Asking) -> None:
        self.safety, self.universe, self.asking = safety, universe, asking
        self.states = States(safety.machine, universe)
        self._solver = asking.solver()
        self._solver.add(safety.granted(self.states))
        self._solver.add(list(self._closed()))
        self._rely = [holds for claim in safety.invariants for holds in self._holds(claim)]

    def possible(self, action: Action) -> Answer:
        """Say whether an action can be taken in some state that looks right."""
        names = self.states.fresh(action.parameters)
        self._solver.push()
        self._solver.add(self._rely)
        self._solver.add(list(self._enabled(action, names)))
        answer = self.asking.ask(self._solver)
        self._solver.pop()
        return answer

    def find(
        self,
        claim: Property,
        action: Action | None,
        model: Model | None,
    ) -> Counterexample | None:
        """Return a counterexample, with the settings of a model or with any.

        Raises:
            AssertionError: what z3 has found does not happen: the translation is wrong.
        """
        names: Names = {} if action is None else self.states.fresh(action.parameters)
        self._solver.push()
        if model is not None:
            self._solver.add(list(self._settings(model)))
        if action is not None:
            self._solver.add(self._rely)
            self._solver.add(list(self._enabled(action, names)))
        self._solver.add(z3.Not(z3.And(list(self._after(claim, action, names)))))
        answer = self.asking.ask(self._solver)
        found = self._decoded(claim, action, names, model) if answer is Answer.YES else None
        self._solver.pop()
        return found

    def _closed(self) -> Iterator[Expression]:
        for sort in self.universe.sizes:
            yield z3.Distinct(*self.universe.atoms(sort))
        for name, variable in self.safety.machine.state.variables.items():
            if isinstance(variable.type, Maybe):
                for indices in self._cells(variable.over):
                    cell = self.states.before(name, indices)
                    yield z3.Implies(
                        cell.there, self.universe.closed(variable.type.sort, cell.atom)
                    )

    def _cells(self, over: tuple[type[Sort], ...]) -> Iterator[tuple[Expression, ...]]:
        first, *rest = over or (None,)
        if first is None:
            yield ()
            return
        for element in self.universe.elements(first) or ():
            for others in self._cells(tuple(rest)):
                yield (element, *others)

    def _holds(self, claim: Property) -> Iterator[Expression]:
        given = self.states.static.value(claim.given, {})
        for names in self._choices(claim):
            there = self.states.inside(claim.parameters, names)
            yield z3.Implies(z3.And(given, there), self.states.here.value(claim.condition, names))

    def _choices(self, claim: Property) -> Iterator[Names]:
        for chosen in self._cells(tuple(bound.sort for bound in claim.parameters)):
            pairs = zip(claim.parameters, chosen, strict=True)
            yield {bound.name: element for bound, element in pairs}

    def _after(self, claim: Property, action: Action | None, names: Names) -> Iterator[Expression]:
        if action is None:
            translator = Translator(self.universe, self.states.first)
        elif claim.kind is Kind.STEP:
            translator = self.states.during(action, names)
        else:
            translator = self.states.then(action, names)
        given = self.states.static.value(claim.given, {})
        for chosen in self._choices(claim):
            there = self.states.inside(claim.parameters, chosen)
            yield z3.Implies(z3.And(given, there), translator.value(claim.condition, chosen))

    def _enabled(self, action: Action, names: Names) -> Iterator[Expression]:
        yield from self.safety.has(action)
        yield self.states.static.value(action.given, {})
        yield self.states.inside(action.parameters, names)
        for bound in action.parameters:
            if bound.sort.of is None:
                yield self.universe.closed(bound.sort, names[bound.name])
        for guard in action.guards:
            yield self.states.here.value(guard.condition, names)

    def _settings(self, model: Model) -> Iterator[Expression]:
        routes = self.safety.machine.routes
        if routes is not None and routes.of is not None:
            for code, member in enumerate(enumeration(routes.of)[1]):
                yield present(routes, member) == z3.BoolVal(code in model.elements(routes))
        for node in self.safety.machine.constants:
            for codes, each in self._constant(node, model):
                yield each == literal(model.constant(node.name, codes), node.type)

    def _constant(self, node: Constant, model: Model | None) -> Iterator[tuple[Codes, Expression]]:
        """Yield the codes and the unknown value of each cell of a constant that a model has."""
        kinds = tuple(index.type for index in node.indices)
        routes = self.safety.machine.routes
        there = None if model is None or routes is None else model.elements(routes)
        options = [range(len(k.enum)) for k in kinds if isinstance(k, Enumerated)]
        for codes in _product(options):
            if there is None or all(code in there for code in codes):
                members = tuple(
                    enumeration(kind.enum)[1][code]
                    for kind, code in zip(kinds, codes, strict=True)
                    if isinstance(kind, Enumerated)
                )
                yield codes, unknown(node.name, kinds, node.type, members)

    def _decoded(
        self,
        claim: Property,
        action: Action | None,
        names: Names,
        model: Model | None,
    ) -> Counterexample:
        """Return what z3 has found as a state of a model, walked by hand."""
        decode = Decoder(self._solver.model(), self.universe)
        sized = model or self._model(decode)
        state = sized.first
        if action is not None:
            state = tuple(
                decode.code(cell.type, self._cell(sized, cell.variable, cell.indices))
                for cell in sized.cells
            )
        if action is None:
            detail = failing(sized, claim, state, state)
            return Counterexample(claim, sized, state, None, detail or ANY_CASE, ())
        codes = tuple(decode.code(b.type, names[b.name]) for b in action.parameters)
        (step,) = (s for s in sized.steps if s.action.name == action.name and s.arguments == codes)
        refused = Run(sized, state).refusal(step)
        found = walked(sized, claim, state, step)
        if refused is not None or found is None:
            raise AssertionError(
                f"z3 says that {step.label} breaks {claim.name}: {refused or 'no'}"
            )
        return found

    def _cell(self, model: Model, variable: str, codes: Codes) -> Value:
        over = model.variables[variable].over
        indices = tuple(
            (self.universe.elements(sort) or ())[code]
            for sort, code in zip(over, codes, strict=True)
        )
        return self.states.before(variable, indices)

    def _model(self, decode: Decoder) -> Model:
        settings: dict[str, Setting] = {
            sort_setting(sort): size for sort, size in self.universe.sizes.items()
        }
        routes = self.safety.machine.routes
        if routes is not None and routes.of is not None:
            members = zip(routes.of, enumeration(routes.of)[1], strict=True)
            settings[sort_setting(routes)] = tuple(
                member for member, each in members if decode.code(Boolean(), present(routes, each))
            )
        for node in self.safety.machine.constants:
            settings[node.name] = self._setting(node, decode)
        return Model("any size", "Found by z3.", self.safety.machine, settings)

    def _setting(self, node: Constant, decode: Decoder) -> Setting:
        cells = {codes: decode.code(node.type, e) for codes, e in self._constant(node, None)}
        truth = isinstance(node.type, Boolean)
        if not node.indices:
            return bool(cells[()]) if truth else cells[()]
        enums = [index.type.enum for index in node.indices if isinstance(index.type, Enumerated)]
        table: dict[Any, Any] = {}
        for codes, value in cells.items():
            key = tuple(list(enum)[code] for enum, code in zip(enums, codes, strict=True))
            (only, *others) = key
            table[key if others else only] = bool(value) if truth else value
        return table


class Decoder:
    """What z3's answer says of expressions, in codes."""

    def __init__(self, model: Any, universe: Sized) -> None:
        self._model, self._universe = model, universe

    def code(self, kind: Type, value: Value) -> int:
        """Return the code of a value."""
        match kind:
            case Maybe(sort):
                return 1 + self._atom(sort, value.atom) if self._true(value.there) else 0
            case Boolean():
                return int(self._true(value))
            case Enumerated(enum):
                name = str(self._model.eval(value, model_completion=True))
                return [member.name for member in enum].index(name)
            case Atom(sort):
                return self._atom(sort, value)
            case _:
                number: int = self._model.eval(value, model_completion=True).as_long()
                return number

    def _true(self, value: Expression) -> bool:
        return bool(z3.is_true(self._model.eval(value, model_completion=True)))

    def _atom(self, sort: type[Sort], value: Expression) -> int:
        wanted = self._model.eval(value, model_completion=True)
        for number, each in enumerate(self._universe.atoms(sort)):
            if self._model.eval(each, model_completion=True).eq(wanted):
                return number
        raise AssertionError(f"{value} is no atom of {sort.__name__}")


def _product(options: list[range]) -> Iterator[Codes]:
    if not options:
        yield ()
        return
    for code in options[0]:
        for rest in _product(options[1:]):
            yield (code, *rest)
