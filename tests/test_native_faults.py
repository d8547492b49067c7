"""Faults seeded in the native engine itself are seen in the comparison with the python engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.machines.two_phase import two_phase
from tests.native_models import differences, explored

from fivestate.checker.engines import native, python
from fivestate.checker.engines.native import cache, program, search
from fivestate.checker.engines.native.kernel import kernel
from fivestate.checker.exploration import Exploration
from fivestate.spec.models import MODELS

Changes = list[tuple[str, str]]

FAULTS: dict[str, Changes] = {
    "every other successor is lost": [
        (
            "%i.next = add i64 %i, 1\n  %more = icmp ult i64 %i.next, %n",
            "%i.next = add i64 %i, 2\n  %more = icmp ult i64 %i.next, %n",
        ),
    ],
    "two states with equal bits of hash are taken as one": [
        ("%same = icmp eq i64 %there, %s", "%same = icmp eq i64 %s, %s"),
        ("%a = lshr i64 %hash, 8", "%a = and i64 %hash, 1"),
    ],
    "two workers insert one state, neither seeing the other": [
        ("%owner = call i64 @owner(i64 %h)\n  %bucket", "%owner = and i64 %offset, 1\n  %bucket"),
    ],
    "a table keeps the numbers of one worker alone": [
        ("%entry.new = or i32 %tag, %entry.number\n  store i32 %entry.new", "store i32 %entry"),
    ],
    "a later violation takes the place of the first": [
        ("%open = icmp slt i64 %old, 0\n  br", "%open = icmp sle i64 %old, %number\n  br"),
    ],
}


@pytest.fixture(scope="module")
def known() -> list[Exploration]:
    """What the python engine finds, in a model that holds and in one that does not."""
    return [explored(python.explore, model) for model in (two_phase(5), MODELS["hash-only"])]


def compared(known: list[Exploration]) -> list[str]:
    """Name what the engines do not agree on."""
    found = [differences(right, explored(native.explore, right.model)) for right in known]
    return [difference for differences in found for difference in differences]


@pytest.fixture(autouse=True)
def two_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Search with two workers, whatever the machine, and keep no faulty code."""
    monkeypatch.setattr(native, "workers", lambda: 2)
    monkeypatch.setenv(cache.DIRECTORY, str(tmp_path))


def test_without_a_fault_they_agree(known: list[Exploration]) -> None:
    assert compared(known) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_native_code_is_seen(
    monkeypatch: pytest.MonkeyPatch, known: list[Exploration], fault: str
) -> None:
    def faulty(word: str, steps: int, workers: int) -> str:
        text = kernel(word, steps, workers)
        for right, wrong in FAULTS[fault]:
            assert text.count(right) == 1, right
            text = text.replace(right, wrong)
        return text

    monkeypatch.setattr(program, "kernel", faulty)
    assert compared(known)


def test_a_frontier_cut_short_is_seen(
    monkeypatch: pytest.MonkeyPatch, known: list[Exploration]
) -> None:
    shares = search._shares

    def cut(count: int, workers: int) -> list[tuple[int, int]]:
        *others, (first, last) = shares(count, workers)
        return [*others, (first, max(1, last - 1))]

    monkeypatch.setattr(search, "_shares", cut)
    assert "distinct" in compared(known)
