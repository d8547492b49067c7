"""What the language means: the same in its interpreter, in generated Python, and in columns."""

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fivestate.checker.engines.source import Writer
from fivestate.checker.truth import Columns, column
from fivestate.spec.language import (
    BOOL,
    EVERY,
    NOTHING,
    Array,
    Machine,
    Model,
    Run,
    Scalar,
    Size,
    Sort,
    State,
    Term,
    action,
    count,
    each,
    exists,
    forall,
    implies,
    invariant,
    ite,
    max_,
    maybe,
    min_,
    require,
    within,
)
from fivestate.spec.language.ground import MEANING, evaluate
from fivestate.spec.language.terms import binding
from fivestate.spec.language.trees import Bound, Literal, Node, Quantified, walk

LENGTH = Size("length", "how many slots there are", 0, 9)


class Hue(Enum):
    """A colour."""

    RED = 0
    GREEN = 1
    BLUE = 2


class Box(Sort, letter="b"):
    """A box."""


class Slot(Sort, letter="i", low=1, high=LENGTH):
    """A slot; there may be none."""


class Yard(State):
    """Variables of every type."""

    x = Scalar("a number", of=within(-5, 5), initial=0)
    y = Scalar("another", of=within(-5, 5), initial=-3)
    on = Scalar("a flag", of=BOOL, initial=False)
    hue = Scalar("a colour", of=Hue, initial=Hue.GREEN)
    held = Scalar("a box", of=maybe(Box), initial=NOTHING)
    load = Array("a number of each box", Box, of=within(-5, 5), initial=2)
    full = Array("a flag of each box", Box, of=BOOL, initial=True)
    mark = Array("a flag of each slot", Slot, of=BOOL, initial=False)


@action("A-1", state=EVERY)
def swap(s: Yard) -> None:
    """Swap the two numbers."""
    s.x, s.y = s.y, s.x


@action("A-2", state=EVERY)
def take(s: Yard, b: Box) -> None:
    """Take a box and paint it."""
    require(free=s.held == NOTHING, full=s.full[b])
    s.held = b
    s.hue = ite(s.hue == Hue.GREEN, Hue.BLUE, Hue.RED)
    s.full[b] = False


@action("A-3", state=EVERY)
def shift(s: Yard, b: Box) -> None:
    """Give every box what ``b`` has, and ``b`` what ``x`` is."""
    for c in each(Box):
        s.load[c] = ite(c == b, s.x, s.load[b])
    s.on = ~s.on


@action("A-4", state=EVERY)
def tick(s: Yard, i: Slot) -> None:
    """Mark a slot whose predecessors are marked."""
    require(next=forall(Slot, lambda j: implies(j < i, s.mark[j])) & ~s.mark[i])
    s.mark[i] = True
    s.x = s.x + i


@invariant("I-1")
def two_full(s: Yard) -> Term:
    """At most one box is taken."""
    return count(Box, lambda b: ~s.full[b]) <= 1


YARD = Machine("yard", Yard, (swap, take, shift, tick), (two_full,))


def yard(boxes: int, length: int) -> Model:
    return Model(f"yard-{boxes}-{length}", "A yard.", YARD, {"box": boxes, "length": length})


def test_effects_are_simultaneous() -> None:
    run = Run(yard(2, 0))
    run.take("swap")
    assert (run.value("x"), run.value("y")) == ("-3", "0")
    run.take("shift", "b0")
    assert (run.value("load[b0]"), run.value("load[b1]")) == ("-3", "2")
    run.take("swap")
    assert (run.value("x"), run.value("y")) == ("0", "-3")


def test_a_choice_among_members_and_an_element_that_may_be_nothing() -> None:
    run = Run(yard(2, 0))
    assert (run.value("held"), run.value("hue")) == ("NOTHING", "GREEN")
    run.take("take", "b1")
    assert (run.value("held"), run.value("hue")) == ("b1", "BLUE")
    assert (run.value("full[b0]"), run.value("full[b1]")) == ("True", "False")


