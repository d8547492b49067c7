"""One form missing is seen in the logits when it is used blindly, and refused when it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.impl.model_examples import HYBRID, PLAIN, WRONG, model, prompt, rng_of
from tests.impl.model_faults import DROPPED, passed_off
from torch import Tensor
from transformers import PreTrainedModel

from fivestate.impl.models.parts import (
    UNSTAMPED,
    Part,
    RecordedCache,
    Stamp,
    assemble,
    disassemble,
)
from fivestate.impl.models.replay import run
from fivestate.impl.models.tiny import tiny
from fivestate.spec.reuse import Shape, Span

FORK = prompt(rng_of(5), 24)
"""Tokens that go on behind a resume."""


def made(on: PreTrainedModel, seed: int, stamp: Stamp = UNSTAMPED) -> RecordedCache:
    """Return a cache with 64 random tokens."""
    cache = RecordedCache(on, stamp=stamp)
    run(on, cache, prompt(rng_of(seed), 64))
    return cache


def go_on(on: PreTrainedModel, cache: RecordedCache) -> Tensor:
    """Compute the fork."""
    return run(on, cache, FORK)


def distance(on: PreTrainedModel, right: RecordedCache, wrong: RecordedCache) -> float:
    return float((go_on(on, right) - go_on(on, wrong)).abs().max())


@pytest.mark.parametrize("fault", DROPPED)
def test_a_form_that_is_missing_is_wrong_text_if_used_and_refused_if_looked_at(fault: str) -> None:
    blind, groups, position = DROPPED[fault]
    on = model("deepseek-v4")
    parts = disassemble(made(on, 0), position)
    right, wrong = assemble(on, parts, position), assemble(on, parts, position)
    blind(wrong)
    assert distance(on, right, wrong) > WRONG
    for group in groups:
        need = right.layout.geometry.group(group).need(position)
        without = {name: part for name, part in parts.items() if name != group}
        with pytest.raises(ValueError, match=f"{group}.*rows {need} are missing"):
            assemble(on, without, position)


@pytest.mark.parametrize("fault", DROPPED)
def test_each_form_alone_is_enough_to_be_wrong(fault: str) -> None:
    """One group of the ones above after the other, read as zeros: no group is idle."""
    _, groups, position = DROPPED[fault]
    on = model("deepseek-v4")
    parts = disassemble(made(on, 0), position)
    for group in groups:
        zeros = replace(parts[group], rows=torch.zeros_like(parts[group].rows))
        right = assemble(on, parts, position)
        assert distance(on, right, assemble(on, {**parts, group: zeros}, position)) > WRONG, group


@pytest.mark.parametrize("name", HYBRID)
def test_a_window_that_is_missing_is_wrong_on_every_hybrid_model(name: str) -> None:
    blind, _, position = DROPPED["window dropped"]
    on = model(name)
    parts = disassemble(made(on, 0), position)
    wrong = assemble(on, parts, position)
    blind(wrong)
    assert distance(on, assemble(on, parts, position), wrong) > WRONG


def test_an_index_of_another_generation_is_wrong_and_its_stamp_gives_it_away() -> None:
    on, position = model("deepseek-v4"), 48
    parts = disassemble(made(on, 0, Stamp(run="one")), position)
    stale = disassemble(made(on, 1, Stamp(run="two")), position)
    right = assemble(on, parts, position)
    wrong = assemble(on, passed_off(parts, stale, ("c4_index",)), position)
    assert distance(on, right, wrong) > WRONG
    with pytest.raises(ValueError, match=r"'c4_index': rows 0..47 are of run 'two'"):
        assemble(on, {**parts, "c4_index": stale["c4_index"]}, position)


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_entries_of_old_weights_are_wrong_and_their_stamp_gives_them_away(name: str) -> None:
    on, old, position = model(name), tiny(name, seed=1), 48
    parts = disassemble(made(on, 0, Stamp(weights=2)), position)
    stale = disassemble(made(old, 0, Stamp(weights=1)), position)
    entries = "c4" if "c4" in parts else "full"
    right = assemble(on, parts, position)
    wrong = assemble(on, passed_off(parts, stale, (entries,)), position)
    assert distance(on, right, wrong) > WRONG
    for given in (stale, {**parts, entries: stale[entries]}):
        with pytest.raises(ValueError, match="made with weights 0x1; the model has 0x2 now"):
            assemble(on, given, position, weights=2)


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_one_row_too_few_is_refused_by_group_and_row_and_one_too_many_is_not(name: str) -> None:
    on = model(name)
    cache = made(on, 0)
    groups = cache.layout.geometry.groups
    for position in (5, 16, 46, 48):
        parts = disassemble(cache, position)
        for group in groups:
            need, rows = group.need(position), parts[group.name].rows
            short = Span(need.start + (group.ratio if group.shape is Shape.PREFIX else 1), need.end)
            if short.tokens:
                later = Part(short, rows[:, 1:])
                with pytest.raises(ValueError, match=f"'{group.name}': rows {need.start}"):
                    assemble(on, {**parts, group.name: later}, position)
        more = {group.name: cache.read(group.name, Span(0, 64)) for group in groups}
        given = assemble(on, more, position)
        assert torch.equal(go_on(on, given), go_on(on, assemble(on, parts, position)))


def test_rows_of_another_shape_or_a_position_that_was_not_reached_are_refused() -> None:
    on = model("deepseek-v4")
    cache = made(on, 0)
    parts = disassemble(cache, 48)
    for rows in (parts["c4"].rows[:1], parts["c4"].rows[:, :, :8], parts["c4"].rows.double()):
        with pytest.raises(ValueError, match=r"'c4': rows of 0..47 have shape.*is allowed"):
            assemble(on, {**parts, "c4": Part(Span(0, 48), rows)}, 48)
    for position in (0, 65):
        with pytest.raises(ValueError, match=rf"position = {position}: 1 .. 64 is allowed"):
            disassemble(cache, position)
    with pytest.raises(ValueError, match="position = 0: 1 or more is allowed"):
        assemble(on, parts, 0)
