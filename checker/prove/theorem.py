"""Theorems of arithmetic: what is given, what follows, and what a counterexample would be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.signature import Expression
from fivestate.checker.prove.solve import Answer, Asking
from fivestate.checker.verdicts import Verdict, worst
from fivestate.spec.reuse.geometry import Geometry

VACUOUS = "vacuous: nothing satisfies its assumptions"


@dataclass(frozen=True)
class Question:
    """One case of a theorem.

    Attributes:
        where: the geometry, the group, or nothing.
        given: what is assumed.
        claim: what must follow.
        shown: the numbers that a counterexample tells.
    """

    where: str
    given: tuple[Expression, ...]
    claim: Expression
    shown: Mapping[str, Expression] = field(default_factory=dict[str, Expression])


Questions = Callable[[tuple[Geometry, ...]], Iterable[Question]]


@dataclass(frozen=True)
class Theorem:
    """A claim with a name.

    Attributes:
        clause: the clause it belongs to.
        name: what the command line calls it.
        sentence: the claim.
        scope: for which sizes it is claimed.
        questions: its cases; none for what is proved by induction over a machine.
        fails: whether the claim is that it *fails*: that a counterexample exists.
        default: whether it is among what ``fivestate prove`` proves.
        safety: for what is proved by induction, the machine and its scope, by name.
    """

    clause: str
    name: str
    sentence: str
    scope: str
    questions: Questions | None = None
    fails: bool = False
    default: bool = True
    safety: str = ""


@dataclass(frozen=True)
class Result:
    """What came of a theorem, by its name; ``told`` explains a refutation, or shows a failure."""

    theorem: str
    verdict: Verdict
    seconds: float
    told: tuple[str, ...] = ()


def theorem(
    clause: str,
    scope: str,
    *,
    fails: bool = False,
) -> Callable[[Questions], Theorem]:
    """Make the function below a theorem; its docstring is the claim."""

    def make(function: Questions) -> Theorem:
        sentence = " ".join((function.__doc__ or "").split("\n\n")[0].split())
        name = getattr(function, "__name__", "")
        return Theorem(clause, name, sentence, scope, function, fails)

    return make


def prove(claimed: Theorem, geometries: tuple[Geometry, ...], asking: Asking) -> Result:
    """Answer every question of a theorem.

    Raises:
        ValueError: it has none: it is proved by induction.
    """
    if claimed.questions is None:
        raise ValueError(f"{claimed.name} is proved by induction")
    started = time.perf_counter()
    found = [_answered(claimed, question, asking) for question in claimed.questions(geometries)]
    if not found:
        found = [(Verdict.REFUTED, VACUOUS)]
    verdict = worst(each for each, _ in found)
    wanted = Verdict.PROVED if claimed.fails and verdict is Verdict.PROVED else verdict
    told = tuple(text for each, text in found if each is wanted and text)
    if verdict is Verdict.PROVED and not claimed.fails:
        told = ()
    return Result(claimed.name, verdict, time.perf_counter() - started, told)


def _answered(claimed: Theorem, question: Question, asking: Asking) -> tuple[Verdict, str]:
    where = f"{question.where}: " if question.where else ""
    solver = asking.solver()
    solver.add(*question.given)
    possible = asking.ask(solver)
    if possible is Answer.NO:
        return Verdict.REFUTED, f"{where}{VACUOUS}"
    solver.add(z3.Not(question.claim))
    answer = asking.ask(solver)
    if answer is Answer.UNKNOWN or possible is Answer.UNKNOWN:
        said = (
            "interrupted" if asking.interrupted.is_set() else f"no answer in {asking.seconds:g} s"
        )
        return Verdict.UNDETERMINED, f"{where}{said}"
    if answer is Answer.NO:
        verdict = Verdict.REFUTED if claimed.fails else Verdict.PROVED
        return verdict, f"{where}there is no counterexample" if claimed.fails else ""
    numbers = ", ".join(_numbers(solver.model(), question.shown))
    verdict = Verdict.PROVED if claimed.fails else Verdict.REFUTED
    return verdict, f"{where}{numbers}"


def _numbers(model: Expression, shown: Mapping[str, Expression]) -> Iterator[str]:
    for name, expression in shown.items():
        yield f"{name} = {model.eval(expression, model_completion=True)}"