def test_quantifiers_stay_nodes_and_the_tree_is_that_of_every_size() -> None:
    small, large = yard(1, 1), yard(3, 4)
    (traced,) = (a for a in small.actions if a.name == "tick")
    assert traced in large.actions
    (guard,) = traced.guards
    (quantified,) = (n for n in walk(guard.condition) if isinstance(n, Quantified))
    assert (quantified.quantifier, quantified.bound.sort) == ("forall", Slot)
    assert small.claims == large.claims
    grounded = [node for s in large.steps for _, g in s.guards for node in walk(g)]
    assert not any(isinstance(node, Quantified | Bound) for node in grounded)
    assert [len(model.steps) for model in (small, large)] == [1 + 1 + 1 + 1, 1 + 3 + 3 + 4]


@pytest.mark.parametrize("length", [0, 1, 4])
def test_numbers_of_a_sort_run_from_low_to_high_and_may_be_none(length: int) -> None:
    model = yard(1, length)
    assert model.elements(Slot) == tuple(range(1, length + 1))
    assert [c.name for c in model.cells if c.variable == "mark"] == [
        f"mark[{number}]" for number in range(1, length + 1)
    ]
    none = ground(model, lambda s, _: exists(Slot, lambda i: s.mark[i] | ~s.mark[i]))
    every = ground(model, lambda s, _: forall(Slot, lambda i: s.mark[i] & ~s.mark[i]))
    many = ground(model, lambda s, _: count(Slot, lambda i: s.mark[i] | ~s.mark[i]))
    assert [evaluate(node, model.initial) for node in (none, every, many)] == [
        int(length > 0),
        int(length == 0),
        length,
    ]


def test_a_number_of_a_sort_is_a_number() -> None:
    run = Run(yard(1, 2))
    run.take("tick", "1")
    run.take("tick", "2")
    assert run.value("x") == "3"


