"""The shipped models: small enough to search, large enough to mean something."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path

import pytest

from fivestate.checker.counts import load
from fivestate.spec.language import Model, ModelError
from fivestate.spec.language.trees import Cell, Node, walk
from fivestate.spec.models import DEEP, FAILS, HOLDS, LARGE, MODELS, SLICES
from fivestate.spec.models.sizes import OFF
from fivestate.spec.vocabulary import COMPRESSED, INDEXER

COUNTS = load(Path(__file__).with_name("counts.json"))


def test_every_model_is_counted_and_named_once() -> None:
    assert list(COUNTS) == list(MODELS)
    assert len(MODELS) == len(HOLDS) + len(LARGE) + len(FAILS)


@pytest.mark.parametrize("model", SLICES, ids=lambda model: model.name)
def test_a_slice_has_at_most_two_million_states(model: Model) -> None:
    assert COUNTS[model.name].distinct <= 2_000_000


def test_deep_has_over_ten_million_states() -> None:
    assert COUNTS[DEEP.name].distinct > 10_000_000


def test_every_variable_of_deep_is_read_by_a_guard_or_property() -> None:
    trees: list[Node] = [tree for step in DEEP.steps for _, tree in step.guards]
    trees += [case.condition for claim in DEEP.claims for case in DEEP.cases(claim)]
    read = {
        DEEP.cells[node.position].variable
        for tree in trees
        for node in walk(tree)
        if isinstance(node, Cell)
    }
    assert read == set(DEEP.variables)


def test_every_action_is_taken_in_some_slice() -> None:
    """An action that never fires would be a law about nothing."""
    fired = {
        action for model in HOLDS for action, times in COUNTS[model.name].firings.items() if times
    }
    known = {action.name for model in HOLDS for action in model.machine.actions}
    assert fired == known


def test_every_feature_is_on_in_some_model_that_holds() -> None:
    switches = [name for name, value in OFF.items() if isinstance(value, bool)]
    for name in switches:
        assert any(model.settings.get(name) for model in HOLDS), name


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        (("stores=false", "disk=true"), "A disk is there only behind a host tier."),
        (("storable.INDEXER=true",), "An index is not stored"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    changes: tuple[str, ...],
    law: str,
) -> None:
    model = MODELS["index"]
    storable: dict[Enum, bool] = {COMPRESSED: True, INDEXER: False}
    model = replace(model, settings={**model.settings, "storable": storable})
    with pytest.raises(ModelError, match=law):
        model.set(*changes)


def test_every_property_is_judged_in_some_model_that_holds() -> None:
    judged = {claim.name for model in HOLDS for claim in model.claims}
    written = {claim.name for model in HOLDS for claim in model.machine.claims}
    assert judged == written
