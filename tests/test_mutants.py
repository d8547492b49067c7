"""Teeth: every fault that can be listed is noticed, and the score never falls.

After a change of the specification, and only then::

    fivestate mutants --json > tests/mutants.json
"""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fivestate.checker.cli import app
from fivestate.checker.engines import python
from fivestate.checker.exploration import Limits
from fivestate.checker.judge import check
from fivestate.checker.mutants import score
from fivestate.checker.mutants.difference import Graph
from fivestate.checker.mutants.every import every_mutant
from fivestate.checker.mutants.judge import Answer, Question, compare, explore, search
from fivestate.checker.mutants.mutant import RESTRICTING, Kind, Mutant
from fivestate.checker.mutants.named.amend import amended, without
from fivestate.checker.mutants.outcome import ROUTED, Fate
from fivestate.checker.mutants.run import Run, cores, live
from fivestate.checker.mutants.score import Line
from fivestate.checker.mutants.tighten import loosened, tightened
from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language import Machine, Model
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.ground import MEANING
from fivestate.spec.language.properties import Kind as PropertyKind
from fivestate.spec.language.tracing import Action, Guard
from fivestate.spec.language.trees import FALSE, Apply, Boolean, Integer, Literal, Node
from fivestate.spec.models import HOLDS, MODELS

BASELINE = Path(__file__).with_name("mutants.json")
QUICK = ("scheme-a", "homogeneous", "hybrid", "sequence", "sequence-overlap", "one-slot", "index")
"""Models that answer for all their mutants while one waits."""

MUTANTS = {mutant.name: mutant for mutant in every_mutant()}
COMMITTED: dict[str, Line] = score.load(BASELINE)


def never(action: Action) -> Action:
    """Return an action that can never be taken: as good as none, and properties may name it."""
    return replace(action, guards=(*action.guards, Guard("never", FALSE)))


def plain(model: Model, mutant: Mutant) -> Model:
    """Return the model with the mutant's actions in their place: what a reader would write."""
    old = model.machine
    instead = [mutant.actions.get(action.name, action) or never(action) for action in old.actions]
    known = {action.name for action in old.actions}
    more = [action for name, action in mutant.actions.items() if name not in known]
    machine = replace(old, next=(*instead, *filter(None, more)))
    refines = model.refines and replace(model.refines, machine=machine)
    return replace(model, machine=machine, refines=refines)


def answer(graph: Graph, mutant: Mutant) -> Answer:
    question = Question(mutant)
    return compare(graph, [question], None)[0] or search(graph, [question], None)[0]


# what is committed


def test_every_mutant_has_a_name_of_its_own() -> None:
    names = Counter(mutant.name for mutant in every_mutant())
    assert [name for name, times in names.items() if times > 1] == []


def test_what_is_committed_is_of_these_mutants() -> None:
    assert list(COMMITTED) == list(MUTANTS), "fivestate mutants --json > tests/mutants.json"


def test_there_are_enough_of_every_kind() -> None:
    kinds = Counter(mutant.kind for mutant in MUTANTS.values())
    assert set(kinds) == set(Kind)
    assert kinds[Kind.NAMED] >= 30
    assert sum(kinds.values()) >= 120


def test_a_named_mutant_says_what_is_wrong_and_who_had_it() -> None:
    named = [mutant for mutant in MUTANTS.values() if mutant.kind is Kind.NAMED]
    assert all(mutant.sentence.endswith(".") and mutant.source for mutant in named)


def test_nothing_survives() -> None:
    """Also what only takes steps away is missed by somebody (D-25)."""
    left = [e.name for e in COMMITTED.values() if e.caught_by is None and not e.equivalent]
    assert left == []


def test_every_named_mutant_is_caught() -> None:
    named = [each for each in COMMITTED.values() if each.kind is Kind.NAMED]
    assert [each.name for each in named if each.caught_by is None] == []


def test_the_counts_are_those_of_the_lines() -> None:
    plain_score: Any = json.loads(BASELINE.read_text("utf-8"))
    caught = sum(each.caught_by is not None for each in COMMITTED.values())
    equivalent = sum(each.equivalent for each in COMMITTED.values())
    assert (plain_score["caught"], plain_score["equivalent"]) == (caught, equivalent)
    assert plain_score["survived"] + plain_score["unknown"] == len(COMMITTED) - caught - equivalent


# the ratchet


