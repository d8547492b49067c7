"""Safety at any size is proved by induction, and falls as soon as an action is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fivestate.checker.engines.python import explore
from fivestate.checker.judge import check
from fivestate.checker.prove.catalog import THEOREMS
from fivestate.checker.prove.counterexample import find, met, possible, small_models
from fivestate.checker.prove.counting import law_of_delta, law_of_none
from fivestate.checker.prove.induction import Induction, Outcome
from fivestate.checker.prove.run import Prover
from fivestate.checker.prove.safety import CACHE, HOMOGENEOUS, SAFETIES, Safety
from fivestate.checker.prove.solve import Answer, Asking
from fivestate.checker.verdicts import Verdict
from fivestate.spec.allocator import ALLOCATOR, PROPERTIES
from fivestate.spec.allocator.lemmas import LAWS, LEMMAS
from fivestate.spec.language import Machine, Run
from fivestate.spec.language.tracing import Action
from fivestate.spec.models import MODELS

IN_DOUBT = {"doomed_in_range", "doubt_is_withheld", "free_in_range"}

WITHOUT_GUARD = {
    ("lease", "fresh"): {"leased_as_checked", "leased_is_ready", "held_is_known"},
    ("lease", "room"): {"within_cap", "free_in_range"},
    ("lease", "slot"): {"within_slots"},
    ("lease", "first"): {"first_come_first_served"},
    ("publish", "complete"): {"published_complete", "known_has_entries"},
    ("load_begin", "in_budget"): {"within_budget"},
    ("load_begin", "stored"): {"transfers_have_ends"},
    ("reindex", "unleased"): {
        *("sound", "leased_is_ready", "leased_is_unchanged", "usable_is_immutable"),
    },
    ("reindex", "uncaptured"): {"graph_reads_what_it_captured", "graph_reads_usable"},
    ("reclaim", "landed"): IN_DOUBT,
    ("replay", "null_clean"): {"replays_on_clean_padding"},
    ("invalidate", "quiet"): {"replays_on_clean_padding"},
    ("evict", "not_a_source"): {"made_from_right"},
}
"""A guard that is dropped, and exactly what is no longer kept."""

WITHOUT_EFFECT = {
    ("reindex", "fresh"): {"hit_that_stands_is_true"},
    ("crash", "late"): {"doubt_is_withheld"},
    ("change_kernels", "fit"): {"usable_is_right"},
    ("store_good", "stored"): {"copies_are_right"},
    ("finish", "slid"): {"idle_is_blank"},
    ("invalidate", "same"): {"same_is_of_a_graph"},
}
"""A variable that an action no longer writes, and exactly what is no longer kept."""


RIGHT = Induction(CACHE, Asking(10))


def action_of(name: str) -> Action:
    (found,) = (action for action in ALLOCATOR.actions if action.name == name)
    return found


def without_guard(action: str, guard: str) -> Action:
    right = action_of(action)
    kept = tuple(each for each in right.guards if each.name != guard)
    assert len(kept) == len(right.guards) - 1
    return replace(right, guards=kept)


def without_effect(action: str, variable: str) -> Action:
    right = action_of(action)
    kept = tuple(each for each in right.effects if each.variable != variable)
    assert len(kept) < len(right.effects)
    return replace(right, effects=kept)


def with_action(changed: Action) -> Safety:
    """Return the allocator's safety with one action replaced."""
    actions = tuple(changed if a.name == changed.name else a for a in ALLOCATOR.actions)
    return replace(CACHE, machine=replace(ALLOCATOR, next=actions))


def broken(action: Action, induction: Induction = RIGHT) -> set[str]:
    """Return what an action does not keep, of a state that looks right."""
    outcomes = induction.step(action)
    return {outcome.claim for outcome in outcomes if outcome.verdict is not Verdict.PROVED}


@pytest.mark.parametrize(("action", "guard"), WITHOUT_GUARD)
def test_a_dropped_guard_breaks_what_it_is_for_and_nothing_else(action: str, guard: str) -> None:
    assert broken(without_guard(action, guard)) == WITHOUT_GUARD[action, guard]


@pytest.mark.parametrize(("action", "variable"), WITHOUT_EFFECT)
def test_a_lost_effect_breaks_what_it_is_for_and_nothing_else(action: str, variable: str) -> None:
    assert broken(without_effect(action, variable)) == WITHOUT_EFFECT[action, variable]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_each_law_of_the_settings_is_needed(law: object) -> None:
    where = {
        "disk_is_behind_host": "crash",
        "index_is_not_storable": "store_begin",
        "index_feeds_nothing": "load_good",
    }
    (name,) = (each.name for each in LAWS if each is law)
    safety = replace(CACHE, laws=tuple(each for each in LAWS if each is not law))
    assert broken(action_of(where[name]), Induction(safety, Asking(10)))


