"""Judging: from what a search has covered to a verdict on every property."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from fivestate.checker.exploration import RANGE, Engine, Exploration, Finding, Limits, Progress
from fivestate.checker.graph import can_reach, final_components
from fivestate.checker.lasso import Rounds
from fivestate.checker.liveness import FairGraph
from fivestate.checker.refinement import first_unmatched
from fivestate.checker.story import Story, tell
from fivestate.checker.truth import Columns, truth
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


def check(  # noqa: PLR0913 -- what to search, how far, and whom to tell
    model: Model,
    engine: Engine,
    limits: Limits | None = None,
    interrupted: threading.Event | None = None,
    progress: Progress | None = None,
    *,
    liveness: bool = False,
) -> Report:
    """Search ``model`` and judge every property it has; ``liveness`` also under its promises.

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
    stuck = _stuck(exploration)
    judgements = [_judge_ranges(exploration)]
    judgements += [_judge(exploration, claim, stuck.get(claim.name)) for claim in model.claims]
    if liveness:
        judgements += _judge_liveness(exploration)
    if model.refines is not None:
        judgements.append(_judge_refinement(exploration, engine, interrupted))
    return Report(model, exploration, tuple(judgements))


def _judge(exploration: Exploration, claim: Property, stuck: Finding | None) -> Judgement:
    finding = exploration.findings.get(claim.name, stuck)
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
    simple = engine(exploration.model.abstract(), Limits(), interrupted, edges=True)
    finding = None if simple.stopped else first_unmatched(exploration, simple)
    story = None if finding is None else tell(exploration, finding, "")
    if finding is not None:
        verdict = Verdict.REFUTED
    else:
        cut_short = exploration.stopped or simple.stopped
        verdict = Verdict.UNDETERMINED if cut_short else Verdict.PROVED
    return Judgement(claim.clause, claim.name, Kind.REFINEMENT, claim.sentence, verdict, story)


def _judge_liveness(exploration: Exploration) -> list[Judgement]:
    """Judge each escape as a promise: not only can the state be left, it is."""
    escapes = [claim for claim in exploration.model.claims if claim.kind is Kind.ESCAPE]
    graph = None if exploration.stopped or not escapes else FairGraph(exploration)
    judgements: list[Judgement] = []
    for claim in escapes:
        verdict, story = Verdict.UNDETERMINED, None
        if graph is not None:
            trap = graph.trap(claim)
            verdict = Verdict.PROVED if trap is None else Verdict.REFUTED
            if trap is not None:
                there = Finding(int(trap.states[0]), None, trap.detail)
                story = tell(exploration, there, "run.enabled()", Rounds(graph, trap).round())
        sentence = claim.sentence
        judgements.append(
            Judgement(claim.clause, claim.name, Kind.LIVENESS, sentence, verdict, story),
        )
    return judgements


def _stuck(exploration: Exploration) -> dict[str, Finding]:
    """Return, for each escape that fails, the nearest state from which no way leads out.

    From any state some final component can be reached, and it is all that can be reached from
    inside it. So an escape fails just if some final component satisfies it throughout.
    """
    model, edges = exploration.model, exploration.edges
    escapes = [claim for claim in model.claims if claim.kind is Kind.ESCAPE]
    if exploration.stopped or not escapes:
        return {}
    if edges is None:
        raise ValueError("an escape is judged on a graph with edges")
    component, final = final_components(edges)
    columns = Columns(exploration.states)
    nearest: dict[str, Finding] = {}
    for claim in escapes:
        for case in model.cases(claim):
            inside = truth(case.condition, columns)
            trapped = final.copy()
            trapped[component[~inside]] = False
            if not trapped.any():
                continue
            state = int(np.flatnonzero(inside & ~can_reach(edges, ~inside))[0])
            if claim.name not in nearest or state < nearest[claim.name].state:
                nearest[claim.name] = Finding(state, None, case.binding)
    return nearest
