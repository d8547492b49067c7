"""Misuse of the language raises, and the message says what to write instead.

Each case comes as what is wrong, the advice, and what the advice asks for: following it helps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from fivestate.spec.language import (
    BOOL,
    EVERY,
    NOTHING,
    Array,
    Machine,
    Model,
    Refinement,
    Relation,
    Scalar,
    Sort,
    SpecError,
    State,
    Table,
    Term,
    Ways,
    action,
    each,
    exists,
    forall,
    invariant,
    ite,
    max_,
    may,
    maybe,
    min_,
    require,
    step,
    took,
    ways,
    within,
    witness,
)
from fivestate.spec.language.properties import PropertySource
from fivestate.spec.language.settings import Setting
from fivestate.spec.language.tracing import ActionSource


class Colour(Enum):
    """A colour."""

    RED = 0
    GREEN = 1


class Taste(Enum):
    """Another enum with as many members."""

    SWEET = 0
    SOUR = 1


class Box(Sort, letter="b"):
    """A box."""


class Bag(Sort, letter="a"):
    """A bag."""


class Lid(Sort, letter="l", of=Colour):
    """A lid, one of each colour."""


class Slot(Sort, letter="i", low=0, high=3):
    """A slot."""


class Shelf(Sort, letter="k", low=0, high=9):
    """A shelf."""


ROOM = Table("room", "how much goes into a lid", Lid, low=0, high=3)
FITS = Relation("fits", "the lids go together", Lid, Lid)


class Store(State):
    """A store of boxes."""

    few = Scalar("a number", of=within(0, 3), initial=0)
    many = Scalar("another number", of=within(0, 9), initial=0)
    on = Scalar("a flag", of=BOOL, initial=False)
    hue = Scalar("a colour", of=Colour, initial=Colour.RED)
    held = Scalar("a box", of=maybe(Box), initial=NOTHING)
    full = Array("a flag of each box", Box, of=BOOL, initial=False)
    shut = Array("a flag of each box and lid", Box, Lid, of=BOOL, initial=False)
    mark = Array("a flag of each slot", Slot, of=BOOL, initial=False)


@dataclass(frozen=True)
class Here:
    """What an action's body has in hand; untyped, or mypy and pyright would find the misuse."""

    s: Any
    b: Any
    g: Any
    i: Any
    k: Any
    a: Any

    def use_all(self) -> None:
        """Read every parameter, so that none is unused."""
        everything = (self.b == self.b) & (self.g == self.g) & (self.i == self.i)
        require(used=everything & (self.k == self.k) & (self.a == self.a))


def acting(body: Callable[[Here], object]) -> ActionSource:
    """Make an action of ``body``; a condition it returns is a guard, and then it sets a flag."""

    def act(s: Store, b: Box, g: Lid, i: Slot, k: Shelf, a: Bag) -> None:  # noqa: PLR0913, PLR0917
        """Act."""
        here = Here(s, b, g, i, k, a)
        here.use_all()
        condition: Any = body(here)
        if condition is not None:
            require(asked=condition)
            s.full[b] = True

    return action("A-1", state=EVERY)(act)


def put(variable: str, value: Any) -> Callable[[Here], None]:
    """Return a body that assigns a variable with one cell."""
    return lambda x: setattr(x.s, variable, value(x) if callable(value) else value)


Body = Callable[[Here], object]