def test_what_small_models_caught_they_still_catch() -> None:
    chosen = [MUTANTS[name] for name, each in COMMITTED.items() if each.slice in QUICK]
    run = Run(cores(), live, soundness=False)
    outcomes = run.judge(chosen, [MODELS[name] for name in QUICK])
    assert score.worse(COMMITTED, outcomes) == []
    found = {o.mutant.name: score.line(o) for o in outcomes if o.caught_by is not None}
    differ = [
        name
        for name, each in found.items()
        if (each.caught_by, each.length, each.slice)
        != (COMMITTED[name].caught_by, COMMITTED[name].length, COMMITTED[name].slice)
    ]
    assert differ == []


@pytest.mark.skipif("FIVESTATE_FULL" not in os.environ, reason="minutes; set FIVESTATE_FULL")
def test_every_mutant_is_judged_as_it_was() -> None:
    outcomes = Run(cores(), live).judge(every_mutant(), HOLDS)
    assert {each.name: each for each in map(score.line, outcomes)} == COMMITTED


def test_a_score_that_falls_is_named() -> None:
    (caught,) = (each for each in COMMITTED.values() if each.name == "drop arrive.idle")
    outcomes = Run(1, None, soundness=False).judge([MUTANTS[caught.name]], [MODELS["scheme-a"]])
    assert outcomes[0].fate is Fate.EQUIVALENT  # nobody was asked who could have noticed
    assert score.worse({caught.name: caught}, outcomes) == [
        f"drop arrive.idle was caught by {caught.caught_by}",
    ]


# conditions that are true less often


def number(value: int) -> Node:
    return Literal(value, Integer())


def conditions(values: tuple[int, ...]) -> list[Node]:
    """Return conditions of many shapes on some numbers, all with the same places."""
    one, two, three = map(number, values)
    plain_ones = [Apply(op, (one, two), Boolean()) for op in ("<", "<=", ">", ">=", "==")]
    other = Apply("<=", (two, three), Boolean())
    shapes = [
        Apply(op, (each, other), Boolean())
        for op in ("and", "or", "implies")
        for each in plain_ones
    ]
    negated = [Apply("not", (each,), Boolean()) for each in (*plain_ones, *shapes)]
    chosen = [Apply("ite", (plain_ones[0], other, each), Boolean()) for each in shapes]
    return [*plain_ones, *shapes, *negated, *chosen]


def value(node: Node) -> int:
    match node:
        case Literal(code):
            return code
        case Apply(operator, arguments):
            return MEANING[operator](*map(value, arguments))
        case _:
            raise AssertionError(node)


def test_what_is_tightened_implies_what_it_was_and_what_is_loosened_follows() -> None:
    numbers = list(product(range(3), repeat=3))
    for change, fails in ((tightened, (0, 1)), (loosened, (1, 0))):
        by_shape: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for values in numbers:
            for shape, condition in enumerate(conditions(values)):
                for at, (_, changed) in enumerate(change(condition)):
                    pair = (value(condition), value(changed))
                    by_shape.setdefault((shape, at), set()).add(pair)
        assert len(by_shape) > 20
        assert [key for key, pairs in by_shape.items() if fails in pairs] == []


def test_what_only_takes_steps_away_adds_none() -> None:
    graph = Graph(explore(MODELS["one-slot"]))
    restricting = [m for m in MUTANTS.values() if m.kind in RESTRICTING]
    ours = [mutant for mutant in restricting if mutant.machine is ALLOCATOR]
    assert [mutant.name for mutant in ours if graph.difference(mutant).added] == []


# three ways to the same answer


def refuted(model: Model) -> set[tuple[str, int | None]]:
    """Judge a model as `fivestate check` does, by the engine that is the oracle."""
    report = check(model, python.explore)
    return {
        (judgement.name, None if judgement.story is None else judgement.story.length)
        for judgement in report.refuted
        if judgement.kind is not PropertyKind.LIVENESS
    }


def some(machine: Machine, every: int) -> Iterator[Mutant]:
    yield from [mutant for mutant in MUTANTS.values() if mutant.machine is machine][::every]


@pytest.mark.parametrize(
    ("name", "every"),
    [("scheme-a", 1), ("homogeneous", 9), ("hybrid", 23), ("sequence-overlap", 11)],
)
def test_a_schema_or_a_part_answers_as_the_mutant_itself_would(name: str, every: int) -> None:
    model = MODELS[name]
    graph = Graph(explore(model))
    compared = 0
    for mutant in some(model.machine, every):
        found = answer(graph, mutant)
        try:
            itself = plain(model, mutant)
            expected = refuted(itself)
        except SpecError:  # it leaves a variable unread or unwritten, so it cannot be written down
            continue
        assert {(each.name, each.length) for each in found.refutations} == expected, mutant.name
        assert found.sound == any(property_name == "sound" for property_name, _ in expected)
        compared += not found.same
    assert compared > 3


