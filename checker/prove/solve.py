"""Asking z3: with a time limit, and so that Ctrl-C is heard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import z3  # type: ignore[import-untyped]  # it ships no types

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818 -- nothing is wrong, somebody has had enough
    """Somebody wants no answer any more."""


class Answer(Enum):
    """Whether conditions can be satisfied together."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Asking:
    """How z3 is asked.

    Attributes:
        seconds: how long one question may take.
        interrupted: set when nobody wants an answer any more.
        thinking: set while z3 thinks: at any other time it does not bear to be interrupted.
    """

    seconds: float = 20.0
    interrupted: threading.Event = field(default_factory=threading.Event)
    thinking: threading.Event = field(default_factory=threading.Event)

    def solver(self) -> Any:
        """Return a solver that keeps the time limit and leaves Ctrl-C to us."""
        solver = z3.Solver()
        solver.set("timeout", max(1, int(self.seconds * 1000)))
        solver.set("ctrl_c", False)
        return solver

    def ask(self, solver: Any) -> Answer:
        """Return whether what a solver was told can be satisfied."""
        if self.interrupted.is_set():
            return Answer.UNKNOWN
        self.thinking.set()
        try:
            answer = solver.check()
        finally:
            self.thinking.clear()
        match answer:
            case z3.sat:
                return Answer.YES
            case z3.unsat:
                return Answer.NO
            case _:
                return Answer.UNKNOWN

    def can(self, *conditions: Any) -> Answer:
        """Return whether conditions can be satisfied together."""
        solver = self.solver()
        solver.add(*conditions)
        return self.ask(solver)


def watched(work: Callable[[], T], asking: Asking) -> T:
    """Do some work in a thread, and interrupt z3 in it once that is wanted.

    z3 works outside Python, where no signal is heard; the main thread has to be free for it.

    Raises:
        Interrupted: the work was interrupted.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 -- raised again where it is waited for
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        if asking.interrupted.is_set() and asking.thinking.is_set():
            with suppress(z3.Z3Exception):  # z3 is done just now, and says that it was cancelled
                z3.main_ctx().interrupt()
    if errors:
        if asking.interrupted.is_set() and isinstance(errors[0], z3.Z3Exception):
            raise Interrupted
        raise errors[0]
    return results[0]
