"""The native engine finds what the python engine finds, numbered as it numbers it."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from tests.machines.two_phase import two_phase
from tests.native_models import SHARES, dials, differences, explored, ground_models

from fivestate.checker.engines import native, python
from fivestate.checker.engines.native import cache, kernel, memory, search
from fivestate.checker.exploration import RANGE, Exploration, Limits
from fivestate.spec.language import Model, ModelError
from fivestate.spec.models import MODELS

COMPARED = [
    *(model for model in MODELS.values()),
    MODELS["sequence"].set("tokens=6", "window=2"),
    MODELS["sequence"].set("tokens=7", "ratio=3", "lookback=1"),
    MODELS["hybrid"].set("request=3"),
    MODELS["homogeneous"].set("cap=1"),
    MODELS["hash-only"].set("cap=2"),
    two_phase(5),
    dials(2),
]


def native_result(model: Model, limits: Limits | None = None) -> Exploration:
    """Return what the native engine finds."""
    return explored(native.explore, model, limits)


def named(model: Model) -> str:
    """Return what a test calls a model."""
    return f"{model.name} {' '.join(model.changes)}"


STATES = 15_000
"""Larger models are compared as far as this: both engines stop at the same state."""


@pytest.mark.parametrize("model", COMPARED, ids=named)
def test_it_finds_what_python_finds(model: Model) -> None:
    limits = Limits(states=STATES)
    assert differences(explored(python.explore, model, limits), native_result(model, limits)) == []


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    model = two_phase(5)
    monkeypatch.setattr(native, "workers", lambda: workers)
    assert differences(explored(python.explore, model), native_result(model)) == []


@pytest.mark.parametrize("model", [two_phase(5), dials(2)], ids=named)
def test_the_size_of_chunks_and_blocks_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, model: Model
) -> None:
    monkeypatch.setattr(native, "workers", lambda: 2)
    monkeypatch.setattr(search, "CHUNK_STEPS", 1_000)
    monkeypatch.setattr(search, "SHARED", 2)
    monkeypatch.setattr(search, "BLOCK", 1 << 7)
    monkeypatch.setattr(memory, "BLOCK", 1 << 7)
    monkeypatch.setattr(memory, "MAX_STATES", 1 << 20)
    monkeypatch.setattr(memory, "_FIRST_SLOTS", 2 * memory.LINE)
    monkeypatch.setattr(kernel, "BLOCK_BITS", 7)
    limits = Limits(states=STATES)
    assert differences(explored(python.explore, model, limits), native_result(model, limits)) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ground_models())
def test_it_finds_what_python_finds_in_any_machine(model: Model) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "save", lambda _key, _code: "")
        assert differences(explored(python.explore, model), native_result(model)) == []


def test_a_state_of_two_words_is_compared() -> None:
    model = dials(2)
    assert native.prepare(model, 1).layout.words == 2
    found = native_result(model, Limits(states=1_000))
    assert {RANGE, "close", "forward", "all_on"} == set(found.findings)


def test_a_value_out_of_its_range_is_found_where_python_finds_it() -> None:
    model, limits = dials(2), Limits(states=100)
    found = native_result(model, limits).findings[RANGE]
    assert found == explored(python.explore, model, limits).findings[RANGE]
    assert found.step is not None


def test_a_state_that_is_too_wide_is_refused_with_the_bits_of_each_variable() -> None:
    with pytest.raises(ModelError, match=r"takes 147 bits.* 128: far 120, shown 27"):
        native_result(dials(3))


def test_a_divisor_that_may_be_zero_is_refused() -> None:
    with pytest.raises(ModelError, match="model shares: a divisor may be zero"):
        native_result(SHARES)


def test_without_edges_there_are_none() -> None:
    model = two_phase(3)
    found = native.explore(model, Limits(), threading.Event(), edges=False)
    assert found.edges is None
    assert found.distinct == 288


def test_states_can_be_asked_for_one_by_one_or_in_a_slice() -> None:
    model = dials(2)
    limits = Limits(states=100)
    found = native_result(model, limits).states
    known = explored(python.explore, model, limits).states
    assert [found[at] for at in (0, 7, -1)] == [known[at] for at in (0, 7, -1)]
    assert list(found[5:9]) == list(known[5:9])


def test_a_limit_of_states_stops_both_engines_at_the_same_state() -> None:
    model, limits = two_phase(4), Limits(states=500)
    found = native_result(model, limits)
    assert found.stopped == "limit of 500 states"
    assert 500 <= found.distinct < 600
    assert differences(explored(python.explore, model, limits), found) == []


def test_a_limit_of_seconds_stops_the_search() -> None:
    found = native_result(two_phase(5), Limits(seconds=0))
    assert (found.stopped, found.distinct, found.levels) == ("limit of 0 s", 1, [1])


def test_a_limit_of_bytes_stops_the_search() -> None:
    found = native_result(two_phase(6), Limits(bytes=16_000_000))
    assert found.stopped == "limit of 16,000,000 bytes"
    assert 1 < found.distinct < 50_816


def test_an_interrupt_stops_the_search_and_what_was_covered_is_reported() -> None:
    interrupted = threading.Event()
    seen: list[tuple[int, int]] = []

    def progress(states: int, done: int) -> None:
        seen.append((states, done))
        if states > 1_000:
            interrupted.set()

    model = two_phase(6)
    found = native.explore(model, Limits(), interrupted, edges=True, progress=progress)
    assert found.stopped == "interrupted"
    assert 1_000 < found.distinct < 50_816
    assert seen[0] == (1, 0)
    assert sum(found.levels) <= found.distinct
    full = explored(python.explore, model, Limits(states=found.distinct))
    assert list(found.states)[:1_000] == list(full.states)[:1_000]
