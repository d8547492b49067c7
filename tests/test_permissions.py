"""What has to be possible: the machine permits it, and a machine that is too strict is refuted."""

from dataclasses import replace
from itertools import islice

import pytest
from tests.faults import without_action
from tests.scenarios.runs import stricter

from fivestate.checker.engines import native, python
from fivestate.checker.exploration import Engine
from fivestate.checker.export import tla
from fivestate.checker.judge import check
from fivestate.checker.verdicts import Verdict
from fivestate.spec.allocator.cells import evict
from fivestate.spec.allocator.derived import unleased
from fivestate.spec.allocator.permissions import PERMISSIONS
from fivestate.spec.allocator.state import Allocator, Group, Prefix
from fivestate.spec.language import Model, Run, Term, forall, may, witness
from fivestate.spec.language.ground import evaluate
from fivestate.spec.language.properties import Property
from fivestate.spec.language.trees import May, walk
from fivestate.spec.models import HOLDS, MODELS
from fivestate.spec.sequence import Sequence
from fivestate.spec.sequence.permissions import PERMISSIONS as OF_A_SEQUENCE

EVERY_PERMISSION = [
    *(claim for source in PERMISSIONS for claim in source.traces(Allocator)),
    *(claim for source in OF_A_SEQUENCE for claim in source.traces(Sequence)),
]


def refuted(model: Model, engine: Engine = native.explore) -> set[str]:
    return {judgement.name for judgement in check(model, engine).refuted}


def test_each_has_one_sentence_and_a_number_of_its_own() -> None:
    clauses = [source.clause for source in (*PERMISSIONS, *OF_A_SEQUENCE)]
    assert len(set(clauses)) == len(clauses)
    assert all(clause.startswith("P-") for clause in clauses)
    sentences = {claim.sentence for claim in EVERY_PERMISSION}
    assert len(sentences) == len(clauses)


@pytest.mark.parametrize("claim", EVERY_PERMISSION, ids=lambda claim: claim.name)
def test_each_asks_what_may_be_done_and_some_model_that_holds_is_asked(claim: Property) -> None:
    assert any(isinstance(node, May) for node in walk(claim.condition))
    assert any(claim.name in {known.name for known in model.claims} for model in HOLDS)


@pytest.mark.parametrize("name", ["hybrid", "one-slot"])
def test_what_may_be_done_is_what_a_run_could_do(name: str) -> None:
    model = MODELS[name]
    asked = {step.label: model.may(step.action.name, step.arguments) for step in model.steps}
    for state in islice(check(model, python.explore).exploration.states, 0, None, 37):
        possible = set(Run(model, state).enabled())
        assert {label for label, node in asked.items() if evaluate(node, state)} == possible


def test_an_action_that_a_model_lacks_may_not_be_taken() -> None:
    model = MODELS["homogeneous"]
    assert "capture" not in {action.name for action in model.actions}
    assert not evaluate(model.may("capture", (0, 0)), model.initial)


def test_a_permission_is_shown_by_a_run() -> None:
    report = check(MODELS["sharing"], native.explore)
    (shown,) = (j for j in report.judgements if j.name == "evicts_beside_held")
    assert shown.verdict is Verdict.PROVED
    assert shown.story is not None
    run = Run(MODELS["sharing"])
    for line in shown.story.lines:
        assert not run.holds("evicts_beside_held")
        action, _, arguments = line.step.removesuffix(")").partition("(")
        run.take(action, *(a for a in arguments.split(", ") if a))
    assert run.holds("evicts_beside_held")
    assert [step for step in run.enabled() if step.startswith("evict")]


@pytest.mark.parametrize("engine", [native.explore, python.explore], ids=["native", "python"])
def test_a_rule_that_forbids_too_much_is_refuted(engine: Engine) -> None:
    # No cell is evicted while anybody holds a cell of that group, of whichever prefix.
    g = Group(Group.named("g"))
    everywhere = forall(Prefix, lambda q: unleased(Allocator(), q, g))
    model = stricter(MODELS["graph-two"].set("cap=3"), "evict", "unleased", everywhere)
    assert refuted(model, engine) == {"evicts_beside_held", "evicts_beside_read"}


@pytest.mark.parametrize(
    ("name", "action", "permission"),
    [
        ("one-slot", "lease", "leases_the_last_place"),
        ("one-slot", "drop", "drops_last"),
        ("prefetch-tiers", "erase", "erases_beside"),
        ("homogeneous", "abort_leased", None),
    ],
)
def test_an_action_that_is_never_taken_is_missed(
    name: str,
    action: str,
    permission: str | None,
) -> None:
    found = refuted(without_action(MODELS[name], action))
    assert found == set() if permission is None else permission in found


def test_tla_asks_whether_the_action_is_enabled() -> None:
    module, configuration = tla.export(MODELS["one-slot"])
    assert "ENABLED Lease(r)" in module
    assert "\\* INVARIANT NoLeasesTheLastPlace \\* to be refuted" in configuration


def test_a_witness_may_ask_what_no_permission_asks() -> None:
    @witness("P-99")
    def evicts_what_it_holds(s: Allocator, p: Prefix, g: Group) -> Term:
        """What somebody holds may be evicted: it must not."""
        return may(evict, p, g) & ~unleased(s, p, g)

    machine = MODELS["hybrid"].machine
    asked = replace(machine, properties=(*machine.properties, evicts_what_it_holds))
    model = replace(MODELS["hybrid"], machine=asked)
    assert {j.name for j in check(model, python.explore).refuted} == {"evicts_what_it_holds"}
