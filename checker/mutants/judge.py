"""Judging mutants in one model: first by what is known of its graph, then by a search."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from fivestate.checker.engines import native, python
from fivestate.checker.engines.native.crew import Crew
from fivestate.checker.engines.native.search import Search
from fivestate.checker.exploration import RANGE, Engine, Exploration, Finding, Limits
from fivestate.checker.judge import _stuck as stuck
from fivestate.checker.mutants.difference import Graph
from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.outcome import ROUTED, Refutation
from fivestate.checker.mutants.schema import Schema
from fivestate.checker.mutants.smaller import without
from fivestate.checker.refinement import first_unmatched
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Kind

SOUND = "sound"
"""The property that says what all others are for: what runs reads only right bytes."""

Live = Callable[[Exploration], Iterable[str]] | None
"""Names the liveness properties that a complete search with its edges refutes."""

NEVER = threading.Event()
ROOM, MORE, MUCH_MORE = 4, 100_000, 1_000_000
"""A mutant may reach so many times as many states, and so many more, before it is stopped: much
more where otherwise nobody would have noticed it."""


class Ask(Enum):
    """What is asked of a mutant in one model."""

    WHO = "which property notices, liveness the last of them"
    SAFE = "which property notices, liveness left aside"
    LIVE = "which liveness property notices"
    SOUND = "whether soundness alone notices"


@dataclass(frozen=True)
class Question:
    """A mutant, and what is asked of it."""

    mutant: Mutant
    ask: Ask = Ask.WHO


@dataclass(frozen=True)
class Answer:
    """What one model says of a mutant.

    Attributes:
        refutations: who notices, the shortest story first.
        sound: whether soundness does.
        same: whether the graph is what it was.
        stopped: whether the search had to be stopped.
    """

    refutations: tuple[Refutation, ...] = ()
    sound: bool = False
    same: bool = False
    stopped: bool = False


def compare(graph: Graph, questions: Sequence[Question], live: Live) -> list[Answer | None]:
    """Answer what can be answered from the machine's own graph; the rest has to be searched."""
    return [_compared(graph, question, live) for question in questions]


def _compared(graph: Graph, question: Question, live: Live) -> Answer | None:
    try:
        difference = graph.difference(question.mutant)
    except SpecError:
        return Answer((Refutation(ROUTED, 0),))
    if difference.same:
        return Answer(same=True)
    if not difference.smaller:
        return None
    if question.ask is Ask.SOUND:  # a part of a sound graph is sound
        return Answer()
    return _answer(without(graph, question.mutant, difference.removed), question.ask, live, None)


def search(graph: Graph, questions: Sequence[Question], live: Live) -> list[Answer]:
    """Answer by searching the graph of each mutant; all are compiled as one program."""
    model = graph.model
    schema = Schema(model.machine, [question.mutant for question in questions])
    program = native.prepare(schema.model(model), workers=1)
    simple = _simple(model)
    room = ROOM * graph.exploration.distinct
    few, many = Limits(states=room + MORE), Limits(states=room + MUCH_MORE)
    answers: list[Answer] = []
    with Crew(program.workers) as crew:
        for question in questions:
            awake = replace(program, model=schema.awake(program.model, question.mutant))
            caught = question.ask is Ask.SOUND
            search = Search(awake, crew, edges=not caught)
            found = search.result(search.run(few if caught else many, NEVER, None, 0.0), 0.0)
            answers.append(_answer(found, question.ask, live, simple))
    return answers


def _simple(model: Model) -> Exploration | None:
    """Return the graph of the machine that the model refines, if it claims to refine one."""
    if model.refines is None:
        return None
    return python.explore(model.abstract(), Limits(), NEVER, edges=True)


def _answer(found: Exploration, ask: Ask, live: Live, simple: Exploration | None) -> Answer:
    sound, stopped = SOUND in found.findings, bool(found.stopped)
    if ask is Ask.SOUND:
        return Answer(sound=sound, stopped=stopped and not sound)
    if ask is Ask.LIVE:
        names = () if stopped or live is None else live(found)
        return Answer(tuple(Refutation(name, None) for name in names), sound, stopped=stopped)
    refutations = sorted(_refutations(found, simple), key=_sooner)
    if not refutations and ask is Ask.WHO:
        return _answer(found, Ask.LIVE, live, simple)
    return Answer(tuple(refutations), sound, stopped=stopped and not refutations)


def _sooner(refutation: Refutation) -> tuple[bool, int]:
    return refutation.length is None, refutation.length or 0


def _refutations(found: Exploration, simple: Exploration | None) -> Iterable[Refutation]:
    """Yield whoever notices, the most telling property first."""
    decided = {**found.findings, **stuck(found)}
    if RANGE in decided:
        yield Refutation(RANGE, _length(found, decided[RANGE]))
    for claim in found.model.claims:
        finding = decided.get(claim.name)
        if claim.kind is not Kind.WITNESS and finding is not None:
            yield Refutation(claim.name, _length(found, finding))
        elif claim.kind is Kind.WITNESS and finding is None and not found.stopped:
            yield Refutation(claim.name, None)
    if simple is not None and found.model.refines is not None:
        unmatched = first_unmatched(found, simple)
        if unmatched is not None:
            yield Refutation(found.model.refines.name, _length(found, unmatched))


def _length(found: Exploration, finding: Finding) -> int:
    return len(found.path(finding.state)) + (finding.step is not None)


def explore(model: Model, engine: Engine = native.explore) -> Exploration:
    """Return the whole graph of a model."""
    return engine(model, Limits(), NEVER, edges=True)
