"""Liveness: what waits is served, and each thing that takes is needed."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fivestate.checker.engines import native
from fivestate.checker.exploration import Exploration, Limits
from fivestate.checker.judge import check
from fivestate.checker.lasso import Rounds
from fivestate.checker.liveness import FairGraph, traps
from fivestate.checker.verdicts import Verdict
from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.allocator.cells import demanded, require_evictable
from fivestate.spec.allocator.derived import kept
from fivestate.spec.allocator.effects import take_frame
from fivestate.spec.allocator.prefetch import prefetch
from fivestate.spec.allocator.requests import admit, lease
from fivestate.spec.allocator.state import Allocator, Group, Prefix
from fivestate.spec.allocator.tiers import store_begin
from fivestate.spec.language import (
    BOOL,
    EVERY,
    Fairness,
    Machine,
    Model,
    Run,
    Scalar,
    State,
    Term,
    action,
    escape,
    require,
    within,
)
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.tracing import Guard
from fivestate.spec.language.trees import FALSE
from fivestate.spec.models import MODELS
from fivestate.spec.vocabulary import COMPRESSED, Device

if TYPE_CHECKING:
    from fivestate.spec.language.tracing import Action, ActionSource


class Bell(State):
    """A bell that is rung, a clock that ticks, and a gate that opens and shuts."""

    rung = Scalar("it was rung", of=BOOL, initial=False)
    clock = Scalar("what the clock shows", of=within(0, 2), initial=0)
    gate = Scalar("the gate is open", of=BOOL, initial=False)


@action("B-1", state=EVERY)
def ring(s: Bell) -> None:
    """Ring the bell."""
    require(silent=~s.rung)
    s.rung = True


@action("B-2", state=EVERY)
def ring_at_the_gate(s: Bell) -> None:
    """Ring the bell, if the gate is open."""
    require(silent=~s.rung, open=s.gate)
    s.rung = True


@action("B-3", state=EVERY)
def tick(s: Bell) -> None:
    """The clock goes on, and the gate swings with it."""
    require(ticking=s.clock < 2)
    s.clock = s.clock + 1
    s.gate = ~s.gate


@action("B-4", state=EVERY)
def wind(s: Bell) -> None:
    """The clock starts again."""
    require(run_down=s.clock == 2)
    s.clock = 0
    s.gate = False


@escape("L-9")
def silent(s: Bell) -> Term:
    """The bell is rung."""
    return ~s.rung


def bell(
    *actions: ActionSource,
    weak: tuple[ActionSource, ...] = (),
    strong: tuple[ActionSource, ...] = (),
    finite: tuple[ActionSource, ...] = (),
) -> Model:
    """Return a machine of these actions with these promises."""
    machine = Machine("bell", Bell, actions, (silent,), fairness=Fairness(weak, strong, finite))
    return Model("bell", "A bell.", machine)


@pytest.mark.parametrize(
    ("model", "verdict"),
    [
        # Nothing is promised: the bell may wait for ever, though it could be rung.
        (bell(ring, ring_at_the_gate, tick, wind), Verdict.REFUTED),
        (bell(ring, ring_at_the_gate, tick, wind, weak=(ring,)), Verdict.PROVED),
        # At the gate ringing is possible again and again, never all the time.
        (bell(ring_at_the_gate, tick, wind, weak=(ring_at_the_gate, tick, wind)), Verdict.REFUTED),
        (
            bell(ring_at_the_gate, tick, wind, weak=(tick, wind), strong=(ring_at_the_gate,)),
            Verdict.PROVED,
        ),
        # Without a promise that the clock goes on, the gate never opens.
        (bell(ring_at_the_gate, tick, wind, strong=(ring_at_the_gate,)), Verdict.REFUTED),
        # If the clock is wound only finitely often, it stops, and then the gate is shut.
        (
            bell(
                *(ring_at_the_gate, tick, wind),
                weak=(tick, ring_at_the_gate),
                finite=(wind,),
            ),
            Verdict.REFUTED,
        ),
    ],
)
def test_a_small_machine_is_judged_as_its_promises_say(model: Model, verdict: Verdict) -> None:
    report = check(model, native.explore, liveness=True)
    [judgement] = [j for j in report.judgements if j.kind is Kind.LIVENESS]
    assert judgement.verdict is verdict


def explored(model: Model) -> Exploration:
    return native.explore(model, Limits(), threading.Event(), edges=True)


def test_every_slice_is_live() -> None:
    small = (
        "hybrid",
        "sharing",
        "sharing-tight",
        "tiers",
        "graph",
        "fork",
        "index",
        "prefetch",
        "one-slot",
    )
    for name in small:
        assert not any(traps(explored(MODELS[name])).values()), name


def changed(name: str, changes: dict[str, Action | None]) -> Machine:
    """Return the allocator with some actions replaced, or never possible."""
    kept = tuple(changes.get(each.name, each) or never(each) for each in ALLOCATOR.actions)
    return replace(ALLOCATOR, name=name, next=kept)


def never(whole: Action) -> Action:
    return replace(whole, guards=(*whole.guards, Guard("never", FALSE)))


def traced(source: ActionSource) -> Action:
    return next(each for each in ALLOCATOR.actions if each.name == source.name)


def without(source: ActionSource, guard: str) -> Action:
    """Return an action without one of its guards."""
    whole = traced(source)
    kept = tuple(each for each in whole.guards if each.name != guard)
    assert len(kept) == len(whole.guards) - 1, f"{source.name} has no guard {guard}"
    return replace(whole, guards=kept)


def with_guard_of(source: ActionSource, other: ActionSource, guard: str) -> Action:
    """Return an action with a guard that another one has."""
    more = next(each for each in traced(other).guards if each.name == guard)
    return replace(traced(source), guards=(*traced(source).guards, more))


def weakly_only(machine: Machine) -> Machine:
    """Return a machine that promises to make room only if that stays possible."""
    promised = machine.fairness
    fairness = Fairness((*promised.weak, *promised.strong), (), promised.finite)
    return replace(machine, fairness=fairness)


@action("A-44", state="g")
def load_bad(s: Allocator, p: Prefix, g: Group) -> None:
    """A load fails, and its copy stays."""
    require(loading=s.device[p, g] == Device.LOADING)
    s.device[p, g] = Device.RESERVED


@action("A-27", state="g")
def make_room(s: Allocator, p: Prefix, g: Group) -> None:
    """Room is made when the pool is empty, whatever admission asks for (vLLM #39734)."""
    require_evictable(s, p, g)
    require(demanded=demanded(s, p, g) & (s.free[g] == 0))
    take_frame(s, p, g, s.known[p] & ((g != COMPRESSED) | kept(s, p, g)))


CLAUSES = {
    "admission needs a verdict that still stands": (
        changed("verdict first", {"admit": with_guard_of(admit, lease, "fresh")}),
        MODELS["index"],
        "waits",
    ),
    "a waiter may be overtaken by an admission": (
        changed("no queue", {"admit": without(admit, "first")}),
        MODELS["one-slot"],
        "waits",
    ),
    "a waiter may be overtaken by a hit": (
        changed("hits first", {"lease": without(lease, "first")}),
        MODELS["sharing-tight"],
        "waits",
    ),
    "nobody makes room": (
        changed("no room", {"make_room": None}),
        MODELS["sharing-tight"],
        "waits",
    ),
    "room is made by another formula than admission's": (
        changed("empty", {"make_room": make_room.trace(ALLOCATOR.state)}),
        MODELS["sharing-tight"],
        "waits",
    ),
    "room is made only if that stays possible": (
        weakly_only(ALLOCATOR),
        MODELS["sharing-tight"],
        "waits",
    ),
    "a bad load keeps its copy": (
        changed("copy kept", {"load_bad": load_bad.trace(ALLOCATOR.state)}),
        MODELS["sharing-tight"],
        "recovers",
    ),
    "host memory fills with what the disk lacks": (
        changed("all dirty", {"store_begin": without(store_begin, "clean")}),
        MODELS["host-change"].set("private=1", "layouts=false"),
        "recovers",
    ),
    "nobody makes room in host memory": (
        changed("no host room", {"make_host_room": None}),
        MODELS["host-change"].set("private=1", "layouts=false"),
        "recovers",
    ),
    "a prefetch takes what was evicted for a waiter": (
        changed("no reserve", {"prefetch": without(prefetch, "reserve")}),
        MODELS["prefetch"].set("cap.COMPRESSED=2"),
        "waits",
    ),
}


@pytest.mark.parametrize("clause", CLAUSES)
def test_without_the_clause_somebody_waits_for_ever(clause: str) -> None:
    machine, model, claim = CLAUSES[clause]
    found = explored(replace(model, machine=machine))
    graph = FairGraph(found)
    trap = graph.trap(next(each for each in found.model.claims if each.name == claim))
    assert trap is not None
    run = Run(found.model, found.states[int(trap.states[0])])
    start = run.state
    for number in Rounds(graph, trap).round():  # the round can be walked, and comes back
        step = found.model.steps[number]
        run.take(step.action.name, *[a for a in step.label.split("(")[1][:-1].split(", ") if a])
    assert run.state == start


def test_weak_fairness_alone_is_refuted() -> None:
    found = explored(MODELS["sharing-tight"])
    promised = ALLOCATOR.fairness
    weak = Fairness((*promised.weak, *promised.strong), (), promised.finite)
    assert traps(found, weak)["waits"] is not None


def test_without_any_promise_nothing_is_live() -> None:
    assert all(traps(explored(MODELS["hybrid"]), Fairness(())).values())