EXPRESSIONS: dict[str, tuple[Body, str, Body]] = {
    "and": (lambda x: x.s.on and x.s.full[x.b], "write & ", lambda x: x.s.on & x.s.full[x.b]),
    "or": (lambda x: x.s.on or x.s.full[x.b], "write & | ~ for", lambda x: x.s.on | x.s.full[x.b]),
    "not": (lambda x: not x.s.on, "~ for and/or/not", lambda x: ~x.s.on),
    "if": (
        lambda x: x.s.on if x.s.full[x.b] else x.s.mark[x.i],
        r"ite\(\) or implies\(\) for if",
        lambda x: ite(x.s.full[x.b], x.s.on, x.s.mark[x.i]),
    ),
    "chained": (
        lambda x: 1 <= x.s.few <= 2,
        r"\(a <= b\) & \(b <= c\) for a <= b <= c",
        lambda x: (x.s.few >= 1) & (x.s.few <= 2),
    ),
    "no parentheses": (
        lambda x: x.s.few == 1 & x.s.many == 2,
        r"put comparisons in parentheses, \(a == b\) & \(c == d\)",
        lambda x: (x.s.few == 1) & (x.s.many == 2),
    ),
    "in": (
        lambda x: x.s.hue in (Colour.RED, Colour.GREEN),
        r"is_in\(\) for in",
        lambda x: x.s.hue.is_in(Colour.RED, Colour.GREEN),
    ),
    "in a term": (
        lambda x: Colour.RED in x.s.hue,
        r"write value.is_in\(a, b\)",
        lambda x: x.s.hue.is_in(Colour.RED),
    ),
    "in nothing": (
        lambda x: x.s.hue.is_in(),
        "at least one value",
        lambda x: x.s.hue.is_in(Colour.RED),
    ),
    "iteration": (
        lambda x: [slot for slot in x.s.few],  # noqa: C416 -- the misuse
        "write 'for g in each",
        lambda x: forall(Slot, lambda i: x.s.mark[i]),
    ),
    "max": (
        lambda x: max(x.s.few, 2) > 2,
        r"max_\(\) and min_\(\)",
        lambda x: max_(x.s.few, 2) > 2,
    ),
    "min": (
        lambda x: min(2, x.s.few) > 1,
        r"max_\(\) and min_\(\)",
        lambda x: min_(2, x.s.few) > 1,
    ),
    "unknown variable": (lambda x: x.s.ful[x.b], "did you mean 'full'", lambda x: x.s.full[x.b]),
    "no index": (lambda x: x.s.full == 1, r"write name\[...\]", lambda x: x.s.full[x.b]),
    "no index, negated": (lambda x: ~x.s.full, r"write name\[...\]", lambda x: ~x.s.full[x.b]),
    "no index, truth": (
        lambda x: x.s.full and x.s.on,
        r"write name\[...\]",
        lambda x: x.s.full[x.b] & x.s.on,
    ),
    "no index of a table": (lambda _: ROOM > 1, r"write name\[...\]", lambda x: ROOM[x.g] > 1),
    "no index of a relation": (
        lambda _: FITS == True,
        r"write name\[...\]",
        lambda x: FITS[x.g, x.g] == True,
    ),
    "too few indices": (
        lambda x: x.s.shut[x.b],
        "shut is indexed by Box, Lid, and 1 indices are given",
        lambda x: x.s.shut[x.b, x.g],
    ),
    "too many indices": (
        lambda x: x.s.full[x.b, x.g],
        "full is indexed by Box, and 2 indices are given",
        lambda x: x.s.full[x.b],
    ),
    "index of another sort": (
        lambda x: x.s.full[x.a],
        r"full\[...\]: an element of Box is wanted here, and an element of Bag is given",
        lambda x: x.s.full[x.b],
    ),
    "indices the wrong way round": (
        lambda x: x.s.shut[x.g, x.b],
        r"shut\[...\]: an element of Box is wanted here, and a member of Colour is given",
        lambda x: x.s.shut[x.b, x.g],
    ),
    "number of another sort": (
        lambda x: x.s.mark[x.k],
        r"mark\[...\] wants an element of Slot, not of Shelf",
        lambda x: x.s.mark[x.i] & (x.i == x.k),
    ),
    "member of another enum": (
        lambda x: x.s.shut[x.b, Taste.SOUR],
        r"shut\[...\]: a member of Colour is wanted here, and <Taste.SOUR: 1> is given",
        lambda x: x.s.shut[x.b, Colour.GREEN],
    ),
    "computed index": (
        lambda x: x.s.mark[x.s.few],
        r"mark\[...\] is indexed by a computed value: take it as a parameter and require it",
        lambda x: x.s.mark[x.i] & (x.i == x.s.few),
    ),
    "is": (
        lambda x: x.s.held is NOTHING,
        r"False whatever the state is: drop it, or compare with == \(not 'is'\)",
        lambda x: x.s.held == NOTHING,
    ),
    "constant guard": (lambda _: True, "whatever the state is: drop it", lambda x: x.s.on),
    "number as a guard": (
        lambda x: x.s.few,
        "'asked': a truth value is wanted here, and a whole number is given",
        lambda x: x.s.few > 0,
    ),
    "number as an operand": (
        lambda x: x.s.few & x.s.on,
        "a truth value is wanted here, and a whole number is given",
        lambda x: (x.s.few > 0) & x.s.on,
    ),
    "flag in a sum": (
        lambda x: x.s.few + x.s.on > 1,
        "a whole number is wanted here, and a truth value is given",
        lambda x: x.s.few + ite(x.s.on, 1, 0) > 1,
    ),
    "colour as a number": (
        lambda x: x.s.hue == 1,
        "a member of Colour is wanted here, and 1 is given",
        lambda x: x.s.hue == Colour.GREEN,
    ),
    "flag as a number": (
        lambda x: x.s.on == 1,
        "a truth value is wanted here, and 1 is given",
        lambda x: x.s.on == True,
    ),
    "order of colours": (
        lambda x: x.s.hue < Colour.GREEN,
        "a whole number is wanted here, and a member of Colour is given",
        lambda x: x.s.hue != Colour.GREEN,
    ),
    "an element is never nothing": (
        lambda x: x.b == NOTHING,
        "an element of Box is wanted here, and <Nothing.NOTHING: 0> is given",
        lambda x: x.s.held == NOTHING,
    ),
    "elements of two sorts": (
        lambda x: x.a == x.b,
        "an element of Bag is wanted here, and an element of Box is given",
        lambda x: x.b == x.s.held,
    ),
    "choice of two types": (
        lambda x: ite(x.s.on, x.s.few, x.s.hue) == 1,
        "a whole number is wanted here, and a member of Colour is given",
        lambda x: ite(x.s.on, x.s.few, x.s.many) == 1,
    ),
    "condition of a quantifier": (
        lambda x: forall(Slot, lambda i: i + x.s.few),
        "a truth value is wanted here, and a whole number is given",
        lambda x: forall(Slot, lambda i: i + x.s.few > 0),
    ),
}


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_a_wrong_expression_raises_with_advice_that_helps(case: str) -> None:
    wrong, advice, right = EXPRESSIONS[case]
    with pytest.raises(SpecError, match=advice):
        acting(wrong).trace(Store)
    acting(right).trace(Store)


