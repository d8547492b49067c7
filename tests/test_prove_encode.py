"""The translation into z3 means what the language means."""

from __future__ import annotations

import random
from threading import Event
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from fivestate.checker.engines.python import explore
from fivestate.checker.exploration import Limits
from fivestate.checker.prove.counterexample import SIZES, small_models
from fivestate.checker.prove.encode import Translator, floor
from fivestate.checker.prove.few import Search
from fivestate.checker.prove.induction import Induction
from fivestate.checker.prove.instances import AnySize, Grounding
from fivestate.checker.prove.numbers import Numbers, on_terms, symbolic
from fivestate.checker.prove.safety import CACHE
from fivestate.checker.prove.signature import Option, equal, literal
from fivestate.checker.prove.solve import Answer, Asking
from fivestate.checker.prove.states import States
from fivestate.checker.prove.universe import Sized
from fivestate.spec.allocator.state import Prefix
from fivestate.spec.language import Run, max_
from fivestate.spec.language.ground import evaluate, fold
from fivestate.spec.language.model import CellInfo
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.trees import (
    Apply,
    Atom,
    Boolean,
    Constant,
    Integer,
    Literal,
    Maybe,
    Node,
)
from fivestate.spec.models import MODELS
from fivestate.spec.need import entries
from fivestate.spec.reuse.groups import Shape

NAMES: tuple[str, ...] = ("a", "b", "c")
TRUTH, NUMBER = Boolean(), Integer()


def whole(term: Any) -> int:
    simple: Any = z3.simplify(term)
    return int(str(simple))


def number(value: int) -> Literal:
    return Literal(value, NUMBER)


