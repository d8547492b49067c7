"""Theorems of arithmetic hold, and fall as soon as a formula is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.catalog import ARITHMETIC
from fivestate.checker.prove.signature import numbers
from fivestate.checker.prove.solve import Asking
from fivestate.checker.prove.theorem import VACUOUS, Question, Theorem, prove
from fivestate.checker.prove.theorems import blocks
from fivestate.checker.verdicts import Verdict
from fivestate.spec import need
from fivestate.spec.language import max_, min_
from fivestate.spec.reuse.files import preset
from fivestate.spec.reuse.geometry import Geometry

FEW = tuple(preset(name) for name in ("toy", "gpt-oss-120b", "llama4-scout"))


def refuted(geometries: tuple[Geometry, ...] = FEW) -> set[str]:
    results = [prove(theorem, geometries, Asking(5)) for theorem in ARITHMETIC]
    assert Verdict.UNDETERMINED not in {result.verdict for result in results}
    return {result.theorem for result in results if result.verdict is Verdict.REFUTED}


def test_every_theorem_holds() -> None:
    results = [prove(theorem, FEW, Asking(20)) for theorem in ARITHMETIC]
    assert {result.verdict for result in results} == {Verdict.PROVED}
    shown = {result.theorem for result in results if result.told}
    assert shown == {theorem.name for theorem in ARITHMETIC if theorem.fails}


ROWS = {"tail_needed_is_read_by_a_fold", "most_rows_are_the_most"}
CAPS = {"cap_is_at_most_one_above_the_peak"}
WINDOW = {
    "window_needed_is_window_read",
    "most_rows_are_the_most",
    "a_window_is_no_prefix",
    "cap_is_the_least",
    "cap_of_any_size",
    *CAPS,
}
BEFORE = {"what_is_needed_lies_before"}

SEEDED: dict[str, tuple[str, Callable[..., Any], str, set[str]]] = {
    "the look-back is forgotten": (
        "tail_start",
        lambda folded, ratio, lookback: max_(folded * ratio - lookback * 0, 0),
        "tail_is_empty_iff_nothing_overlaps",
        {*ROWS, *CAPS, "cap_of_a_tail_is_the_least"},
    ),
    "the tail starts before the first token": (
        "tail_start",
        lambda folded, ratio, lookback: folded * ratio - lookback,
        "forms_partition_the_prefix",
        {*BEFORE, "cap_covers_the_peak"},
    ),
    "the query is not counted": (
        "window_start",
        lambda position, window: max_(position - window, 0),
        "window_needed_is_window_read",
        {
            *WINDOW,
            "cap_covers_the_peak",
            "most_rows_of_any_size",
            "hit_blocks_hold_what_a_hit_needs",
            "hit_blocks_are_the_least",
        },
    ),
    "the window is a row short": (
        "window_start",
        lambda position, window: max_(position - window + 2, 0),
        "window_needed_is_window_read",
        {*WINDOW, *BEFORE},
    ),
    "the chunk is that of the last row": (
        "chunk_start",
        lambda position, chunk: (position - 1) // chunk * chunk,
        "chunk_needed_is_chunk_read",
        {
            *BEFORE,
            "most_rows_are_the_most",
            "most_rows_of_any_size",
            "cap_covers_the_peak",
            "cap_of_any_size",
        },
    ),
    "an entry before its group is whole": (
        "entries_end",
        lambda position, ratio: (position + ratio - 1) // ratio * ratio,
        "entries_needed_are_entries_read",
        {*BEFORE, "forms_partition_the_prefix"},
    ),
    "the query's own group is visible": (
        "visible",
        lambda entry, query, ratio: entry * ratio <= query,
        "nobody_sees_the_future",
        {"visible_entries_are_counted"},
    ),
    "the last visible entry is not counted": (
        "visible_entries",
        lambda query, ratio: query // ratio,
        "visible_entries_are_counted",
        set(),
    ),
    "half a block is no block": (
        "blocks",
        lambda rows, block: rows // block,
        "hit_blocks_hold_what_a_hit_needs",
        {
            "hit_blocks_are_the_least",
            "whole_blocks_of_a_copy",
            "cap_covers_the_peak",
            "cap_is_the_least",
            "cap_of_any_size",
        },
    ),
    "the last token is reused": (
        "resume_limit",
        lambda fork, prompt, lookback: max_(min_(fork - lookback, prompt), 0),
        "no_half_block_is_reused",
        set(),
    ),
    "the drafter's look-back is reused": (
        "resume_limit",
        lambda fork, prompt, lookback: max_(min_(fork, prompt - 1) + lookback * 0, 0),
        "no_half_block_is_reused",
        set(),
    ),
    "a layer costs a whole window": (
        "replay_start",
        lambda first, window, layers: max_(first - (layers - 1) * window, 0),
        "replay_starts_early_enough",
        set(),
    ),
}


@pytest.mark.parametrize("seed", SEEDED)
def test_a_wrong_formula_is_refuted_by_the_theorem_meant_for_it(
    seed: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, wrong, meant, with_it = SEEDED[seed]
    put_in(monkeypatch, name, wrong)
    assert refuted() == {meant, *with_it}


def put_in(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[..., Any]) -> None:
    """Replace a function of the specification wherever it has been imported."""
    right = getattr(need, name)
    for module in list(sys.modules.values()):
        if module.__name__.startswith("fivestate.") and getattr(module, name, None) is right:
            monkeypatch.setattr(module, name, wrong)


def test_a_page_that_is_not_padded_overlaps_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in(monkeypatch, "round_up", lambda position, step: position // step * step)
    found = refuted((preset("dsv4-flash"),))
    assert found == {"pages_are_disjoint", "entries_stay_in_their_page", "padding_is_the_least"}


def test_a_counterexample_tells_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in(monkeypatch, "visible_entries", lambda query, ratio: query // ratio)
    (theorem,) = (t for t in ARITHMETIC if t.name == "visible_entries_are_counted")
    (told,) = prove(theorem, FEW, Asking()).told
    assert {part.split(" = ")[0] for part in told.split(", ")} == {"entry", "query", "ratio"}


def made(*questions: Question, fails: bool = False) -> Theorem:
    def asked(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
        del geometries
        yield from questions

    return Theorem("H-1", "made_up", "Something holds.", "here", asked, fails)


def test_a_vacuous_theorem_is_refuted() -> None:
    x = z3.Int("x")
    result = prove(made(Question("here", (x > 1, x < 2), x == 7)), FEW, Asking())
    assert result.verdict is Verdict.REFUTED
    assert result.told == (f"here: {VACUOUS}",)


def test_a_theorem_without_a_case_is_vacuous() -> None:
    result = prove(made(), FEW, Asking())
    assert (result.verdict, result.told) == (Verdict.REFUTED, (VACUOUS,))


def test_a_theorem_of_failure_needs_a_counterexample() -> None:
    x = z3.Int("x")
    shown = prove(made(Question("", (x > 1,), x > 2, {"x": x}), fails=True), FEW, Asking())
    assert (shown.verdict, shown.told) == (Verdict.PROVED, ("x = 2",))
    none = prove(made(Question("", (x > 1,), x > 0), fails=True), FEW, Asking())
    assert none.verdict is Verdict.REFUTED


def test_what_z3_cannot_settle_in_time_is_undetermined_and_says_the_limit() -> None:
    x, y, z = numbers("x y z")
    cubes = x * x * x + y * y * y + z * z * z == 33
    result = prove(made(Question("", (), z3.Not(cubes))), FEW, Asking(0.2))
    assert (result.verdict, result.told) == (Verdict.UNDETERMINED, ("no answer in 0.2 s",))


def test_an_interrupted_theorem_is_undetermined() -> None:
    asking = Asking()
    asking.interrupted.set()
    result = prove(made(Question("", (), z3.Int("x") == 1)), FEW, asking)
    assert (result.verdict, result.told) == (Verdict.UNDETERMINED, ("interrupted",))


def test_that_a_tail_needs_less_than_a_window_is_shown_with_numbers() -> None:
    (told,) = prove(blocks.cap_of_a_tail_is_the_least, FEW, Asking()).told
    assert "blocks held = 2" in told
    assert "cap = 3" in told
