"""The ``python`` engine: the whole graph, shortest stories, and no proof of what it did not see."""

import os
import subprocess
import sys
import threading
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults import without_guard
from tests.machines.two_phase import two_phase

from fivestate.checker import graph as graphs
from fivestate.checker.engines.python import explore
from fivestate.checker.exploration import RANGE, Edges, Exploration, Limits, Progress
from fivestate.checker.graph import can_reach, to_networkx
from fivestate.checker.judge import Report, check
from fivestate.checker.verdicts import Verdict
from fivestate.spec.language import (
    EVERY,
    Kind,
    Machine,
    Model,
    OutOfRange,
    Refinement,
    Run,
    Scalar,
    Size,
    State,
    Term,
    action,
    escape,
    invariant,
    require,
    step,
    within,
    witness,
)
from fivestate.spec.language.ground import evaluate
from fivestate.spec.models import MODELS

SMALL = [
    *(MODELS[name] for name in ("scheme-a", "homogeneous", "hybrid", "hash-only")),
    MODELS["sequence"].set("tokens=5"),
    MODELS["sequence-overlap"].set("tokens=6"),
]
"""The interpreter is slow; test_counts.py walks larger ones with it, once."""

TOP = Size("top", "where counting ends", 1, 64)


class Dial(State):
    """A number."""

    n = Scalar("the number", of=within(0, TOP), initial=0)


@action("C-1", state=EVERY)
def up(s: Dial) -> None:
    """Count up, out of the range in the end."""
    s.n = s.n + 1


@action("C-2", state=EVERY)
def reset(s: Dial) -> None:
    """Start anew, but not from halfway."""
    require(below=s.n < 10, counted=s.n > 0)
    s.n = 0


@invariant("C-3")
def below_5(s: Dial) -> Term:
    """The number is below 5."""
    return s.n < 5


@invariant("C-3")
def below_30(s: Dial) -> Term:
    """The number is below 30."""
    return s.n < 30


@invariant("C-3")
def positive(s: Dial) -> Term:
    """The number is not negative."""
    return s.n >= 0


@step("C-4")
def never_from_7(before: Dial, after: Dial) -> Term:
    """No step leads from 7 to 8."""
    return ~((before.n == 7) & (after.n == 8))


@step("C-4")
def by_one_or_to_0(before: Dial, after: Dial) -> Term:
    """A step counts by one or starts anew."""
    return (after.n == before.n + 1) | (after.n == 0)


@witness("C-5")
def is_3(s: Dial) -> Term:
    """The number is 3."""
    return s.n == 3


@witness("C-5")
def is_30(s: Dial) -> Term:
    """The number is 30."""
    return s.n == 30


@witness("C-5")
def is_negative(s: Dial) -> Term:
    """The number is negative."""
    return s.n < 0


@escape("C-6")
def above_4(s: Dial) -> Term:
    """A number above 4 can still get small."""
    return s.n > 4


@escape("C-6")
def is_6(s: Dial) -> Term:
    """A 6 goes away."""
    return s.n == 6


def the_same(s: Dial, a: Dial) -> None:
    """A counter is a counter that stops at 20."""
    a.n = s.n


@action("C-1", state=EVERY)
def up_to_20(s: Dial) -> None:
    """Count up to 20."""
    require(below=s.n < 20)
    s.n = s.n + 1


PROPERTIES = (
    *(below_5, below_30, positive, never_from_7, by_one_or_to_0),
    *(is_3, is_30, is_negative, above_4, is_6),
)
COUNTER = Machine("counter", Dial, (up, reset), PROPERTIES)
STOPS = Machine("stops", Dial, (up_to_20, reset), ())
COUNTING = Model(
    "counter",
    "It counts to 40 and then leaves its range.",
    COUNTER,
    {"top": 40},
    refines=Refinement("R-9", COUNTER, STOPS, the_same),
)

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNDETERMINED
TRUTH = {
    RANGE: R,  # 40 + 1
    "below_5": R,
    "below_30": R,
    "positive": P,
    "never_from_7": R,
    "by_one_or_to_0": P,
    "is_3": P,
    "is_30": P,
    "is_negative": R,
    "above_4": R,  # from 10 on there is no way back
    "is_6": P,
    "the_same": R,  # from 20 to 21
}
SHOWN_BY_8 = {"below_5": R, "never_from_7": R, "is_3": P}
"""What the first nine numbers decide."""


def seen(model: Model, limits: Limits | None = None) -> Exploration:
    return explore(model, limits or Limits(), threading.Event(), edges=True)


def verdicts(report: Report) -> dict[str, Verdict]:
    return {judgement.name: judgement.verdict for judgement in report.judgements}


Levels = list[set[tuple[int, ...]]]
Steps = Counter[tuple[tuple[int, ...], str, tuple[int, ...]]]