def ground(model: Model, body: Callable[[Any, Any], Any]) -> Node:
    """Return a condition or number over a state and a box, ground for box ``b0``."""
    with binding(Box, "b") as box:
        term: Term = body(Yard(), box)
    return model.grounder.ground(term.node, {"b": 0})


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [(7, 2, 3), (-7, 2, -4), (7, -2, -4), (-7, -2, 3), (-1, 5, -1), (0, -5, 0), (4, 2, 2)],
)
def test_division_rounds_down(dividend: int, divisor: int, quotient: int) -> None:
    model = yard(1, 0)
    state = values(model, {"x": dividend})
    node = ground(model, lambda s, _: (s.x + 0) // divisor)
    assert readings(model, node, [state]) == [[quotient]] * 3
    literal = ground(model, lambda s, _: (s.x * 0 + dividend) // divisor)
    assert readings(model, literal, [state]) == [[quotient]] * 3


@pytest.mark.parametrize("held", [None, 0, 1])
def test_nothing_is_no_element(held: int | None) -> None:
    model = yard(2, 0)
    state = values(model, {"held": 0 if held is None else held + 1})
    asked = {
        "nothing": ground(model, lambda s, _: s.held == NOTHING),
        "something": ground(model, lambda s, _: s.held != NOTHING),
        "b0": ground(model, lambda s, b: s.held == b),
        "b0 from the left": ground(model, lambda s, b: b == s.held),
        "one of them": ground(model, lambda s, _: exists(Box, lambda b: s.held == b)),
        "chosen": ground(model, lambda s, b: ite(s.x == 0, s.held, b) == b),
        "chosen else": ground(model, lambda s, b: ite(s.x != 0, b, s.held) == b),
        "chosen nothing": ground(model, lambda s, b: ite(s.x == 0, NOTHING, b) == s.held),
    }
    truths = {what: readings(model, node, [state]) for what, node in asked.items()}
    expected = {
        "nothing": held is None,
        "something": held is not None,
        "b0": held == 0,
        "b0 from the left": held == 0,
        "one of them": held is not None,
        "chosen": held == 0,
        "chosen else": held == 0,
        "chosen nothing": held is None,
    }
    assert truths == {what: [[int(truth)]] * 3 for what, truth in expected.items()}


Tree = tuple[Any, ...]
"""An expression as plain data: an operator's name and what it is applied to."""

NUMBERS = st.integers(-2, 2)
ATOM = st.integers(0, 3)
"""Which of the boxes in scope, counted from the innermost."""


NUMBER_LEAVES = st.one_of(
    st.tuples(st.just("number"), NUMBERS),
    st.tuples(st.sampled_from(["x", "y"])),
    st.tuples(st.just("load"), ATOM),
)
TRUTH_LEAVES = st.one_of(
    st.tuples(st.just("on")),
    st.tuples(st.sampled_from(["full", "held", "same"]), ATOM),
    st.tuples(st.just("nothing")),
    st.tuples(st.just("hue"), st.sampled_from(Hue)),
)


def numbers(number: Any, truth: Any) -> Any:
    infix = st.sampled_from(["+", "-", "*", "min", "max"])
    return st.one_of(
        st.tuples(infix, number, number),
        st.tuples(st.just("//"), number, NUMBERS.filter(bool)),
        st.tuples(st.just("ite"), truth, number, number),
        st.tuples(st.just("count"), truth),
    )


def truths_of(number: Any, truth: Any) -> Any:
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.tuples(compare, number, number),
        st.tuples(compare, NUMBER_LEAVES, NUMBER_LEAVES),
        st.tuples(st.sampled_from(["and", "or", "implies", "==", "!="]), truth, truth),
        st.tuples(st.just("not"), truth),
        st.tuples(st.just("ite"), truth, truth, truth),
        st.tuples(st.sampled_from(["forall", "exists"]), truth),
    )


def grown(depth: int) -> tuple[Any, Any]:
    """Return strategies for numbers and for truth values, at most ``depth`` operators deep."""
    number, truth = NUMBER_LEAVES, TRUTH_LEAVES
    for _ in range(depth):
        number, truth = (
            st.one_of(NUMBER_LEAVES, numbers(number, truth)),
            st.one_of(TRUTH_LEAVES, truths_of(number, truth)),
        )
    return number, truth


TREES = st.one_of(numbers(*grown(3)), truths_of(*grown(3)))

INFIX: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
OURS: dict[str, Callable[..., Any]] = {
    **INFIX,
    "min": min_,
    "max": max_,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: ~a,
    "implies": implies,
    "ite": ite,
}
PYTHONS: dict[str, Callable[..., Any]] = {
    **INFIX,
    "min": min,
    "max": max,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "implies": lambda a, b: b if a else True,
    "ite": lambda a, b, c: b if a else c,
}
SUMMARIES: dict[str, Any] = {"forall": all, "exists": any, "count": sum}
QUANTIFIERS: dict[str, Any] = {"forall": forall, "exists": exists, "count": count}


def ours(tree: Tree, s: Any, scope: tuple[Any, ...]) -> Any:
    """Write the tree in the language."""
    match tree:
        case ("number", value):
            return s.x * 0 + value
        case ("x" | "y" | "on" as name,):
            return getattr(s, name)
        case ("load" | "full" as name, at):
            return getattr(s, name)[scope[at % len(scope)]]
        case ("held", at):
            return s.held == scope[at % len(scope)]
        case ("same", at):
            return scope[0] == scope[at % len(scope)]
        case ("nothing",):
            return s.held == NOTHING
        case ("hue", member):
            return s.hue == member
        case ("forall" | "exists" | "count" as name, body):
            return QUANTIFIERS[name](Box, lambda b: ours(body, s, (b, *scope)))
        case ("//", inner, int(divisor)):
            return ours(inner, s, scope) // divisor
        case (name, *arguments):
            return OURS[name](*(ours(argument, s, scope) for argument in arguments))
    raise AssertionError(tree)


def plain(tree: Tree, state: dict[str, Any], scope: tuple[int, ...]) -> Any:
    """Compute the tree as anybody who knows Python would."""
    match tree:
        case ("number", value):
            return value
        case ("x" | "y" | "on" as name,):
            return state[name]
        case ("load" | "full" as name, at):
            return state[name][scope[at % len(scope)]]
        case ("held", at):
            return state["held"] == scope[at % len(scope)]
        case ("same", at):
            return scope[0] == scope[at % len(scope)]
        case ("nothing",):
            return state["held"] is None
        case ("hue", member):
            return state["hue"] is member
        case ("forall" | "exists" | "count" as name, body):
            truths = [bool(plain(body, state, (b, *scope))) for b in range(len(state["load"]))]
            return SUMMARIES[name](truths)
        case ("//", inner, int(divisor)):
            return plain(inner, state, scope) // divisor
        case (name, *arguments):
            return PYTHONS[name](*(plain(argument, state, scope) for argument in arguments))
    raise AssertionError(tree)


def values(model: Model, given: dict[str, int]) -> tuple[int, ...]:
    """Return the first state with some codes replaced, whether or not they are in range."""
    return tuple(
        given.get(cell.name, code) for cell, code in zip(model.cells, model.first, strict=True)
    )


def readings(model: Model, node: Node, states: list[tuple[int, ...]]) -> list[list[int]]:
    """Return what the interpreter, generated Python and the columns make of ``node``."""
    source = Writer(model).expression(node)
    names = Writer(model).names
    generated = [int(eval(source, dict(zip(names, s, strict=True)))) for s in states]  # noqa: S307
    interpreted = [evaluate(node, state) for state in states]
    columns = column(node, Columns(states))
    assert columns.dtype == np.int64
    return [interpreted, generated, columns.tolist()]


@st.composite
def states_of(draw: Any, boxes: int) -> dict[str, Any]:
    return {
        "x": draw(NUMBERS),
        "y": draw(NUMBERS),
        "on": draw(st.booleans()),
        "hue": draw(st.sampled_from(Hue)),
        "held": draw(st.none() | st.integers(0, boxes - 1)),
        "load": draw(st.lists(NUMBERS, min_size=boxes, max_size=boxes)),
        "full": draw(st.lists(st.booleans(), min_size=boxes, max_size=boxes)),
    }


def codes(state: dict[str, Any]) -> tuple[int, ...]:
    held = 0 if state["held"] is None else 1 + state["held"]
    first = (state["x"], state["y"], int(state["on"]), list(Hue).index(state["hue"]), held)
    return (*first, *state["load"], *map(int, state["full"]))


SIZES = {boxes: yard(boxes, 0) for boxes in (1, 2, 3)}
SAMPLED = settings(
    max_examples=400,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def agreement(tree: Tree, data: st.DataObject) -> None:
    """The language computes what Python does, in each of its readers."""
    boxes = data.draw(st.sampled_from(sorted(SIZES)), "boxes")
    states = data.draw(st.lists(states_of(boxes), min_size=1, max_size=4), "states")
    model = SIZES[boxes]
    node = ground(model, lambda s, b: ours(tree, s, (b,)))
    expected = [int(plain(tree, state, (0,))) for state in states]
    assert readings(model, node, [codes(state) for state in states]) == [expected] * 3


def test_every_reader_computes_what_python_does() -> None:
    SAMPLED(given(TREES, st.data())(agreement))()


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("//", lambda a, b: int(a / b)),
        ("implies", lambda a, b: int(bool(a) and bool(b))),
        ("min", lambda *given: max(given)),
        ("<=", lambda a, b: int(a < b)),
        ("just", lambda a: a),
    ],
)
def test_the_comparison_sees_an_operator_that_means_something_else(
    operator: str,
    wrong: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(MEANING, operator, wrong)
    unshrunk = settings(SAMPLED, phases=[Phase.generate], print_blob=False)
    with pytest.raises(AssertionError):
        unshrunk(given(TREES, st.data())(agreement))()


def test_what_constants_settle_is_folded_away() -> None:
    model = yard(2, 3)
    settled = ground(model, lambda s, _: implies(LENGTH > 3, s.on) & (s.on | (LENGTH == 3)))
    assert isinstance(settled, Literal)
    assert settled.value == 1
    left = ground(model, lambda s, _: (LENGTH == 3) & s.on)
    assert left == ground(model, lambda s, _: s.on)