def twice(x: Here) -> None:
    x.s.full[x.b] = True
    x.s.full[x.b] = x.s.on


def once(x: Here) -> None:
    x.s.full[x.b] = x.s.on
    x.s.mark[x.i] = x.s.on


def guard_after_effect(x: Here) -> None:
    x.s.full[x.b] = True
    require(on=x.s.on)


def guard_before_effect(x: Here) -> None:
    require(on=x.s.on)
    x.s.full[x.b] = True


def same_guard_twice(x: Here) -> None:
    require(on=x.s.on)
    require(on=~x.s.full[x.b])
    x.s.full[x.b] = True


def two_guards(x: Here) -> None:
    require(on=x.s.on)
    require(empty=~x.s.full[x.b])
    x.s.full[x.b] = True


def guard_inside_each(x: Here) -> None:
    for g in each(Lid):
        require(shut=x.s.shut[x.b, g])
        x.s.shut[x.b, g] = False


def guard_for_all(x: Here) -> None:
    require(shut=forall(Lid, lambda g: x.s.shut[x.b, g]))
    for g in each(Lid):
        x.s.shut[x.b, g] = False


def each_without_its_element(x: Here) -> None:
    for _ in each(Lid):
        x.s.full[x.b] = True


def whole_array(x: Here) -> None:
    x.s.full = True


EFFECTS: dict[str, tuple[Body, str, Body]] = {
    "unknown variable": (put("ful", True), "did you mean 'full'", put("on", True)),
    "whole array": (whole_array, r"full is indexed by Box: assign to full\[...\]", once),
    "number to a flag": (put("on", 1), "on: a truth value is wanted", put("on", True)),
    "flag to a number": (put("few", True), "few: a whole number is wanted", put("few", 1)),
    "other enum": (put("hue", Taste.SOUR), "hue: a member of Colour", put("hue", Colour.GREEN)),
    "other sort": (
        put("held", lambda x: x.a),
        "held: an element of Box or NOTHING is wanted here, and an element of Bag is given",
        put("held", lambda x: x.b),
    ),
    "nothing to a number": (
        put("few", NOTHING),
        "few: a whole number is wanted here",
        put("held", NOTHING),
    ),
    "above its range": (put("few", 4), r"few = 4 is out of its range 0\.\.3", put("few", 3)),
    "below its range": (put("few", -1), r"few = -1 is out of its range 0\.\.3", put("few", 0)),
    "one cell twice": (twice, "full is assigned twice: effects are simultaneous, combine", once),
    "guard after an effect": (
        guard_after_effect,
        r"guard 'on' comes after an effect: put require\(\) first",
        guard_before_effect,
    ),
    "two guards of one name": (
        same_guard_twice,
        "two guards are called 'on': give each its own name",
        two_guards,
    ),
    "guard inside each": (guard_inside_each, r"put require\(\) first", guard_for_all),
    "each without its element": (
        each_without_its_element,
        "the loop's element must be one of the indices",
        guard_for_all,
    ),
    "no effect": (lambda x: require(on=x.s.on), "has no effect: an action changes", once),
}