def numbers(truths: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    named = st.sampled_from(NAMES).map(lambda name: Constant(name, (), NUMBER, -(2**62), 2**62))
    leaves: st.SearchStrategy[Node] = st.integers(-9, 9).map(number) | named

    def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        pairs = st.tuples(inner, inner)
        operators = st.sampled_from(("+", "-", "*", "min", "max"))
        divisors = st.integers(-5, 5).filter(bool).map(number)
        return (
            st.builds(lambda op, two: Apply(op, two, NUMBER), operators, pairs)
            | st.builds(lambda one, by: Apply("//", (one, by), NUMBER), inner, divisors)
            | st.builds(lambda c, two: Apply("ite", (c, *two), NUMBER), truths, pairs)
        )

    return st.recursive(leaves, larger, max_leaves=8)


def truths() -> st.SearchStrategy[Node]:
    leaves: st.SearchStrategy[Node] = st.booleans().map(lambda yes: Literal(int(yes), TRUTH))
    compared = st.builds(
        lambda op, two: Apply(op, two, TRUTH),
        st.sampled_from(("==", "!=", "<", "<=", ">", ">=")),
        st.tuples(numbers(leaves), numbers(leaves)),
    )

    def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        return st.builds(
            lambda op, two: Apply(op, two, TRUTH),
            st.sampled_from(("and", "or", "implies", "==", "!=")),
            st.tuples(inner, inner),
        ) | inner.map(lambda one: Apply("not", (one,), TRUTH))

    return st.recursive(leaves | compared, larger, max_leaves=6)


def settled(node: Node, values: dict[str, int]) -> Node:
    """Return a tree with its constants replaced by their values."""
    match node:
        case Constant(name):
            return number(values[name])
        case Apply(operator, arguments, kind):
            return fold(operator, tuple(settled(each, values) for each in arguments), kind)
        case _:
            return node


@given(numbers(truths()) | truths(), st.tuples(*[st.integers(-20, 20)] * 3))
@settings(max_examples=300, deadline=None)
def test_random_trees_have_the_value_that_the_language_gives(
    node: Node,
    chosen: tuple[int, ...],
) -> None:
    values = dict(zip(NAMES, chosen, strict=True))
    expected = evaluate(settled(node, values), ())
    term = Translator(AnySize()).value(node, {})
    fixed = [(z3.Int(name), z3.IntVal(value)) for name, value in values.items()]
    found = z3.simplify(z3.substitute(term, *fixed))
    assert str(found) == (str(expected) if node.type == NUMBER else str(bool(expected)))


@pytest.mark.parametrize("by", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("one", [-7, -6, -1, 0, 1, 6, 7])
def test_quotients_are_rounded_down_as_python_does(one: int, by: int) -> None:
    assert whole(floor(z3.IntVal(one), z3.IntVal(by))) == one // by
    tree = Apply("//", (number(one), number(by)), NUMBER)
    assert whole(Translator(AnySize()).value(tree, {})) == one // by


def test_a_witness_is_the_quotient() -> None:
    n = Numbers()
    position, ratio = n.new("position"), n.new("ratio", 1)
    quotient = n.z3(entries(position, ratio))
    for one, by in ((0, 1), (7, 2), (8, 4), (3, 5)):
        given = (*n.given, n.z3(position) == one, n.z3(ratio) == by)
        assert Asking().can(*given, quotient == one // by) is Answer.YES
        assert Asking().can(*given, quotient != one // by) is Answer.NO


def test_options_are_equal_only_where_both_are_there() -> None:
    one, other = (z3.Const(name, z3.DeclareSort("Prefix")) for name in ("x", "y"))
    nothing, there = literal(0, Maybe(Prefix)), Option(z3.BoolVal(val=True), one)
    assert Asking().can(equal(nothing, there)) is Answer.NO
    assert Asking().can(z3.Not(equal(nothing, literal(0, Maybe(Prefix))))) is Answer.NO
    assert (
        Asking().can(equal(there, Option(z3.BoolVal(val=True), other)), one != other) is Answer.NO
    )


def test_an_atom_has_no_name_where_there_may_be_any_number() -> None:
    with pytest.raises(ValueError, match="has no z3 value"):
        literal(1, Atom(Prefix))


def test_what_is_executed_on_terms_is_the_same_code() -> None:
    def least(one: Any, other: Any) -> Any:
        return min(one, max(other, 0))

    n = Numbers()
    term = n.z3(on_terms(least)(n.new("one"), n.new("other") - 5))
    cases = ((3, 9), (3, 2), (0, 0))
    for one, other in cases:
        fixed = [(z3.Int("one"), z3.IntVal(one)), (z3.Int("other"), z3.IntVal(other))]
        assert whole(z3.substitute(term, *fixed)) == least(one, other - 5)
    assert max_(1, 2) == 2


@pytest.mark.parametrize("shape", list(Shape))
def test_a_symbolic_group_has_its_shape(shape: Shape) -> None:
    assert symbolic(Numbers(), shape).shape is shape


@pytest.mark.parametrize("name", ["hybrid", "graph", "tiers", "fork", "index", "prefetch"])
def test_reachable_steps_mean_in_z3_what_they_mean_in_a_run(name: str) -> None:
    """Guards, effects and properties of real states, one by one, against the readable semantics."""
    model = MODELS[name]
    states = explore(model, Limits(states=400), Event(), edges=False).states
    draw = random.Random(7)  # noqa: S311 -- the same states every time
    chosen = draw.sample(range(len(states)), 6)
    universe = Sized({s: len(model.elements(s)) for s in model.machine.sorts if s.of is None})
    z_states = States(model.machine, universe)
    look = Looking(model, universe, z_states)
    for at in chosen:
        run = Run(model, tuple(states[at]))
        fixed = look.fixed(run.state)
        for claim in (c for c in model.claims if c.kind is Kind.INVARIANT):
            found = look.claim(claim, fixed)
            expected = all(evaluate(c.condition, run.state) for c in model.cases(claim))
            assert found == expected, (claim.name, run.show())
        for step in draw.sample(model.steps, 12):
            enabled = run.refusal(step) is None
            assert look.enabled(step, fixed) == enabled, (step.label, run.show())
            if enabled:
                assert look.after(step, fixed) == run.after(step), (step.label, run.show())


def value_of(universe: Sized, cell: CellInfo, code: int) -> Any:
    """Return a cell's code as a value."""
    match cell.type:
        case Maybe(sort) if code:
            return Option(z3.BoolVal(val=True), (universe.elements(sort) or ())[code - 1])
        case kind:
            return literal(code, kind)


class Looking:
    """One model as z3 sees it, with every cell and constant put in."""

    def __init__(self, model: Any, universe: Sized, states: States) -> None:
        self.model, self.universe, self.states = model, universe, states
        self.search = Search(CACHE, universe, Asking())
        self.constants = list(self.search._settings(model)) + [
            z3.Distinct(*universe.atoms(sort)) for sort in universe.sizes
        ]

    def fixed(self, state: tuple[int, ...]) -> Any:
        """Return a solver in which every cell has its value."""
        solver = z3.Solver()
        solver.add(self.constants)
        for cell, code in zip(self.model.cells, state, strict=True):
            value = value_of(self.universe, cell, code)
            solver.add(equal(self.search._cell(self.model, cell.variable, cell.indices), value))
        assert solver.check() == z3.sat
        return solver

    def true(self, condition: Any, solver: Any) -> bool:
        """Say whether a condition follows."""
        solver.push()
        solver.add(z3.Not(condition))
        no = solver.check() == z3.unsat
        solver.pop()
        return bool(no)

    def claim(self, claim: Any, solver: Any) -> bool:
        """Say whether a property holds."""
        return self.true(z3.And(list(self.search._holds(claim))), solver)

    def names(self, step: Any) -> dict[str, Any]:
        """Return the arguments of a step."""
        return {
            bound.name: (self.universe.elements(bound.sort) or ())[code]
            for bound, code in zip(step.action.parameters, step.arguments, strict=True)
        }

    def enabled(self, step: Any, solver: Any) -> bool:
        """Say whether all guards of a step are true."""
        names = self.names(step)
        guards = [self.states.here.value(g.condition, names) for g in step.action.guards]
        return self.true(z3.And(guards), solver)

    def after(self, step: Any, solver: Any) -> tuple[int, ...]:
        """Return the state behind a step."""
        view = self.states.behind(step.action, self.names(step))
        found: list[int] = []
        for cell in self.model.cells:
            over = self.model.variables[cell.variable].over
            indices = tuple(
                (self.universe.elements(sort) or ())[code]
                for sort, code in zip(over, cell.indices, strict=True)
            )
            value = view(cell.variable, indices)
            options = range(cell.low, cell.high + 1)
            same = (
                self.true(equal(value, value_of(self.universe, cell, c)), solver) for c in options
            )
            found.append(next(code for code, yes in zip(options, same, strict=True) if yes))
        return tuple(found)


def test_instances_are_not_more_than_what_they_are_instances_of() -> None:
    """What no state satisfies is not satisfied by instances, and what some does, is."""
    induction = Induction(CACHE, Asking())
    solver = z3.Solver()
    solver.add(induction._any.facts)
    assert solver.check() == z3.sat
    assert isinstance(induction._any, Grounding)


def test_small_models_come_first_in_the_search_for_a_counterexample() -> None:
    found = small_models(CACHE, MODELS)
    sizes = [len(model.cells) for model in found]
    assert found[0].name == "hybrid"
    assert sizes == sorted(sizes)
    assert SIZES[0] == (1, 1)
