"""What the tests of the native engine search, and how two searches are compared."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

from fivestate.checker.exploration import Engine, Exploration, Limits
from fivestate.spec.language import (
    EVERY,
    Array,
    Kind,
    Machine,
    Model,
    Scalar,
    Sort,
    State,
    Term,
    action,
    exists,
    invariant,
    require,
    step,
    within,
    witness,
)
from fivestate.spec.language.ground import ANY_STEP, During
from fivestate.spec.language.model import Case, CellInfo
from fivestate.spec.language.properties import Property
from fivestate.spec.language.tracing import Action
from fivestate.spec.language.trees import (
    TRUE,
    Apply,
    Boolean,
    Cell,
    Integer,
    Literal,
    Node,
    Type,
)


class Dial(Sort, letter="d"):
    """A dial."""


class Dials(State):
    """Numbers that take many bits and few values."""

    shown = Array("what it shows", Dial, of=within(-100, 411), initial=-100)
    far = Array("a number with many values", Dial, of=within(0, (1 << 40) - 1), initial=1 << 39)


@action("T-1", state=EVERY)
def turn(s: Dials, d: Dial) -> None:
    """Turn a dial."""
    require(on=s.shown[d] < 360)
    s.shown[d] = s.shown[d] + 61


@action("T-2", state=EVERY)
def back(s: Dials, d: Dial, e: Dial) -> None:
    """Turn one dial back while another is far."""
    require(apart=s.shown[d] - s.shown[e] > 120, far=s.far[e] > 0)
    s.shown[d] = (s.shown[d] - 301) // 2
    s.far[e] = (s.far[e] * 3 + 1) // 700 - s.shown[d]


@invariant("T-3")
def close(s: Dials, d: Dial, e: Dial) -> Term:
    """No two dials are far apart."""
    return s.shown[d] - s.shown[e] < 300


@step("T-4")
def forward(before: Dials, after: Dials, d: Dial) -> Term:
    """No dial goes back."""
    return before.shown[d] <= after.shown[d]


@witness("T-5")
def all_on(s: Dials) -> Term:
    """Every dial is turned."""
    return ~exists(Dial, lambda d: s.shown[d] < 250)


DIALS = Machine("dials", Dials, (turn, back), (close, forward, all_on))


def dials(count: int) -> Model:
    """Return a model of ``count`` dials: 49 bits each."""
    return Model("dials", "Dials.", DIALS, {"dial": count})


class Shares(State):
    """A number and a divisor that a guard keeps from zero."""

    whole = Scalar("what is shared", of=within(0, 6), initial=6)
    sharers = Scalar("who shares it", of=within(0, 2), initial=2)


@action("T-6", state=EVERY)
def share(s: Shares) -> None:
    """Share what there is."""
    require(some=s.sharers > 0)
    s.whole = s.whole // s.sharers
    s.sharers = s.sharers - 1


@invariant("T-7")
def something_left(s: Shares) -> Term:
    """Something is left."""
    return s.whole > 0


SHARES = Model("shares", "Shares.", Machine("shares", Shares, (share,), (something_left,)), {})


def explored(engine: Engine, model: Model, limits: Limits | None = None) -> Exploration:
    """Return everything that an engine finds, edges included."""
    return engine(model, limits or Limits(), threading.Event(), edges=True)


def differences(one: Exploration, other: Exploration) -> list[str]:
    """Name what two explorations of a model do not agree on."""
    compared: dict[str, tuple[Any, Any]] = {
        "distinct": (one.distinct, other.distinct),
        "transitions": (one.transitions, other.transitions),
        "levels": (one.levels, other.levels),
        "firings": (one.firings, other.firings),
        "findings": (one.findings, other.findings),
        "stopped": (one.stopped, other.stopped),
        "states": (list(one.states), list(other.states)),
        "parents": (list(one.parents), list(other.parents)),
        "parent_steps": (list(one.parent_steps), list(other.parent_steps)),
    }
    found = [name for name, (left, right) in compared.items() if left != right]
    if one.edges is None or other.edges is None:
        return found + ["edges"] * (one.edges is not other.edges)
    unequal = (
        f"edges.{name}"
        for name in ("offsets", "targets", "labels")
        if not np.array_equal(getattr(one.edges, name), getattr(other.edges, name))
    )
    return [*found, *unequal]


@dataclass(frozen=True)
class GroundStep:
    """A step that is made of ground trees: all that an engine reads of one."""

    action: Action
    label: str
    guards: tuple[tuple[str, Node], ...]
    updates: tuple[tuple[int, Node], ...]
    during: During = ANY_STEP
    possible: bool = True


@dataclass
class GroundModel:
    """A model that is made of ground trees: all that an engine reads of one."""

    cells: tuple[CellInfo, ...]
    initial: tuple[int, ...]
    steps: tuple[GroundStep, ...]
    claims: tuple[Property, ...]
    grounded: dict[str, tuple[Case, ...]]
    name: str = "random"
    actions: tuple[Action, ...] = field(default=())

    def cases(self, claim: Property, during: During = ANY_STEP) -> tuple[Case, ...]:
        """Return the property's cases."""
        del during
        return self.grounded[claim.name]


def property_of(name: str, kind: Kind) -> Property:
    """Return a property that has a name and a kind."""
    return Property("R-1", name, kind, "", "", (), TRUE, TRUE)


