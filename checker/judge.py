"""Judging: from what a search has covered to a verdict on every property."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from fivestate.checker.exploration import RANGE, Engine, Exploration, Finding, Limits, Progress
from fivestate.checker.graph import can_reach
from fivestate.checker.refinement import first_unmatched
from fivestate.checker.story import Story, tell
from fivestate.checker.truth import table, truth
from fivestate.checker.verdicts import Verdict, worst
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Kind, Property

RANGE_CLAUSE = "I-2"
RANGE_SENTENCE = "No variable leaves its declared range."


@dataclass(frozen=True)
class Judgement:
    """The verdict on one property; ``story`` shows a refutation or a witness."""

    clause: str
    name: str
    kind: Kind
    sentence: str
    verdict: Verdict
    story: Story | None = None


@dataclass(frozen=True)
class Report:
    """The verdicts on a model, and how much was searched for them."""

    model: Model
    exploration: Exploration
    judgements: tuple[Judgement, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on any property."""
        return worst(judgement.verdict for judgement in self.judgements)

    @property
    def refuted(self) -> tuple[Judgement, ...]:
        """The judgements that refute, the most telling first."""
        return tuple(j for j in self.judgements if j.verdict is Verdict.REFUTED)


def check(
    model: Model,
    engine: Engine,
    limits: Limits | None = None,
    interrupted: threading.Event | None = None,
    progress: Progress | None = None,
) -> Report:
    """Search ``model`` and judge every property it has.

    Raises:
        SpecError: the model reads or writes what it does not have.
    """
    interrupted = interrupted or threading.Event()
    needs_edges = model.refines is not None or any(c.kind is Kind.ESCAPE for c in model.claims)
    exploration = engine(
        model,
        limits or Limits(),
        interrupted,
        edges=needs_edges,
        progress=progress,
    )
    judgements = [_judge_ranges(exploration)]
    judgements += [_judge(exploration, claim) for claim in model.claims]
    if model.refines is not None:
        judgements.append(_judge_refinement(exploration, engine, interrupted))
    return Report(model, exploration, tuple(judgements))


def _judge(exploration: Exploration, claim: Property) -> Judgement:
    finding = exploration.findings.get(claim.name)
    if claim.kind is Kind.ESCAPE and not exploration.stopped:
        finding = _first_stuck(exploration, claim)
    if claim.kind is Kind.WITNESS:
        found, otherwise = Verdict.PROVED, Verdict.REFUTED
    else:
        found, otherwise = Verdict.REFUTED, Verdict.PROVED
    if finding is not None:
        check = f"run.holds({claim.name!r})" if claim.kind is not Kind.ESCAPE else "run.enabled()"
        story = tell(exploration, finding, check)
        return Judgement(claim.clause, claim.name, claim.kind, claim.sentence, found, story)
    verdict = Verdict.UNDETERMINED if exploration.stopped else otherwise
    return Judgement(claim.clause, claim.name, claim.kind, claim.sentence, verdict)


def _judge_ranges(exploration: Exploration) -> Judgement:
    finding = exploration.findings.get(RANGE)
    story = None if finding is None else tell(exploration, finding, "")
    if finding is not None:
        verdict = Verdict.REFUTED
    else:
        verdict = Verdict.UNDETERMINED if exploration.stopped else Verdict.PROVED
    return Judgement(RANGE_CLAUSE, RANGE, Kind.RANGE, RANGE_SENTENCE, verdict, story)


def _judge_refinement(
    exploration: Exploration,
    engine: Engine,
    interrupted: threading.Event,
) -> Judgement:
    claim = exploration.model.refines
    if claim is None:
        raise ValueError("the model claims no refinement")
    finding = None
    if not exploration.stopped:
        finding = first_unmatched(exploration, engine, interrupted)
    story = None if finding is None else tell(exploration, finding, "")
    if finding is not None:
        verdict = Verdict.REFUTED
    else:
        verdict = Verdict.UNDETERMINED if exploration.stopped else Verdict.PROVED
    return Judgement(claim.clause, claim.name, Kind.REFINEMENT, claim.sentence, verdict, story)


def _first_stuck(exploration: Exploration, claim: Property) -> Finding | None:
    """Return the nearest state that satisfies ``claim`` and from which no way leads out of it."""
    edges = exploration.edges
    if edges is None:
        raise ValueError("an escape is judged on a graph with edges")
    states = table(exploration.states)
    nearest: Finding | None = None
    for case in exploration.model.cases(claim):
        inside = truth(case.condition, states)
        stuck = np.flatnonzero(inside & ~can_reach(edges, ~inside))
        if stuck.size and (nearest is None or stuck[0] < nearest.state):
            nearest = Finding(int(stuck[0]), None, case.binding)
    return nearest
