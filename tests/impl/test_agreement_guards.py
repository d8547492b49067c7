"""Each guard of the allocator is needed: without it, the agreement with the specification fails."""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path

import pytest
from tests.impl.alone import Alone, alone
from tests.impl.tour import Disagreement, Graph, Tour, walk

from fivestate.impl.allocator import Allocator
from fivestate.spec.allocator import ALLOCATOR, NEXT
from fivestate.spec.allocator.state import Group, Prefix, Request
from fivestate.spec.language.tracing import Action
from fivestate.spec.models import MODELS

GUARDS = [(action.name, guard.name) for action in ALLOCATOR.actions for guard in action.guards]
"""Every guard of every action, in the specification's order."""

MUTANTS = Path(__file__).parents[1] / "mutants.json"
DROPPED = {
    mutant["name"].removeprefix("drop "): mutant["equivalent"]
    for mutant in json.loads(MUTANTS.read_text("utf-8"))["mutants"]
    if mutant["kind"] == "drop-guard"
}
"""By ``action.guard``, whether the checker found that the graph is the same without it."""


@cache
def graph(model: str) -> Graph:
    return Graph(MODELS[model])


def reach(found: Alone, allocator: type[Allocator] = Allocator) -> Tour:
    """Drive an allocator to the state in which the guard alone is false."""
    tour = Tour(found.model, allocator, graph(found.model.name))
    walk(tour, found.way)
    return tour


def without(action: str, guard: str) -> type[Allocator]:
    """Return the allocator with one guard dropped, at the one hook that all come through."""

    class Careless(Allocator):
        def _require(self, asked: str, name: str, truth: bool, /, **given: object) -> None:  # noqa: FBT001 -- as the hook
            if (asked, name) != (action, guard):
                super()._require(asked, name, truth, **given)

    return Careless


@pytest.mark.parametrize(("action", "guard"), GUARDS)
def test_without_a_guard_the_allocator_disagrees(action: str, guard: str) -> None:
    found = alone().get((action, guard))
    if found is None:
        assert DROPPED[f"{action}.{guard}"], "a state where it alone is false exists; none is found"
        return
    reach(found).refuse(found.step, found.bit)
    careless = reach(found, without(action, guard))
    with pytest.raises(Disagreement, match=f"not refused by '{guard}'|fails"):
        careless.refuse(found.step, found.bit)


def test_what_is_refused_changes_nothing() -> None:
    for found in alone().values():
        tour = reach(found)
        tour.refuse_all()
        tour.twin.allocator.check()


SORTS = {Prefix: "Node", Request: "Request", Group: "CacheState"}


@pytest.mark.parametrize("traced", ALLOCATOR.actions, ids=lambda traced: traced.name)
def test_a_method_has_the_name_clause_state_and_parameters_of_its_action(traced: Action) -> None:
    method = getattr(Allocator, traced.name)
    told = Allocator.actions[traced.name]
    assert told.clause == traced.clause
    parameters = list(inspect.signature(method).parameters.values())[1:]
    plain = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [p.annotation for p in plain] == [SORTS[bound.sort] for bound in traced.parameters]
    state = traced.state
    if state in [bound.name for bound in traced.parameters]:
        assert isinstance(state, str)
        assert told.state == plain[[bound.name for bound in traced.parameters].index(state)].name
    else:
        assert told.state == state
    extra = [p for p in parameters if p not in plain]
    assert all(p.default is not inspect.Parameter.empty for p in extra)


def test_there_is_a_method_for_each_action_and_no_other() -> None:
    assert set(Allocator.actions) == {source.name for source in NEXT}
