"""The ``python`` engine: generated Python, breadth first. Slow, readable, the oracle."""

from __future__ import annotations

import sys
import time
from array import array
from typing import TYPE_CHECKING

import numpy as np

from fivestate.checker.engines.source import (
    Function,
    build,
    condition_source,
    successors_source,
)
from fivestate.checker.exploration import RANGE, Edges, Exploration, Finding, Limits, Progress
from fivestate.spec.language.ground import fold
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.trees import TRUE, Boolean

if TYPE_CHECKING:
    import threading

    from fivestate.spec.language.model import Case, Codes, Model

NAME = "python"
STATE_OVERHEAD_BYTES = 150
"""What a state takes beside its tuple: its number, its places in the table and in the lists."""

PULSE_STATES = 2_000
"""How many states are explored between two looks at the limits."""


def explore(
    model: Model,
    limits: Limits,
    interrupted: threading.Event,
    *,
    edges: bool,
    progress: Progress | None = None,
) -> Exploration:
    """Explore ``model`` breadth first.

    Every property is decided at the first state or step that decides it, and the search goes on,
    so that the counts of a refuted model are those of its whole graph.
    """
    started = time.perf_counter()
    successors = build(successors_source(model), "successors")
    watch = _Watch(model)
    states: list[Codes] = [model.initial]
    numbers = {model.initial: 0}
    parents, parent_steps = array("q", [-1]), array("i", [-1])
    offsets, targets, labels = array("q", [0]), array("q"), array("i")
    firings = [0] * len(model.steps)
    levels: list[int] = []
    most = sys.maxsize if limits.states is None else limits.states
    watch.state(0, model.initial)
    out: list[tuple[int, Codes]] = []
    bad: list[int] = []
    explored, level_end, stopped = 0, 0, ""
    state_bytes = sys.getsizeof(model.initial) + STATE_OVERHEAD_BYTES
    while explored < len(states):
        if explored == level_end:
            levels.append(len(states) - explored)
            level_end = len(states)
        if explored % PULSE_STATES == 0 or len(states) >= most:
            bytes_taken = len(states) * state_bytes
            stopped = _reason(limits, interrupted, len(states), bytes_taken, started)
            if stopped:
                break
            if progress is not None:
                progress(len(states), explored)
        state = states[explored]
        out.clear()
        bad.clear()
        successors(state, out, bad)
        for step, behind in out:
            firings[step] += 1
            number = numbers.get(behind)
            if number is None:
                number = numbers[behind] = len(states)
                states.append(behind)
                parents.append(explored)
                parent_steps.append(step)
                watch.state(number, behind)
            if edges:
                targets.append(number)
                labels.append(step)
            watch.step(explored, step, state, behind)
        for step in bad:
            watch.findings.setdefault(RANGE, Finding(explored, step))
        explored += 1
        if edges:
            offsets.append(len(targets))
    return Exploration(
        model=model,
        engine=NAME,
        stopped=stopped,
        states=states,
        parents=parents,
        parent_steps=parent_steps,
        levels=levels,
        firings=firings,
        findings=watch.findings,
        edges=Edges(*map(np.asarray, (offsets, targets, labels))) if edges else None,
        seconds=time.perf_counter() - started,
    )


class _Watch:
    """The properties of a model, compiled: told of each new state and of each step."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.findings: dict[str, Finding] = {}
        self._invariants = [
            case
            for claim in model.claims
            if claim.kind is Kind.INVARIANT
            for case in model.cases(claim)
        ]
        self._check = _compiled(model, "invariants", self._invariants, step=False)
        self._witnesses: dict[str, tuple[list[Case], Function]] = {}
        for claim in model.claims:
            if claim.kind is Kind.WITNESS:
                cases = list(model.cases(claim))
                self._witnesses[claim.name] = cases, _witness(model, cases)
        self._steps = [self._step_check(number) for number in range(len(model.steps))]

    def state(self, number: int, state: Codes) -> None:
        """Judge a new state."""
        if self._check(state) >= 0:
            self._note_violations(number, state)
        for name in list(self._witnesses):
            cases, absent = self._witnesses[name]
            shown = absent(state)
            if shown >= 0:
                self.findings[name] = Finding(number, None, cases[shown].binding)
                del self._witnesses[name]

    def step(self, number: int, step: int, before: Codes, behind: Codes) -> None:
        """Judge a step, whether or not it leads to a new state."""
        cases, check = self._steps[step]
        if check is None:
            return
        broken = check(before, behind)
        if broken >= 0:
            case = cases[broken]
            self.findings.setdefault(case.claim.name, Finding(number, step, case.binding))
            if len(cases) > 1:  # another property may be broken by the same step
                rest = [c for c in cases if c.claim.name not in self.findings]
                self._steps[step] = rest, _optional(self._model, rest)
                self.step(number, step, before, behind)

    def _note_violations(self, number: int, state: Codes) -> None:
        """Note every invariant that ``state`` breaks, and watch those no longer."""
        broken = self._check(state)
        while broken >= 0:
            case = self._invariants[broken]
            self.findings.setdefault(case.claim.name, Finding(number, None, case.binding))
            self._invariants = [c for c in self._invariants if c.claim.name not in self.findings]
            self._check = _compiled(self._model, "invariants", self._invariants, step=False)
            broken = self._check(state)

    def _step_check(self, number: int) -> tuple[list[Case], Function | None]:
        step = self._model.steps[number]
        claims = [claim for claim in self._model.claims if claim.kind is Kind.STEP]
        cases = [case for claim in claims for case in self._model.cases(claim, step.during)]
        cases = [case for case in cases if case.condition != TRUE]
        return cases, _optional(self._model, cases)


def _compiled(model: Model, name: str, cases: list[Case], *, step: bool) -> Function:
    conditions = [case.condition for case in cases]
    return build(condition_source(model, name, conditions, step=step), name)


def _witness(model: Model, cases: list[Case]) -> Function:
    """Compile what gives the number of the first case that is *true*, or -1."""
    absent = [fold("not", (case.condition,), Boolean()) for case in cases]
    return build(condition_source(model, "witness", absent, step=False), "witness")


def _optional(model: Model, cases: list[Case]) -> Function | None:
    return _compiled(model, "step", cases, step=True) if cases else None


def _reason(
    limits: Limits,
    interrupted: threading.Event,
    states: int,
    bytes_taken: int,
    started: float,
) -> str:
    if interrupted.is_set():
        return "interrupted"
    if limits.states is not None and states >= limits.states:
        return f"limit of {limits.states:,} states"
    if limits.seconds is not None and time.perf_counter() - started >= limits.seconds:
        return f"limit of {limits.seconds:g} s"
    if limits.bytes is not None and bytes_taken >= limits.bytes:
        return f"limit of {limits.bytes:,} bytes"
    return ""