@pytest.mark.parametrize("case", EFFECTS)
def test_a_wrong_effect_or_guard_raises_with_advice_that_helps(case: str) -> None:
    wrong, advice, right = EFFECTS[case]
    with pytest.raises(SpecError, match=advice):
        acting(wrong).trace(Store)
    acting(right).trace(Store)


def test_an_unused_parameter_is_refused() -> None:
    def fill(s: Store, b: Box, a: Bag) -> None:
        """Fill a box."""
        del a
        s.full[b] = True

    with pytest.raises(SpecError, match="fill: parameter 'a' is not used: drop it"):
        action("A-1", state=EVERY)(fill).trace(Store)


@pytest.mark.parametrize("annotations", [{}, {"b": int}, {"b": Colour}, {"b": State}])
def test_a_parameter_needs_a_sort(annotations: dict[str, Any]) -> None:
    def fill(s: Store, b: Any) -> None:
        """Fill a box."""
        s.full[b] = True

    fill.__annotations__ = annotations
    with pytest.raises(SpecError, match="fill: annotate parameter 'b' with its sort"):
        action("A-1", state=EVERY)(fill).trace(Store)
    fill.__annotations__ = {"b": Box}
    action("A-1", state=EVERY)(fill).trace(Store)


@pytest.mark.parametrize("text", [None, "", "Fill", "Fill a box\n\nand say why."])
def test_the_docstring_is_normative_so_it_has_to_be_there(text: str | None) -> None:
    def fill(s: Store, b: Box) -> None:
        s.full[b] = True

    fill.__doc__ = text
    with pytest.raises(SpecError, match="fill needs a docstring whose first paragraph is one sent"):
        action("A-1", state=EVERY)(fill).trace(Store)
    fill.__doc__ = "Fill a\n    box.\n\n    Why."
    traced = action("A-1", state=EVERY)(fill).trace(Store)
    assert (traced.sentence, traced.reasons) == ("Fill a box.", "Why.")


def test_the_declared_state_names_a_parameter() -> None:
    def shut(s: Store, b: Box, g: Lid) -> None:
        """Shut a box."""
        s.shut[b, g] = True

    with pytest.raises(SpecError, match="shut declares state='lid', which is not one of its param"):
        action("A-1", state="lid")(shut).trace(Store)
    assert action("A-1", state="g")(shut).trace(Store).state == "g"


@pytest.mark.parametrize("call", [lambda: require(x=True), lambda: list(each(Box))])
def test_guards_and_loops_belong_into_an_action(call: Callable[[], object]) -> None:
    with pytest.raises(SpecError, match="belongs in the body of an action"):
        call()


def a_property(condition: Callable[[Store], Any]) -> PropertySource:
    def claimed(s: Store) -> Term:
        """It is so."""
        result: Term = condition(s)
        return result

    return invariant("I-1")(claimed)


def assigns(s: Store) -> Term:
    s.on = True
    return s.on


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        (assigns, "on is assigned in a property: a property only reads"),
        (lambda s: s.held is NOTHING, r"claimed is False whatever the state is: .* with == \(not"),
        (lambda s: s.few, "a truth value is wanted here, and a whole number is given"),
        (lambda s: require(on=s.on), "belongs in the body of an action"),
    ],
)
def test_a_property_reads_and_says_something(
    condition: Callable[[Store], Any],
    advice: str,
) -> None:
    with pytest.raises(SpecError, match=advice):
        a_property(condition).trace(Store)
    a_property(lambda s: s.held == NOTHING).trace(Store)


def test_took_needs_an_action() -> None:
    with pytest.raises(SpecError, match="at least one action"):
        took()


def test_only_a_witness_asks_for_several_ways() -> None:
    def claimed(s: Store) -> Ways:
        """It is so, in two ways."""
        return ways(on=s.on, off=~s.on)

    with pytest.raises(SpecError, match=r"claimed is no witness: only that may ask for several"):
        invariant("I-1")(claimed).traces(Store)  # type: ignore[arg-type]  # that is the mistake
    assert [each.name for each in witness("W-1")(claimed).traces(Store)] == [
        "claimed_on",
        "claimed_off",
    ]
    with pytest.raises(SpecError, match="claimed says 2 things: one is wanted here"):
        witness("W-1")(claimed).trace(Store)