def by_hand(model: Model) -> tuple[Levels, Steps]:
    """Return the states at each distance and every step, as the language's interpreter has them."""
    run = Run(model)
    levels, known = [{run.state}], {run.state}
    steps: Steps = Counter()
    while levels[-1]:
        levels.append(set())
        for state in levels[-2]:
            run.state = state
            for each in model.steps:
                if run.refusal(each) is not None:
                    continue
                try:
                    after = run.after(each)
                except OutOfRange:
                    continue
                steps[state, each.label, after] += 1
                if after not in known:
                    known.add(after)
                    levels[-1].add(after)
    return levels[:-1], steps


@pytest.mark.parametrize("model", SMALL, ids=lambda model: model.name)
def test_it_finds_the_graph_that_a_walk_by_hand_finds(model: Model) -> None:
    agree(seen(model), *by_hand(model))


def test_it_finds_the_graph_of_a_counter_that_leaves_its_range() -> None:
    levels, steps = by_hand(COUNTING)
    assert levels == [{(n,)} for n in range(41)]
    assert set(steps) == {((n,), "up()", (n + 1,)) for n in range(40)} | {
        ((n,), "reset()", (0,)) for n in range(1, 10)
    }
    agree(seen(COUNTING), levels, steps)


def labelled(graph: "nx.MultiDiGraph[int]") -> list[tuple[int, int, str]]:
    return [(a, b, str(data["step"])) for a, b, data in graph.edges(data=True)]


def agree(found: Exploration, levels: Levels, steps: Steps) -> None:
    assert found.levels == [len(level) for level in levels]
    ends = np.cumsum(found.levels)
    numbered = [set(found.states[end - n : end]) for end, n in zip(ends, found.levels, strict=True)]
    assert numbered == levels
    assert found.transitions == steps.total()
    graph = to_networkx(found)
    states = found.states
    assert Counter((states[a], label, states[b]) for a, b, label in labelled(graph)) == steps


def test_a_walk_by_hand_would_notice_a_guard_that_the_engine_forgets() -> None:
    levels, steps = by_hand(MODELS["homogeneous"])
    forgetful = seen(without_guard(MODELS["homogeneous"], "lease", "fresh"))
    with pytest.raises(AssertionError):
        agree(forgetful, levels, steps)


def test_two_phase_commit_has_the_published_number_of_states() -> None:
    assert seen(two_phase(3)).distinct == 288


def shortest(found: Exploration, graph: "nx.MultiDiGraph[int]", name: str) -> int:
    """Return how many steps it takes at least to decide a property, by networkx."""
    model = found.model
    distance = nx.single_source_shortest_path_length(graph, 0)
    (claim,) = (claim for claim in model.claims if claim.name == name)
    if claim.kind is Kind.STEP:
        by_label = {each.label: model.cases(claim, each.during) for each in model.steps}
        return min(
            distance[a] + 1
            for a, b, label in labelled(graph)
            if not all(
                evaluate(c.condition, found.states[a], found.states[b]) for c in by_label[label]
            )
        )
    wanted = claim.kind is Kind.WITNESS
    return min(
        distance[number]
        for number, state in enumerate(found.states)
        if any(bool(evaluate(c.condition, state)) is wanted for c in model.cases(claim))
    )


@pytest.mark.parametrize("name", ["hash-only", "homogeneous", "counter"])
def test_stories_are_shortest(name: str) -> None:
    model = COUNTING if name == "counter" else MODELS[name]
    told = {
        judgement.name: judgement.story.length
        for judgement in check(model, explore).judgements
        if judgement.story is not None
        and judgement.kind in {Kind.INVARIANT, Kind.STEP, Kind.WITNESS}
    }
    assert told
    found = seen(model)
    graph = to_networkx(found)
    assert told == {claim: shortest(found, graph, claim) for claim in told}


def test_the_lengths_are_those_that_can_be_counted_by_hand() -> None:
    told = {j.name: j.story.length for j in check(COUNTING, explore).judgements if j.story}
    assert told == {
        RANGE: 41,
        "below_5": 5,
        "below_30": 30,
        "never_from_7": 8,
        "is_3": 3,
        "is_30": 30,
        "above_4": 10,
        "the_same": 21,
    }


def test_everything_is_decided_when_everything_is_seen() -> None:
    report = check(COUNTING, explore)
    assert report.exploration.stopped == ""
    assert verdicts(report) == TRUTH
    assert report.verdict is R


@pytest.mark.parametrize("limit", range(1, 41))
def test_a_search_cut_short_decides_what_it_has_seen_and_proves_nothing(limit: int) -> None:
    report = check(COUNTING, explore, Limits(states=limit))
    assert report.exploration.distinct == limit
    assert report.exploration.stopped == f"limit of {limit} states"
    last = limit - 1  # the highest number that was reached
    decided = {
        "below_5": (R, last >= 5),
        "below_30": (R, last >= 30),
        "never_from_7": (R, last >= 8),
        "is_3": (P, last >= 3),
        "is_30": (P, last >= 30),
        "the_same": (R, last >= 21),
    }
    assert verdicts(report) == {
        name: decided[name][0] if name in decided and decided[name][1] else U for name in TRUTH
    }


