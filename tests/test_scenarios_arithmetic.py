"""Faults reported in public that are positions, bytes, caps and numbers: right, and naive."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from fivestate.spec.need import (
    entries_end,
    round_down,
    visible,
    visible_entries,
    window_start,
)
from fivestate.spec.reuse import (
    Asked,
    Availability,
    CacheGroup,
    Geometry,
    Numbers,
    Place,
    Span,
    Tally,
    Why,
    classify,
    resident,
)
from fivestate.spec.reuse.admission import admission_cap
from fivestate.spec.reuse.checks import disjoint, right_bytes
from fivestate.spec.reuse.scenarios import Scenario, read_scenarios
from fivestate.spec.vocabulary import COMPRESSED, WINDOW

FOLDER = Path(__file__).parent / "scenarios"
SCENARIOS = read_scenarios((FOLDER / "public-faults.jsonl").read_text("utf-8"))
TABLE = tomllib.loads((FOLDER / "table.toml").read_text("utf-8"))
ENTRIES = CacheGroup(name="full", state=COMPRESSED, block_size=1)


def b22(said: Scenario) -> None:
    right = {int(said.right.split("{")[1][0])}
    for entries_so_far in (2, 1):  # one chunk to 7, another to 5
        assert {i for i in range(entries_so_far) if visible(i, 5, 4)} == right
        assert set(range(min(visible_entries(5, 4), entries_so_far))) == right
        if entries_so_far == 2:
            assert {i for i in range(entries_so_far) if i <= 5 // 4} != right  # naive


def b24(said: Scenario) -> None:
    group, residual = 4, 4
    steps = {"at once": [20], "token by token": [1] * 20}
    for chunks in steps.values():
        split = entries_end(max(sum(chunks) - residual, 0), group)
        assert (Span(0, split), Span(split, 20)) == said.spans[:2]
    naive = sum(entries_end(max(size - residual, 0), group) for size in steps["token by token"])
    assert (Span(naive, 20),) == said.spans[2:]  # naive: aged by the size of each call


def b33(said: Scenario) -> None:
    size = said.number(r"\+(\d+)\)")
    for block in (0, 7):
        start = block * 100 + 80
        own = Place(start, 100, size, 1, start, start + 20)
        assert not right_bytes(ENTRIES, own)
        naive = Place(start, 100, 100, 1, start, start + 20)
        (reason,) = right_bytes(ENTRIES, naive)
        assert reason.why is Why.OUT_OF_REGION
        spill = Span(start + 20, start + 100)
        assert spill == Span((block + 1) * 100, (block + 1) * 100 + said.spans[0].end)


def b34(said: Scenario) -> None:
    least, naive = said.number(r"register >= (\d+)"), said.number(r"Naive (\d+)")
    assert not right_bytes(ENTRIES, Place(0, 65, 64, 10, 0, least))
    (reason,) = right_bytes(ENTRIES, Place(0, 65, 64, 10, 0, naive))
    assert reason.why is Why.OUT_OF_REGION


def b35(said: Scenario) -> None:
    keys_of_a = ("A id 3", Span(3 * 6, 4 * 6))
    keys_of_b = ("B id 1", Span(4 * 4 + 1 * 4, 4 * 4 + 2 * 4))
    (reason,) = disjoint([keys_of_a, keys_of_b])
    assert reason.why is Why.OVERLAP
    assert reason.value == str(said.spans[0])
    assert len({3, 1}) == 2  # naive: ids are distinct


def b56(said: Scenario) -> None:
    last_query, window = 11, 4
    live = Span(window_start(last_query, window), last_query + 1)
    assert live == said.spans[0]
    assert Span(0, live.start) == said.spans[1]
    assert live.tokens != said.number(r"Naive counts (\d+)")


def b58(said: Scenario) -> None:
    swa, pool = CacheGroup(name="swa", state=WINDOW, block_size=1, window=4), 12
    peak = int(re.findall(r"W\+chunk = (\d+)", " ".join(said.scenario))[0])
    assert admission_cap(swa, 4, 20) == peak - 1  # the query's own row is one of the chunk's
    assert ("ADMIT" in said.right) == (peak <= pool)
    assert admission_cap(ENTRIES, 4, 20) > pool  # naive: charged for the whole sequence


def b73(said: Scenario) -> None:
    tally = Tally()
    tally.admitted("R", Numbers(16, used=0))
    tally.admitted("R", Numbers(16, matched=16, used=16))  # after preemption: its own tokens
    assert f"{tally.total.used}/{tally.total.prompt}" in said.right.split(";")[0]
    tally = Tally()
    for _ in range(4):
        tally.admitted("S", Numbers(16, matched=8, used=8))
    assert f"{tally.total.used}/{tally.total.prompt}" in said.right.split(";")[1]
    assert f"{4 * 8}/{4 * 16}" in said.right_verdict.split("Naive")[1]


def b80(said: Scenario) -> None:
    window, resident_rows, appended = 8, 7, 4
    last_query = resident_rows + appended - 1
    trimmed = window_start(last_query, window)
    assert f"right trim {trimmed}" in said.scenario[1]
    assert resident_rows + appended - trimmed <= window
    naive = window_start(resident_rows, window)
    assert f"naive trim {naive} -> {resident_rows + appended - naive}" in said.scenario[1]


def b85(said: Scenario) -> None:
    coarse = CacheGroup(name="coarse", state=COMPRESSED, block_size=16)
    fine = CacheGroup(name="fine", state=COMPRESSED, block_size=4)
    geometry = Geometry("load", (coarse, fine))
    tally = Tally()
    copies = {"coarse": (resident(0, 16),), "fine": (resident(0, 16),)}
    for request in range(10):
        found = Availability((copies,), known=request > 0)  # the first finds nothing
        tally.admitted(str(request), classify(geometry, Asked(12, 16), found).numbers)
    total = tally.total
    assert f"logical {total.matched}/{total.prompt}, feasible {total.feasible}/" in said.right
    assert f"recoverable {total.recoverable}, used {total.used}" in said.right
    assert total.matched != total.feasible  # naive: one rate, and a cold cache


RUN: dict[str, Callable[[Scenario], None]] = {
    name.upper(): function
    for name, function in list(globals().items())
    if name[0] == "b" and name[1:].isdigit()
}


@pytest.mark.parametrize("scenario", RUN)
def test_the_right_figure_is_given_and_a_naive_rule_fails(scenario: str) -> None:
    RUN[scenario](SCENARIOS[scenario])


def test_this_file_runs_its_section_of_the_table() -> None:
    assert set(RUN) == set(TABLE["arithmetic"])
    assert round_down(31, 16) == 16
