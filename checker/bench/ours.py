"""Our engines, run for their time: with as many threads as asked for, and counted."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from fivestate.checker.bench.timing import Timed, timed
from fivestate.checker.bench.two_phase import NAME, two_phase
from fivestate.checker.engines import python
from fivestate.checker.engines.native import Program
from fivestate.checker.engines.native.crew import Crew
from fivestate.checker.engines.native.search import Search
from fivestate.checker.exploration import Exploration, Limits
from fivestate.spec.language.errors import ModelError
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Kind
from fivestate.spec.models import MODELS


class BenchError(Exception):
    """No figure would mean anything: counts differ, a property fails, or a process did."""


@dataclass(frozen=True)
class Counted:
    """A search to the end.

    Attributes:
        distinct: how many distinct states there are.
        transitions: how many steps were taken.
        spent: how long the search took, without compiling.
        bytes_per_state: what states and hash tables take by arithmetic; 0 if not known.
    """

    distinct: int
    transitions: int
    spent: Timed
    bytes_per_state: float = 0.0


def model_named(name: str) -> Model:
    """Return a shipped model, or two-phase commit with the number of parties in its name.

    Raises:
        ModelError: no model is called so.
    """
    parties = name.removeprefix(NAME)
    if parties != name and parties.isdigit():
        return two_phase(int(parties))
    if name not in MODELS:
        raise ModelError(f"no model {name!r}")
    return MODELS[name]


def native(program: Program) -> Counted:
    """Search a compiled model to its end.

    Raises:
        BenchError: a property that it must have is refuted.
    """
    never = threading.Event()
    with timed() as spent, Crew(program.workers) as crew:
        search = Search(program, crew, edges=False)
        stopped = search.run(Limits(), never, None, 0.0)
        slots = sum(search.tables.size_for(worker, 0) for worker in range(program.workers))
        taken = 4 * slots / search.known + search.store.bytes_per_state
        found = search.result(stopped, 0.0)
    _must_hold(found)
    return Counted(found.distinct, found.transitions, spent, taken)


def oracle(model: Model) -> Counted:
    """Search a model to its end with the ``python`` engine.

    Raises:
        BenchError: a property that it must have is refuted.
    """
    with timed() as spent:
        found = python.explore(model, Limits(), threading.Event(), edges=False)
    _must_hold(found)
    return Counted(found.distinct, found.transitions, spent)


def must_agree(one: Counted, name: str, distinct: int, transitions: int) -> None:
    """Compare our counts with another's.

    Raises:
        BenchError: they differ.
    """
    if (one.distinct, one.transitions) != (distinct, transitions):
        raise BenchError(
            f"the native engine counts {one.distinct:,} distinct states and {one.transitions:,} "
            f"transitions, {name} {distinct:,} and {transitions:,}"
        )


def _must_hold(found: Exploration) -> None:
    kinds = {claim.name: claim.kind for claim in found.model.claims}
    for name in found.findings:
        if kinds.get(name) is not Kind.WITNESS:
            raise BenchError(f"{found.engine} refutes {name} of {found.model.name}")
    if found.stopped:
        raise BenchError(f"{found.engine} did not search {found.model.name}: {found.stopped}")
