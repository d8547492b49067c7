"""Exports say what the specification says: the same sentences, the same counts."""

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.machines.circle import circle
from tests.machines.two_phase import two_phase
from tests.need_spin import needs_spin

from fivestate.checker import counts
from fivestate.checker.engines import python
from fivestate.checker.exploration import Exploration, Limits
from fivestate.checker.export import mermaid, promela, spin, tla
from fivestate.checker.export.crosscheck import spin_counts
from fivestate.checker.export.simultaneous import Sequenced, Update, sequenced
from fivestate.spec.language import Model
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.trees import Apply, Cell, Integer, Literal
from fivestate.spec.models import FAILS, HOLDS, MODELS

SPIN_STATES = 200_000
COMMITTED = counts.load(Path(__file__).with_name("counts.json"))
OURS = [*MODELS.values(), circle(), two_phase(3)]
KEPT = [
    model.name
    for model in (*HOLDS, circle(), two_phase(3))
    if model.name not in COMMITTED or COMMITTED[model.name].distinct <= SPIN_STATES
]
BY_NAME = {model.name: model for model in OURS}


def words(text: str) -> str:
    """Return a text without line breaks, comment marks and Chinese, to look for sentences in."""
    plain = re.sub(r"\s*\([^()]*[^\x00-\x7f][^()]*\)", "", text.replace("\\*", " "))
    return " ".join(plain.split())


def explored(model: Model) -> Exploration:
    return python.explore(model, Limits(), threading.Event(), edges=True)


def counted(model: Model) -> counts.Counts:
    return counts.measure([model])[model.name]


@pytest.mark.parametrize("name", BY_NAME)
def test_a_text_is_the_same_each_time(name: str) -> None:
    model = BY_NAME[name]
    again = replace(model)
    assert promela.export(model, properties=True) == promela.export(again, properties=True)
    assert tla.export(model) == tla.export(again)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_action_and_property_is_there_with_its_sentence(name: str) -> None:
    model = BY_NAME[name]
    spin_text = words(promela.export(model, properties=True))
    tla_text = words(tla.export(model)[0])
    for action in model.actions:
        assert words(f"{action.clause} {action.name}: {action.sentence}") in spin_text
        assert words(f"{action.clause}: {action.sentence}") in tla_text
    for claim in model.claims:
        assert words(f"{claim.clause}: {claim.sentence}") in tla_text
        if claim.kind is Kind.STEP:
            assert "PROPERTIES" in tla.export(model)[1]


@pytest.mark.parametrize("name", BY_NAME)
def test_every_step_stands_on_a_line_of_its_own(name: str) -> None:
    model = BY_NAME[name]
    lines = promela.steps_by_line(promela.export(model))
    assert list(lines.values()) == [step.label for step in model.steps if step.possible]


@pytest.mark.parametrize("name", BY_NAME)
def test_tla_brackets_match_and_no_name_hides_another(name: str) -> None:
    module, configuration = tla.export(BY_NAME[name])
    code = re.sub(r'\\\*.*|"[^"]*"', "", module)
    for opening, closing in ("()", "[]", "{}", ("<<", ">>")):
        assert code.count(opening) == code.count(closing)
    defined = re.findall(r"^(\w+)(?:\(.*\))? ==", code, re.MULTILINE)
    constants = re.findall(r"^CONSTANTS\n((?:    \w+,?\n)*)", code, re.MULTILINE)
    declared = re.findall(r"\w+", " ".join(constants))
    declared += re.findall(r"^    (\w+),?  $", code, re.MULTILINE)  # variables: comment removed
    assert len({*defined, *declared}) == len([*defined, *declared])
    bound = set(re.findall(r"(\w+) \\in", code)) - {*declared}
    assert not bound & {*defined, *declared}
    assert re.findall(r"^    (\w+) = ", configuration, re.MULTILINE) == re.findall(
        r"\w+",
        "".join(constants),
    )


@needs_spin
@pytest.mark.parametrize("name", KEPT)
def test_spin_finds_the_same_properties_kept(name: str) -> None:
    found = spin.search(promela.export(BY_NAME[name], properties=True), profile=True)
    assert found.distinct == (COMMITTED.get(name) or counted(BY_NAME[name])).distinct


@needs_spin
@pytest.mark.parametrize("name", [model.name for model in FAILS])
def test_spin_finds_what_is_broken(name: str) -> None:
    with pytest.raises(spin.ViolatedError, match="assertion violated"):
        spin.search(promela.export(MODELS[name], properties=True))


@needs_spin
def test_circular_effects_and_negative_numbers_count_the_same() -> None:
    assert any(sequenced(step.updates).saved for step in circle().steps)
    assert "FLOOR(" in promela.export(circle())
    assert spin_counts(circle()) == counted(circle())


@needs_spin
def test_a_value_out_of_its_range_is_an_error_for_spin_too() -> None:
    assert explored(circle(greedy=True)).findings
    with pytest.raises(spin.ViolatedError):
        spin_counts(circle(greedy=True))


@needs_spin
def test_depth_first_counts_the_same() -> None:
    text = promela.export(two_phase(3))
    wide, deep = spin.search(text), spin.search(text, breadth_first=False)
    assert (wide.distinct, wide.transitions) == (deep.distinct, deep.transitions)