def test_an_equal_graph_is_equal() -> None:
    model = MODELS["homogeneous"]
    graph = Graph(explore(model))
    same = [mutant for mutant in some(ALLOCATOR, 5) if graph.difference(mutant).same]
    for mutant in same[:25]:
        itself = python.explore(plain(model, mutant), Limits(), threading.Event(), edges=True)
        assert list(itself.states) == list(graph.exploration.states), mutant.name
        labels = {s.label: n for s, n in zip(itself.model.steps, itself.firings, strict=True) if n}
        known = zip(model.steps, graph.exploration.firings, strict=True)
        assert labels == {step.label: n for step, n in known if n}, mutant.name


def test_what_the_language_refuses_to_build_is_caught() -> None:
    graph = Graph(explore(MODELS["hybrid"]))
    (refusal,) = answer(graph, MUTANTS["weaken made: bytes always"]).refutations
    assert (refusal.name, refusal.length) == (ROUTED, 0)


def test_a_fault_that_only_liveness_notices_is_left_to_it() -> None:
    chosen = [MUTANTS["bad load keeps its copy"]]
    (without_it,) = Run(1, None).judge(chosen, [MODELS["one-slot"]])
    assert without_it.fate is Fate.SURVIVED
    (with_it,) = Run(1, live).judge(chosen, [MODELS["one-slot"]])
    assert with_it.fate is Fate.CAUGHT
    assert with_it.caught_by is not None
    assert with_it.caught_by.length is None


# runs that end early, and names that are wrong


def test_an_interrupted_run_says_what_is_known() -> None:
    interrupted = threading.Event()

    def stop(model: str, done: int, of: int) -> None:
        del model, of
        if done == 3:
            interrupted.set()

    run = Run(1, None, soundness=False, interrupted=interrupted, progress=stop)
    outcomes = run.judge(list(some(ALLOCATOR, 20)), [MODELS["homogeneous"], MODELS["hybrid"]])
    fates = Counter(outcome.fate for outcome in outcomes)
    assert fates[Fate.UNKNOWN] >= len(outcomes) - 3
    assert fates[Fate.SURVIVED] == fates[Fate.EQUIVALENT] == 0


def test_as_many_processes_as_asked_answer_the_same() -> None:
    chosen, models = list(some(ALLOCATOR, 25)), [MODELS["homogeneous"], MODELS["hybrid"]]
    alone, together = (Run(jobs, None).judge(chosen, models) for jobs in (1, 2))
    assert list(map(score.line, alone)) == list(map(score.line, together))


def test_a_fault_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="evict has no guard 'unlesed'"):
        without("evict", "unlesed")
    with pytest.raises(ValueError, match="allocator has no action 'evct'"):
        amended("evct", lambda _: None)


def test_what_is_no_score_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "score.json"
    for text in ("", "[]", '{"mutants": [{"name": "x"}]}', '{"mutants": 1}'):
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match="is no score of mutants"):
            score.load(path)


# the command


def test_the_command_prints_json_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    code = app.run(["mutants", "--model", "scheme-a", "--json", "--jobs", "1"])
    out, err = capfd.readouterr()
    told: Any = json.loads(out)
    keys = {"name", "kind", "caught_by", "length", "soundness_alone", "slice", "equivalent"}
    assert all(set(mutant) == keys for mutant in told["mutants"])
    assert told["caught"] + told["equivalent"] + told["survived"] == len(told["mutants"])
    assert code == (1 if told["survived"] else 0)
    assert err == ""


def test_the_command_shows_a_table(capfd: pytest.CaptureFixture[str]) -> None:
    app.run(["mutants", "--model", "scheme-a", "--kind", "drop-guard", "--verbose"])
    out, err = capfd.readouterr()
    assert "scheme-a: drop compute.absent" in out
    assert "drop-guard" in out.splitlines()[-3]
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "drop-gard"), "no kind 'drop-gard'; did you mean 'drop-guard'?"),
        (("--action", "evct"), "no action 'evct'; did you mean 'evict'?"),
        (("--model", "hybird"), "no model 'hybird' that must hold; did you mean 'hybrid'?"),
        (("--model", "scheme-a", "--action", "evict"), "no mutant is of that kind and of that"),
        (("--baseline", "/nowhere/score.json"), "cannot read /nowhere/score.json"),
        (("--baseline", __file__), "is no score of mutants"),
        (("--jobs", "0"), "greater than or equal to 1"),
    ],
)
def test_wrong_usage_is_64(
    arguments: tuple[str, ...],
    message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    code = app.run(["mutants", *arguments])
    out, err = capfd.readouterr()
    assert (code, out) == (64, "")
    assert message in err
    assert err.count("\n") == 1
