"""The allocator's verdict is the theory's, for every state of a prefix's cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from itertools import product

import pytest

from fivestate.spec.language import Model, Run
from fivestate.spec.language.ground import evaluate
from fivestate.spec.language.trees import Boolean, Cell, Enumerated, walk
from fivestate.spec.models import MODELS
from fivestate.spec.reuse import (
    Abi,
    Asked,
    Availability,
    Consumer,
    Extent,
    Geometry,
    Kind,
    Place,
    Tier,
    classify,
)
from fivestate.spec.reuse.files import preset
from fivestate.spec.vocabulary import (
    COMPRESSED,
    INDEXER,
    TAIL,
    WINDOW,
    CacheState,
    Copy,
    Device,
    Fit,
)

FORK_TOKENS = 8
GROUPS = {COMPRESSED: "csa", TAIL: "csa_state", WINDOW: "swa", INDEXER: "index"}
"""The group of ``toy`` that a machine's group stands for."""

OLD, NEW = Abi(layout="old"), Abi(layout="new")
KERNEL = Consumer(NEW, frozenset({(OLD.layout, NEW.layout)}))
TIERS = {"copy": Tier.HOST, "disk": Tier.DISK}
CELLS = {"known", "device", "fit", *TIERS}
"""The variables that the abstraction reads; a verdict that reads another one fails the test."""

Values = dict[tuple[str, Enum | None], Enum | bool]


def geometry(model: Model) -> Geometry:
    """Return the groups of ``toy`` that the model has, on pages that can be misaligned."""
    present = [list(CacheState)[code] for code in model.elements(group_sort(model))]
    toy = preset("toy")
    chosen = [replace(toy.group(GROUPS[state]), page_alignment=16) for state in present]
    return Geometry("toy", tuple(chosen))


def group_sort(model: Model) -> type:
    return next(sort for sort in model.machine.sorts if sort.of is CacheState)


def verdicts(model: Model) -> Iterator[tuple[Values, str]]:
    """Yield every state of what a verdict reads, and the verdict that the machine gives."""
    run = Run(model)
    step = run.step("arrive", "r0", "p0")
    phase = next(at for at, cell in enumerate(model.cells) if cell.name == "phase[r0]")
    verdict = dict(step.updates)[phase]
    cells = sorted({node.position for node in walk(verdict) if isinstance(node, Cell)})
    assert {model.cells[at].variable for at in cells} <= CELLS
    ranges = [range(model.cells[at].low, model.cells[at].high + 1) for at in cells]
    for codes in product(*ranges):
        state = list(model.initial)
        for at, code in zip(cells, codes, strict=True):
            state[at] = code
        values = {name_of(model, at): value_of(model, at, state[at]) for at in cells}
        if is_possible(values):
            code = evaluate(verdict, tuple(state))
            yield values, model.show(model.cells[phase].type, code)


def name_of(model: Model, at: int) -> tuple[str, Enum | None]:
    cell = model.cells[at]
    indexed = len(cell.indices) == 2
    return cell.variable, list(CacheState)[cell.indices[1]] if indexed else None


def value_of(model: Model, at: int, code: int) -> Enum | bool:
    match model.cells[at].type:
        case Enumerated(enum):
            return list(enum)[code]
        case Boolean():
            return bool(code)
        case other:
            pytest.fail(f"{other} is no type of an object's state")


def is_possible(values: Values) -> bool:
    """What is not complete has no fit, and only an index can be out of step."""
    return all(
        value is Fit.OK
        or (
            values["device", group] is Device.READY
            and (value is not Fit.OUT_OF_STEP or group is INDEXER)
        )
        for (name, group), value in values.items()
        if name == "fit"
    )


def abstraction(shape: Geometry, values: Values) -> Availability:
    """What exists of the prefix: a cell is what its group needs at the fork."""
    copies: dict[str, tuple[Extent, ...]] = {}
    for state, name in GROUPS.items():
        if name not in {group.name for group in shape.groups}:
            continue
        whole = Extent(shape.group(name).need(FORK_TOKENS), abi=NEW)
        found = []
        if values.get(("device", state)) is Device.READY:
            found.append(fitted(whole, values.get(("fit", state), Fit.OK)))
        for variable, tier in TIERS.items():
            match values.get((variable, state)):
                case Copy.STORED:
                    found.append(replace(whole, tier=tier))
                case Copy.OLD:
                    found.append(replace(whole, tier=tier, abi=OLD))
                case _:
                    pass
        copies[name] = tuple(found)
    return Availability((copies,), known=bool(values["known", None]))


def fitted(whole: Extent, fit: Enum | bool) -> Extent:  # noqa: FBT001 -- a value of any variable
    match fit:
        case Fit.MISALIGNED:
            return replace(whole, place=Place(1, 16, 16, 1, 0, 64))
        case Fit.OLD_LAYOUT:
            return replace(whole, abi=OLD)
        case Fit.OUT_OF_STEP:
            return replace(whole, generation=1)
        case _:
            return whole


@pytest.mark.parametrize(
    ("name", "states"), [("hybrid", 50), ("all-groups", 1250), ("tiers", 1568), ("change", 3136)]
)
def test_the_machine_s_verdict_is_the_theory_s(name: str, states: int) -> None:
    model = MODELS[name]
    shape = geometry(model)
    asked = Asked(FORK_TOKENS)
    seen: dict[str, int] = {}
    for values, told in verdicts(model):
        verdict = classify(shape, asked, abstraction(shape, values), KERNEL)
        assert verdict.kind.name == told, values
        seen[told] = seen.get(told, 0) + 1
    assert set(seen) == {kind.name for kind in Kind}
    assert sum(seen.values()) == states, seen