class Trees:
    """Draws ground trees over some cells."""

    def __init__(self, draw: st.DrawFn, cells: Sequence[CellInfo]) -> None:
        self._draw, self._cells = draw, cells

    def number(self, deep: int, *, after: bool = False) -> Node:
        """Return a tree that is a number."""
        kinds = ["cell", "literal"] if not deep else [*_NUMBERS, "cell", "//", "ite", "just"]
        match self._draw(st.sampled_from(kinds)):
            case "cell":
                return self._cell(Integer(), after=after)
            case "literal":
                return _literal(self._draw(st.integers(-3, 6)))
            case "//":
                divisor = _literal(self._draw(st.sampled_from([-3, -2, 2, 3])))
                return _apply("//", self.number(deep - 1, after=after), divisor)
            case "ite":
                sides = (self.number(deep - 1, after=after) for _ in range(2))
                return _apply("ite", self.truth(deep - 1, after=after), *sides)
            case "just":
                return _apply("just", self.number(deep - 1, after=after))
            case operator:
                more = 2 if operator in {"-", "*"} else self._draw(st.integers(2, 3))
                return _apply(operator, *(self.number(deep - 1, after=after) for _ in range(more)))

    def truth(self, deep: int, *, after: bool = False) -> Node:
        """Return a tree that is a truth value."""
        kinds = ["cell"] if not deep else ["number", "number", *_TRUTHS]
        match self._draw(st.sampled_from(kinds)):
            case "cell":
                return self._cell(Boolean(), after=after)
            case "number":
                operator = self._draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]))
                sides = (self.number(deep - 1, after=after) for _ in range(2))
                return Apply(operator, tuple(sides), Boolean())
            case operator:
                parts = (self.truth(deep - 1, after=after) for _ in range(_TRUTHS[operator]))
                return Apply(operator, tuple(parts), Boolean())

    def guard(self) -> Node:
        """Return a guard; often it lets everything pass, or there would be few states."""
        return TRUE if self._draw(st.booleans()) else self.truth(2)

    def of(self, position: int) -> Node:
        """Return a tree that a cell can be set to, and that mostly stays in its range."""
        cell = self._cells[position]
        here = Cell(position, cell.type)
        if isinstance(cell.type, Boolean):
            return self.truth(2) if self._draw(st.booleans()) else Apply("not", (here,), Boolean())
        low, high = _literal(cell.low), _literal(cell.high)
        match self._draw(st.sampled_from(["round", "round", "round", "clamped", "free"])):
            case "round":
                more = _apply("+", here, _literal(1))
                return _apply("ite", Apply("==", (here, high), Boolean()), low, more)
            case "clamped":
                return _apply("min", _apply("max", self.number(2), low), high)
            case _:
                return self.number(2)

    def _cell(self, kind: Type, *, after: bool) -> Node:
        here = [at for at, cell in enumerate(self._cells) if cell.type == kind]
        late = after and self._draw(st.booleans())
        return Cell(self._draw(st.sampled_from(here)), kind, late)


_NUMBERS = ("+", "-", "*", "min", "max")
_TRUTHS = {"and": 3, "or": 3, "implies": 2, "==": 2, "!=": 2, "ite": 3, "not": 1}


def _literal(value: int) -> Node:
    return Literal(value, Integer())


def _apply(operator: str, *arguments: Node) -> Node:
    return Apply(operator, arguments, Integer())


@st.composite
def ground_models(draw: st.DrawFn) -> Model:
    """Return a small machine that nobody would write."""
    spans = draw(st.lists(st.tuples(st.integers(-4, 2), st.integers(0, 5)), min_size=3, max_size=5))
    cells = [
        CellInfo(f"n{at}", f"n{at}", (), Integer(), low, low + more)
        for at, (low, more) in enumerate(spans)
    ]
    cells += [CellInfo(f"b{at}", f"b{at}", (), Boolean(), 0, 1) for at in range(2)]
    trees = Trees(draw, cells)
    steps = tuple(_step(draw, trees, cells, at) for at in range(draw(st.integers(4, 8))))
    kinds = {f"p{at}": kind for at, kind in enumerate(_KINDS)}
    grounded: dict[str, tuple[Case, ...]] = {}
    for name, kind in kinds.items():
        claim = property_of(name, kind)
        grounded[name] = tuple(
            Case(claim, f"c{at}", trees.truth(2, after=kind is Kind.STEP))
            for at in range(draw(st.integers(1, 3)))
        )
    model = GroundModel(
        cells=tuple(cells),
        initial=tuple(draw(st.integers(cell.low, cell.high)) for cell in cells),
        steps=steps,
        claims=tuple(property_of(name, kind) for name, kind in kinds.items()),
        grounded=grounded,
    )
    return cast("Model", model)


_KINDS = (Kind.INVARIANT, Kind.INVARIANT, Kind.STEP, Kind.STEP, Kind.WITNESS, Kind.WITNESS)


def _step(draw: st.DrawFn, trees: Trees, cells: list[CellInfo], number: int) -> GroundStep:
    written = draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, max_size=2, unique=True))
    updates = tuple((at, trees.of(at)) for at in sorted(written))
    taken = replace(DIALS.actions[0], name=f"act{number}")
    return GroundStep(taken, f"act{number}()", (("guard", trees.truth(2)),), updates)