def test_effects_are_ordered_and_saved_only_in_a_circle() -> None:
    def read(at: int) -> Cell:
        return Cell(at, Integer())

    assert sequenced([(0, read(1)), (1, read(2))]) == Sequenced((), ((0, read(1)), (1, read(2))))
    assert sequenced([(1, read(2)), (2, Literal(0, Integer()))]).updates[0][0] == 1
    assert sequenced([(0, Literal(0, Integer())), (1, read(0))]).updates[0][0] == 1
    swap = sequenced([(0, read(1)), (1, read(0))])
    assert swap.saved == (0,)
    own = Apply("+", (read(0), read(0)), Integer())
    assert sequenced([(0, own)]) == Sequenced((), ((0, own),))


@needs_spin
def test_effects_done_one_after_the_other_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(updates: Sequence[Update]) -> Sequenced:
        return Sequenced((), tuple(updates))

    monkeypatch.setattr(promela, "sequenced", careless)
    with pytest.raises((spin.SpinError, AssertionError)):
        assert spin_counts(circle()) == counted(circle())


@needs_spin
@pytest.mark.parametrize("lost", range(5))
def test_a_lost_step_is_found(lost: int) -> None:
    text = promela.export(two_phase(2))
    lines = text.splitlines(keepends=True)
    start = list(promela.steps_by_line(text))[lost] - 1
    end = next(at for at in range(start, len(lines)) if lines[at].strip() == "}")
    found = spin.search("".join(lines[:start] + lines[end + 1 :]))
    expected = counted(two_phase(2))
    assert (found.distinct, found.transitions) != (expected.distinct, expected.transitions)


@needs_spin
@pytest.mark.parametrize(
    "room",
    [spin.Room(depth=5), spin.Room(memory_mb=1), spin.Room(memory_mb=12, hash_bits=16)],
    ids=["depth", "memory for the table", "memory for states"],
)
def test_a_search_cut_short_is_no_count(room: spin.Room) -> None:
    with pytest.raises(spin.TruncatedError):
        spin.search(promela.export(two_phase(7)), room, breadth_first=room.depth > 5)


@needs_spin
def test_a_state_too_large_is_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    run = spin._run

    def small(folder: str, *command: str) -> str:
        options = ["-DVECTORSZ=8"] * (command[0] == "gcc")
        return run(folder, command[0], *options, *command[1:])

    monkeypatch.setattr(spin, "_run", small)
    with pytest.raises(spin.TruncatedError, match="VECTORSZ"):
        spin.search(promela.export(two_phase(2)))


@needs_spin
def test_what_spin_refuses_is_said() -> None:
    with pytest.raises(spin.SpinError, match="undeclared"):
        spin.search("active proctype m() { nonsense here }")


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(spin.NotInstalledError, match="spin is not installed"):
        spin.search("")


SAID = """
Full statespace search for:
State-vector 20 byte, depth reached {depth}, errors: 0
 {stored} states, stored
 {matched} states, matched
 {all} transitions (= stored+matched)
    8.195\ttotal actual memory usage
pan: elapsed time 0.01 seconds
"""


def test_spins_answer_is_read() -> None:
    found = spin.parse(SAID.format(depth=4, stored=18, matched=43, all=61))
    assert (found.distinct, found.transitions, found.depth) == (18, 60, 4)
    assert (found.state_bytes, found.memory_mb, found.seconds) == (20, 8.195, 0.01)


@pytest.mark.parametrize("sign", spin.TRUNCATED)
def test_spins_excuses_are_heard(sign: str) -> None:
    with pytest.raises(spin.TruncatedError, match=re.escape(sign)):
        spin.parse(f"error: {sign}\n" + SAID.format(depth=4, stored=18, matched=43, all=61))


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Full statespace search for:",
        SAID.format(depth=4, stored=18, matched=43, all=60),
        SAID.format(depth=4, stored=0, matched=0, all=0),
        SAID.format(depth=4, stored="1.3894e+08", matched=43, all=61),
        SAID.format(depth=4, stored=18, matched=43, all=61).replace("Full", "Bit"),
    ],
)
def test_an_answer_that_is_not_understood_is_no_count(said: str) -> None:
    with pytest.raises(spin.SpinError):
        spin.parse(said)


def test_the_life_of_a_participant() -> None:
    expected = """\
---
title: member of two-phase-2
---
stateDiagram-v2
    [*] --> WORKING
    WORKING --> PREPARED : prepare
    WORKING --> ABORTED : give_up, obey_abort
    PREPARED --> COMMITTED : obey_commit
    PREPARED --> ABORTED : obey_abort
"""
    assert mermaid.life(explored(two_phase(2)), "member") == expected


def test_a_life_of_numbers_names_them() -> None:
    text = mermaid.life(explored(circle()), "number")
    assert 'state "-1" as x1' in text or 'state "-1" as x1_2' in text
    assert len(set(re.findall(r" as (\w+)", text))) == text.count(" as ")


def test_a_life_that_cannot_be_drawn_is_refused() -> None:
    exploration = explored(two_phase(2))
    with pytest.raises(ValueError, match="did you mean 'member'"):
        mermaid.life(exploration, "membre")
    with pytest.raises(ValueError, match="without edges"):
        mermaid.life(replace(exploration, edges=None), "member")


def test_a_count_cut_short_is_refused() -> None:
    stopped = replace(explored(two_phase(2)), stopped="interrupted")
    with pytest.raises(ValueError, match="interrupted"):
        counts.count(stopped)
    assert "%% incomplete: interrupted" in mermaid.life(stopped, "member")