class Pair(State):
    """Two flags of each box."""

    one = Array("a flag", Box, Lid, of=BOOL, initial=False)
    two = Array("another", Box, Lid, of=BOOL, initial=False)


@action("A-1", state="g")
def swap(s: Pair, b: Box, g: Lid) -> None:
    """Swap the two."""
    require(differ=s.one[b, g] != s.two[b, g])
    s.one[b, g], s.two[b, g] = s.two[b, g], s.one[b, g]


@action("A-2", state="g")
def clear(s: Pair, b: Box, g: Lid) -> None:
    """Clear one."""
    s.one[b, g] = False


@invariant("I-1")
def some(s: Pair, b: Box) -> Term:
    """It says something."""
    return exists(Lid, lambda g: s.one[b, g] | s.two[b, g])


@step("I-1")
def cleared(before: Pair, after: Pair) -> Term:
    """It speaks of an action."""
    del before, after
    return ~took(clear)


def test_a_variable_is_read_and_written() -> None:
    class More(Pair):
        """A variable too many."""

        three = Scalar("a third", of=BOOL, initial=False)

    @action("A-3", state=EVERY)
    def drop(s: More) -> None:
        """Drop it."""
        s.three = False

    @invariant("I-2")
    def third(s: More) -> Term:
        """It is."""
        return s.three

    Machine("pair", More, (swap, clear, drop), (some, third))
    with pytest.raises(SpecError, match="variable 'three' never changes: make it a constant"):
        Machine("pair", More, (swap, clear), (some, third))
    with pytest.raises(SpecError, match="variable 'three' is never read: drop it or use it"):
        Machine("pair", More, (swap, clear, drop), (some,))


def test_names_are_given_once() -> None:
    with pytest.raises(SpecError, match="two entries are the action 'swap': each has its own name"):
        Machine("pair", Pair, (swap, clear, swap), (some,))
    with pytest.raises(SpecError, match="two entries are the property 'some'"):
        Machine("pair", Pair, (swap, clear), (some, some))


def test_took_is_asked_of_steps_that_the_machine_has() -> None:
    @invariant("I-2")
    def vacuous(s: Pair) -> Term:
        """It is never asked of a state."""
        del s
        return ~took(clear)

    Machine("pair", Pair, (swap, clear), (some, cleared))
    with pytest.raises(SpecError, match=r"asks took\(clear\), which is not in NEXT: add it"):
        Machine("pair", Pair, (swap,), (some, cleared))
    with pytest.raises(SpecError, match=r"vacuous is no step property: only that may ask took"):
        Machine("pair", Pair, (swap, clear), (some, vacuous))


def test_may_is_asked_by_witnesses_of_actions_that_the_machine_has() -> None:
    @witness("P-1")
    def clears(s: Pair, b: Box, g: Lid) -> Term:
        """One may be cleared."""
        del s
        return may(clear, b, g)

    @invariant("I-2")
    def always(s: Pair, b: Box, g: Lid) -> Term:
        """One may always be cleared."""
        del s
        return may(clear, b, g)

    Machine("pair", Pair, (swap, clear), (some, clears))
    with pytest.raises(SpecError, match=r"asks may\(clear\), which is not in NEXT: add it"):
        Machine("pair", Pair, (swap,), (some, clears))
    with pytest.raises(SpecError, match=r"always is no witness: only that may ask may\(\)"):
        Machine("pair", Pair, (swap, clear), (some, always))


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ((), "clear takes Box, Lid, and 0 arguments are given"),
        ((Colour.RED, Colour.RED), "an element of Box is wanted here"),
    ],
)
def test_may_is_given_what_the_action_takes(arguments: tuple[Any, ...], advice: str) -> None:
    with pytest.raises(SpecError, match=advice):
        may(clear, *arguments)