def test_a_counterexample_is_a_state_that_a_reader_can_walk_from() -> None:
    action = without_guard("evict", "unleased")
    safety = with_action(action)
    (claim,) = (c for c in safety.invariants if c.name == "sound")
    models = small_models(safety, MODELS)[:1]
    found = met(claim, action, models)
    assert found is not None
    assert found.step is not None
    run = Run(found.model, found.state)
    assert all(run.holds(c.name) for c in found.model.claims if c.kind == "invariant")
    run.take("evict", *found.step.label[len("evict(") : -1].split(", "))
    assert not run.holds("sound")
    told = "\n".join(found.told())
    assert "I-0 sound is not kept (r=r" in told
    assert "the step A-26 evict(p0, " in told
    assert "I-0 says: what runs reads only right bytes." in told
    assert "gets into that state, after" in found.reachable()


def test_a_refuted_theorem_tells_the_step_and_whether_a_model_gets_there() -> None:
    safety = with_action(without_guard("lease", "fresh"))
    failed = Outcome("leased_as_checked", "lease", Verdict.UNDETERMINED, 0.0)
    result = Prover((), Asking())._together(THEOREMS["leased_as_checked"], safety, [failed])
    assert result.verdict is Verdict.REFUTED
    assert result.told[0].startswith("I-3 leased_as_checked is not kept (r=r")
    assert "the step A-14 lease(r" in result.told[3]
    assert "gets into that state, after" in result.told[-1]


def test_a_state_that_no_small_model_gets_into_is_said_to_be_none() -> None:
    action = without_guard("make", "sources")
    safety = with_action(action)
    (claim,) = (c for c in safety.invariants if c.name == "made_from_right")
    found = find(safety, claim, action, Asking(), small_models(safety, MODELS))
    assert found is not None
    assert found.detail.startswith("p=p0, g=")
    assert found.model.name in {*MODELS, "any size"}
    assert "that state" in found.reachable()


def test_what_leaves_its_range_is_found_too() -> None:
    action = without_guard("lease", "room")
    safety = with_action(action)
    (claim,) = (c for c in safety.invariants if c.name == "free_in_range")
    found = find(safety, claim, action, Asking(), small_models(safety, MODELS))
    assert found is not None
    assert "leaves 0..3" in found.ends


def test_no_obligation_is_empty() -> None:
    for safety in (CACHE, HOMOGENEOUS):
        answers = possible(safety, Asking())
        assert {name for name, yes in answers.items() if yes is not Answer.YES} == safety.never


def test_an_action_that_is_never_possible_is_noticed() -> None:
    right = action_of("scrub")
    (clean,) = (guard for guard in action_of("replay").guards if guard.name == "null_clean")
    safety = with_action(replace(right, guards=(*right.guards, clean)))
    assert possible(safety, Asking())["scrub"] is Answer.NO


def test_the_laws_of_counting_are_theorems() -> None:
    for law in (*law_of_delta(), *law_of_none()):
        assert Asking().can(law) is Answer.YES
        solver = Asking().solver()
        solver.add(~law)
        assert Asking().ask(solver) is Answer.NO


def test_what_rests_on_what_is_refuted_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lemma that falls takes with it what cannot be proved without it."""
    few = replace(CACHE, name="few")
    vars(few)["actions"] = (action_of("run"),)
    monkeypatch.setitem(SAFETIES, "few", few)
    prover = Prover((), Asking())
    prover._outcomes["few"] = [Outcome("leased_is_ready", "evict", Verdict.UNDETERMINED, 0.0)]
    shaky = prover.resting(few)
    assert shaky["sound"] == ("rests on leased_is_ready",)
    assert "within_cap" not in shaky


@pytest.mark.parametrize("name", ["homogeneous", "hybrid", "fork", "index"])
def test_lemmas_and_laws_are_true_in_the_models_that_are_searched(name: str) -> None:
    machine = Machine(
        "allocator",
        ALLOCATOR.state,
        ALLOCATOR.next,
        (*PROPERTIES, *LEMMAS, *LAWS),
        ALLOCATOR.routes,
        ALLOCATOR.fairness,
    )
    report = check(replace(MODELS[name], machine=machine, refines=None), explore)
    assert report.verdict is Verdict.PROVED, [j.name for j in report.refuted]
    judged = {judgement.name for judgement in report.judgements}
    assert {"held_is_known", "made_from_right", "index_feeds_nothing"} <= judged