def test_no_limit_makes_a_proof_of_a_part() -> None:
    whole = verdicts(check(MODELS["hash-only"], explore))
    kinds = {claim.name: claim.kind for claim in MODELS["hash-only"].claims}
    refuted = 0
    for limit in (1, 60, 120, 180):
        report = check(MODELS["hash-only"], explore, Limits(states=limit))
        assert report.exploration.stopped
        for name, verdict in verdicts(report).items():
            assert verdict in {U, whole[name]}
            assert verdict is not P or kinds[name] is Kind.WITNESS
        refuted += report.verdict is R
    assert refuted  # some of these cuts come after the fault, which stays refuted


def test_no_time_and_an_interrupt_stop_it_before_the_first_state_is_explored() -> None:
    interrupted = threading.Event()
    interrupted.set()
    for report, reason in (
        (check(COUNTING, explore, Limits(seconds=0)), "limit of 0 s"),
        (check(COUNTING, explore, interrupted=interrupted), "interrupted"),
    ):
        assert report.exploration.stopped == reason
        assert (report.exploration.distinct, report.exploration.transitions) == (1, 0)
        assert set(verdicts(report).values()) == {U}
        assert report.verdict is U


def test_an_interrupt_is_seen_in_the_middle() -> None:
    interrupted = threading.Event()
    heard: list[int] = []

    def progress(found: int, explored: int) -> None:
        heard.append(found)
        if explored:
            interrupted.set()

    model = MODELS["sequence"]
    report = check(model, explore, interrupted=interrupted, progress=progress)
    assert report.exploration.stopped == "interrupted"
    assert heard == sorted(heard)
    assert len(heard) == 2
    assert 1 < heard[1] <= report.exploration.distinct
    assert report.verdict is U


def test_an_interrupt_while_the_simpler_machine_is_explored_refutes_nothing() -> None:
    interrupted = threading.Event()

    def engine(
        model: Model,
        limits: Limits,
        interrupted: threading.Event,
        *,
        edges: bool,
        progress: Progress | None = None,
    ) -> Exploration:
        found = explore(model, limits, interrupted, edges=edges, progress=progress)
        interrupted.set()
        return found

    report = check(MODELS["homogeneous"], engine, interrupted=interrupted)
    assert report.exploration.stopped == ""
    judged = verdicts(report)
    assert judged.pop("as_scheme_a") is U
    assert set(judged.values()) == {P}
    assert report.verdict is U


@st.composite
def edges_and_goal(draw: st.DrawFn) -> tuple[list[list[int]], list[bool]]:
    size = draw(st.integers(1, 8))
    node = st.integers(0, size - 1)
    targets = draw(st.lists(st.lists(node, max_size=4), min_size=size, max_size=size))
    return targets, draw(st.lists(st.booleans(), min_size=size, max_size=size))


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(edges_and_goal())
def test_who_can_reach_a_goal_is_whom_networkx_calls_its_ancestors(
    drawn: tuple[list[list[int]], list[bool]],
) -> None:
    targets, goal = drawn
    offsets = np.cumsum([0, *map(len, targets)])
    flat = np.array([t for each in targets for t in each], dtype=np.int64)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(targets)))
    graph.add_edges_from((a, b) for a, each in enumerate(targets) for b in each)
    wanted = {n for n, is_goal in enumerate(goal) if is_goal}
    expected = wanted.union(*(nx.ancestors(graph, n) for n in wanted))
    reached = can_reach(Edges(offsets, flat, flat), np.array(goal))
    assert set(np.flatnonzero(reached)) == expected


def test_it_asks_for_the_graph_before_it_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explore(COUNTING, Limits(), threading.Event(), edges=False)
    assert found.edges is None
    with pytest.raises(ValueError, match="explore with edges=True"):
        to_networkx(found)
    monkeypatch.setattr(graphs, "NETWORKX_STATES", 40)
    with pytest.raises(ValueError, match=r"41 states are too many for networkx \(40\)"):
        to_networkx(seen(COUNTING))


FINGERPRINT = """
import hashlib, threading
from fivestate.checker.engines.python import explore
from fivestate.checker.exploration import Limits
from fivestate.spec.models import MODELS
for name in ("homogeneous", "hash-only"):
    found = explore(MODELS[name], Limits(), threading.Event(), edges=True)
    edges = found.edges
    graph = [edges.offsets.tolist(), edges.targets.tolist(), edges.labels.tolist()]
    order = [list(found.parents), list(found.parent_steps), found.levels, found.firings]
    text = repr((found.states, order, graph, sorted(found.findings.items())))
    print(name, hashlib.sha256(text.encode()).hexdigest())
"""


def test_two_searches_are_the_same_whatever_the_hash_seed() -> None:
    prints = [
        subprocess.run(
            [sys.executable, "-c", FINGERPRINT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert prints[0].startswith("homogeneous ")
    assert prints == prints[:1] * 2


def test_two_searches_in_one_process_are_the_same() -> None:
    one, other = seen(MODELS["homogeneous"]), seen(MODELS["homogeneous"])
    assert list(one.states) == list(other.states)
    assert list(one.parent_steps) == list(other.parent_steps)
    assert (one.firings, one.findings) == (other.firings, other.findings)