def test_an_action_writes_only_cells_of_the_state_it_declares() -> None:
    @action("A-3", state="g")
    def stray(s: Pair, b: Box, g: Lid) -> None:
        """Write a cell of another state."""
        require(one=s.one[b, g])
        s.two[b, Colour.RED] = True

    @action("A-4", state=Colour.RED)
    def wrong(s: Pair, b: Box) -> None:
        """Write a cell of another state, by name."""
        s.two[b, Colour.GREEN] = True

    @action("A-5", state=EVERY)
    def both(s: Pair, b: Box) -> None:
        """Write the cells of all."""
        for g in each(Lid):
            s.two[b, g] = True

    Machine("pair", Pair, (swap, clear, both), (some,), routes=Lid)
    with pytest.raises(SpecError, match="stray is declared for g and writes two of another state"):
        Machine("pair", Pair, (swap, stray), (some,), routes=Lid)
    with pytest.raises(SpecError, match="wrong is declared for RED and writes two of another st"):
        Machine("pair", Pair, (swap, wrong), (some,), routes=Lid)


def test_aliased_cells_are_found_when_a_model_is_made() -> None:
    @action("A-3", state=EVERY)
    def alias(s: Pair, b: Box, g: Lid) -> None:
        """Assign two cells that are one when g is GREEN."""
        s.one[b, g] = True
        s.one[b, Colour.GREEN] = s.two[b, g]

    machine = Machine("pair", Pair, (alias, swap), (some,))
    apart = Model("apart", "No alias.", Machine("pair", Pair, (swap,), (some,)), PAIRED)
    assert len(apart.steps) == 4
    with pytest.raises(SpecError, match=r"alias\(b0, GREEN\) assigns one\[b0, GREEN\] twice"):
        _ = [step.updates for step in Model("aliased", "One.", machine, PAIRED).steps]


PAIRED: dict[str, Setting] = {"box": 2, "lid": (Colour.RED, Colour.GREEN)}


def test_a_model_lacks_the_cells_of_members_it_does_not_choose() -> None:
    @invariant("I-2")
    def reads_green(s: Pair, b: Box) -> Term:
        """It takes GREEN for granted."""
        return s.one[b, Colour.GREEN]

    @invariant("I-2")
    def asks_first(s: Pair, b: Box) -> Term:
        """It asks whether there is GREEN."""
        green = exists(Lid, lambda g: g == Colour.GREEN)
        return green & s.one[b, Colour.GREEN]

    settings = PAIRED | {"lid": (Colour.RED,)}
    machine = Machine("pair", Pair, (swap, clear), (reads_green, asks_first))
    model = Model("red", "Without GREEN.", machine, settings)
    with pytest.raises(SpecError, match=r"model red has no one\[b0, GREEN\]"):
        model.cases(model.claims[0])
    assert [case.binding for case in model.cases(model.claims[1])] == ["b=b0", "b=b1"]


def test_a_first_value_is_in_its_range() -> None:
    class Counter(State):
        """A number."""

        n = Scalar("a number", of=within(0, 3), initial=4)

    @action("A-1", state=EVERY)
    def zero(s: Counter) -> None:
        """Start anew."""
        require(up=s.n > 0)
        s.n = 0

    machine = Machine("counter", Counter, (zero,), ())
    with pytest.raises(SpecError, match=r"n starts at 4, outside 0\.\.3"):
        _ = Model("counter", "A counter.", machine).initial


def test_a_refinement_says_what_every_abstract_cell_is() -> None:
    def nothing(s: Pair, a: Pair) -> None:
        """It says half."""
        for b in each(Box):
            for g in each(Lid):
                a.one[b, g] = s.one[b, g]

    def red(s: Pair, a: Pair) -> None:
        """It forgets GREEN."""
        nothing(s, a)
        for b in each(Box):
            a.two[b, Colour.RED] = s.two[b, Colour.RED]

    machine = Machine("pair", Pair, (swap, clear), (some,))
    with pytest.raises(SpecError, match="nothing does not say what 'two' is"):
        _ = Refinement("R-1", machine, machine, nothing).effects
    assert len(Refinement("R-1", machine, machine, red).effects) == 2


@pytest.mark.parametrize("bounds", [{"low": 1}, {"high": 1}, {"of": Colour, "low": 0, "high": 1}])
def test_a_sort_is_atoms_members_or_numbers(bounds: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="give nothing, or of=, or both low= and high="):
        type("Odd", (Sort,), {}, letter="o", **bounds)


@pytest.mark.parametrize("sorts", [(), (Box, Bag, Lid)])
def test_an_array_has_one_sort_or_two(sorts: tuple[type[Sort], ...]) -> None:
    with pytest.raises(SpecError, match="indexed by one sort or two"):
        Array("cells", *sorts, of=BOOL, initial=False)
