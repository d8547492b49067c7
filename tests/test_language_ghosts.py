"""Ghosts: what the machine speaks of and nobody in it knows."""

from __future__ import annotations

import pytest

from fivestate.spec.language import (
    BOOL,
    EVERY,
    Machine,
    Scalar,
    SpecError,
    State,
    Term,
    action,
    invariant,
    ite,
    require,
)
from fivestate.spec.language.tracing import ActionSource
from fivestate.spec.models import MODELS


class Box(State):
    """A box that may be empty, and whether it is."""

    shut = Scalar("the lid is down", of=BOOL, initial=True)
    empty = Scalar("nothing is in it", of=BOOL, initial=True, ghost=True)


@action("B-1", state=EVERY)
def lift(s: Box) -> None:
    """Lift the lid."""
    require(shut=s.shut)
    s.shut = False
    s.empty = s.empty & s.shut


@action("B-1", state=EVERY)
def lift_if_empty(s: Box) -> None:
    """Lift the lid, knowing what only a ghost knows."""
    require(empty=s.empty)
    s.shut = False
    s.empty = False


@action("B-1", state=EVERY)
def lift_by_content(s: Box) -> None:
    """Move the lid as the content decides."""
    require(shut=s.shut)
    s.shut = ite(s.empty, True, False)
    s.empty = False


@invariant("B-0")
def nothing_lost(s: Box) -> Term:
    """A box that is shut is empty."""
    return s.empty | ~s.shut


def box(source: ActionSource) -> Machine:
    return Machine("box", Box, (source,), (nothing_lost,))


def test_a_ghost_may_follow_what_happens_and_be_asked_by_a_property() -> None:
    assert box(lift).state.variables["empty"].ghost


@pytest.mark.parametrize(
    ("source", "place"),
    [(lift_if_empty, "guard 'empty'"), (lift_by_content, "shut reads")],
)
def test_a_ghost_decides_nothing(source: ActionSource, place: str) -> None:
    with pytest.raises(SpecError, match=place):
        box(source)


def test_the_shipped_machines_have_ghosts() -> None:
    ghosts = {
        model.machine.name: {n for n, v in model.machine.state.variables.items() if v.ghost}
        for model in MODELS.values()
    }
    assert ghosts == {
        "sequence": {"right", "routed"},
        "allocator": {"bytes", "stored", "archived", "same"},
        "scheme-a": set(),
        "static-step": {"right", "inert"},
    }
