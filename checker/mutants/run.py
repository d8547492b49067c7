"""A run over all mutants: model by model, the smallest first, on as many processes as asked."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from fivestate.checker.exploration import Exploration
from fivestate.checker.liveness import traps
from fivestate.checker.mutants import judge
from fivestate.checker.mutants.difference import Graph
from fivestate.checker.mutants.judge import Answer, Ask, Live, Question
from fivestate.checker.mutants.mutant import RESTRICTING, Mutant
from fivestate.checker.mutants.outcome import ROUTED, Fate, Outcome
from fivestate.spec.language.model import Model

BATCH = 64
"""At most so many mutants are compiled into one program."""

SMALL_STATES = 50_000
"""So large a model is asked about liveness at once."""

Progress = Callable[[str, int, int], None]
"""Called with a model's name, how many mutants it has answered for, and of how many."""

Task = tuple[Graph, list[Question], Live]
Do = Callable[[Graph, Sequence[Question], Live], Sequence[Answer | None]]
Work = Callable[
    [Do, list[Sequence[int]]],
    Iterable[tuple[Sequence[int], Sequence[Answer | None]]],
]

_task: Task | None = None
"""What a forked process starts with: neither graphs nor mutants need to be sent to it."""


@dataclass
class Run:
    """How mutants are judged.

    Attributes:
        jobs: how many processes work.
        live: who says what liveness notices; nobody, if it is not to be asked.
        soundness: whether to ask on until soundness alone notices, too.
        interrupted: set when the run is to end with what is known by then.
        progress: told of what has been done.
    """

    jobs: int = 1
    live: Live = None
    soundness: bool = True
    interrupted: threading.Event = field(default_factory=threading.Event)
    progress: Progress | None = None

    def judge(self, mutants: Sequence[Mutant], models: Sequence[Model]) -> list[Outcome]:
        """Ask the models about every mutant, the smallest model first.

        A mutant that has been caught is asked of further models only until soundness has noticed
        it too; one that nothing has caught is asked about again, now of liveness alone.
        """
        outcomes = [_unasked(mutant, models) for mutant in mutants]
        explored = sorted(map(judge.explore, models), key=lambda found: found.distinct)
        for found in explored:
            asked = [(o, ask) for o in outcomes if (ask := self._what(o, found))]
            self._ask(Graph(found), asked)
        for outcome in outcomes:
            asked_all = self.soundness and not outcome.left and not outcome.open
            if outcome.sound is None and (asked_all or outcome.mutant.kind in RESTRICTING):
                outcome.sound = False
        if self.live is not None:
            survivors = [outcome for outcome in outcomes if outcome.fate is Fate.SURVIVED]
            self._ask_liveness(survivors, [f for f in explored if f.distinct > SMALL_STATES])
        return outcomes

    def _ask_liveness(self, survivors: list[Outcome], explored: list[Exploration]) -> None:
        """Ask large models about liveness, which takes them much longer than all else."""
        for outcome in survivors:
            outcome.left = [found.model.name for found in explored if _is_of(outcome, found.model)]
        for found in explored:
            left = [o for o in survivors if o.caught_by is None and _is_of(o, found.model)]
            self._ask(Graph(found), [(outcome, Ask.LIVE) for outcome in left])
        for outcome in survivors:
            if outcome.caught_by is not None:
                outcome.left = []

    def _what(self, outcome: Outcome, found: Exploration) -> Ask | None:
        """Return what is still to be asked of this model."""
        if not _is_of(outcome, found.model):
            return None
        if outcome.caught_by is None:
            return Ask.WHO if found.distinct <= SMALL_STATES else Ask.SAFE
        settled = outcome.sound is not None or outcome.mutant.kind in RESTRICTING
        return None if settled or not self.soundness else Ask.SOUND

    def _ask(self, graph: Graph, asked: list[tuple[Outcome, Ask]]) -> None:
        """Ask one model and note what it answers."""
        model = graph.model.name
        if self.interrupted.is_set():
            return
        for done, (outcome, answer) in enumerate(self._answers(graph, asked), 1):
            _note(outcome, model, answer)
            if self.progress is not None:
                self.progress(model, done, len(asked))
            if self.interrupted.is_set():
                return

    def _answers(
        self,
        graph: Graph,
        asked: list[tuple[Outcome, Ask]],
    ) -> Iterator[tuple[Outcome, Answer]]:
        """Yield every outcome with its answer: what need not be searched first."""
        questions = [Question(outcome.mutant, ask) for outcome, ask in asked]
        with _workers((graph, questions, self.live), self.jobs) as work:
            unanswered: list[int] = []
            for chosen, answers in work(judge.compare, _dealt(range(len(asked)), self.jobs)):
                for at, answer in zip(chosen, answers, strict=True):
                    if answer is None:
                        unanswered.append(at)
                    else:
                        yield asked[at][0], answer
            for chosen, answers in work(judge.search, _dealt(sorted(unanswered), self.jobs)):
                for at, answer in zip(chosen, answers, strict=True):
                    if answer is not None:
                        yield asked[at][0], answer


def cores() -> int:
    """Return how many processes can work at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def live(found: Exploration) -> list[str]:
    """Name the liveness properties that a complete search with its edges refutes."""
    return [f"{name} (liveness)" for name, trap in traps(found).items() if trap is not None]


def _unasked(mutant: Mutant, models: Sequence[Model]) -> Outcome:
    outcome = Outcome(mutant, [])
    outcome.left = [model.name for model in models if _is_of(outcome, model)]
    return outcome


def _is_of(outcome: Outcome, model: Model) -> bool:
    return outcome.mutant.machine.name == model.machine.name


def _note(outcome: Outcome, model: str, answer: Answer) -> None:
    outcome.left = [name for name in outcome.left if name != model]
    outcome.same &= answer.same
    if answer.sound:
        outcome.sound = True
    if answer.stopped:
        outcome.open.append(model)
    if answer.refutations and outcome.caught_by is None:
        outcome.caught_by, outcome.slice = answer.refutations[0], model
        if outcome.caught_by.name == ROUTED:
            outcome.sound = False  # it cannot even be built


def _dealt(chosen: Sequence[int], jobs: int) -> list[Sequence[int]]:
    """Deal what is to be done into as few batches as keep everybody busy."""
    shares = max(jobs, -(-len(chosen) // BATCH))
    return [chosen[at::shares] for at in range(min(shares, len(chosen)))]


@contextmanager
def _workers(task: Task, jobs: int) -> Iterator[Work]:
    """Give a way to do parts of a task, in this process or in some that are forked from it."""
    global _task  # noqa: PLW0603 -- see there
    if jobs == 1:
        yield lambda do, batches: ((batch, _do(task, do, batch)) for batch in batches)
        return
    _task = task
    try:
        with multiprocessing.get_context("fork").Pool(jobs, initializer=_quiet) as pool:
            yield lambda do, batches: pool.imap_unordered(_forked, [(do, b) for b in batches])
    finally:
        _task = None


def _quiet() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides what Ctrl-C means


def _forked(order: tuple[Do, Sequence[int]]) -> tuple[Sequence[int], Sequence[Answer | None]]:
    do, batch = order
    if _task is None:
        raise ValueError("this process was not forked to do a task")
    return batch, _do(_task, do, batch)


def _do(task: Task, do: Do, batch: Sequence[int]) -> Sequence[Answer | None]:
    graph, questions, live = task
    return do(graph, [questions[at] for at in batch], live)
