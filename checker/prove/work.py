"""Units of work: what can be asked of z3 apart from everything else, in any process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import TimeoutError as NotYet
from typing import TypeVar

from fivestate.checker.prove import theorem as arithmetic
from fivestate.checker.prove.catalog import THEOREMS
from fivestate.checker.prove.counterexample import possible
from fivestate.checker.prove.induction import START, Induction, Outcome
from fivestate.checker.prove.safety import SAFETIES
from fivestate.checker.prove.solve import Answer, Asking, Interrupted, watched
from fivestate.checker.prove.theorem import Result
from fivestate.spec.reuse.geometry import Geometry

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """All questions of one theorem of arithmetic."""

    theorem: str
    geometries: tuple[Geometry, ...]

    def done(self, asking: Asking) -> Result:
        """Return what came of it."""
        return arithmetic.prove(THEOREMS[self.theorem], self.geometries, asking)


@dataclass(frozen=True)
class Oblige:
    """All obligations of one machine in one place: its first state, or one of its actions."""

    safety: str
    place: str
    without: frozenset[str] = frozenset()

    def done(self, asking: Asking) -> list[Outcome]:
        """Return what came of each."""
        induction = _induction(self.safety, self.without, asking)
        if self.place == START:
            return induction.start()
        (action,) = (a for a in induction.safety.actions if a.name == self.place)
        return induction.step(action)


@dataclass(frozen=True)
class Allow:
    """Whether every action can be taken in some state that looks right."""

    safety: str

    def done(self, asking: Asking) -> dict[str, Answer]:
        """Return the answer for each action."""
        return possible(SAFETIES[self.safety], asking)


Unit = Ask | Oblige | Allow
Payload = Result | list[Outcome] | dict[str, Answer]

_known: dict[tuple[str, frozenset[str], int], Induction] = {}


def _induction(safety: str, without: frozenset[str], asking: Asking) -> Induction:
    key = safety, without, id(asking)
    if key not in _known:
        _known[key] = Induction(SAFETIES[safety], asking, without)
    return _known[key]


def do(units: list[Unit], asking: Asking, jobs: int) -> Iterator[tuple[Unit, Payload]]:
    """Do units of work and yield each with what came of it, until interrupted."""
    if jobs == 1 or len(units) <= 1:
        for unit in units:
            if asking.interrupted.is_set():
                return
            try:
                payload = watched(_later(unit, asking), asking)
            except Interrupted:
                return
            yield unit, payload
        return
    context = get_context("spawn")
    with context.Pool(min(jobs, len(units)), _start, (asking.seconds,)) as pool:
        coming = pool.imap_unordered(_done, units)
        for _ in units:
            while True:
                if asking.interrupted.is_set():
                    pool.terminate()
                    return
                try:
                    yield coming.next(timeout=0.1)
                except NotYet:
                    continue
                break


def _later(unit: Unit, asking: Asking) -> Callable[[], Payload]:
    return lambda: unit.done(asking)


_asking = Asking()


def _start(seconds: float) -> None:
    """Make a worker ready; Ctrl-C is for whoever started it."""
    global _asking  # noqa: PLW0603 -- a worker is a process of its own
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _asking = Asking(seconds, threading.Event())


def _done(unit: Unit) -> tuple[Unit, Payload]:
    return unit, unit.done(_asking)
