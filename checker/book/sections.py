"""The sections of the book: what stands between the markers of a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec

from fivestate.checker.book import clauses, docstrings, features, tables
from fivestate.checker.book.markdown import anchor, code, fenced, prose, table
from fivestate.checker.book.words import Words
from fivestate.spec.language.machine import Machine, Refinement
from fivestate.spec.models import FAILS, HOLDS, MODELS
from fivestate.spec.sequence import fold, tail_joins
from fivestate.spec.vocabulary import CacheState

TITLES = {
    "sequence": "One sequence",
    "allocator": "The allocator",
    "scheme-a": "Scheme A",
    "static-step": "A captured step that recovers inside",
}
"""What a machine's chapter is called, where its name alone would not do."""


PERMISSIONS = (
    "Doing nothing breaks no invariant. What is listed here nobody is owed, and a user may count\n"
    "on it all the same: a machine that never permits one of these is refuted as well\n"
    "([D-25](DECISIONS.md#d-25))."
)
"""What stands before the permissions of a machine."""


def example_action() -> Iterator[str]:
    """Return an action as it stands in the source."""
    yield fenced(inspect.getsource(fold.function).rstrip().splitlines(), "python")


def example_invariant() -> Iterator[str]:
    """Return an invariant as it stands in the source."""
    yield fenced(inspect.getsource(tail_joins.function).rstrip().splitlines(), "python")


def states() -> Iterator[str]:
    """Return the clauses S-1 to S-5."""
    says = docstrings.members(CacheState)
    yield table(
        ("clause", "state", "is"),
        (
            (f"{anchor(state.value)}{state.value}", code(state.name), prose(says[state.name]))
            for state in CacheState
        ),
    )


def checks() -> Iterator[str]:
    """Return the clauses H-n: the functions that ``CHECKS`` lists, if there are any."""
    for clause, checked in sorted(_checks(), key=lambda pair: clauses.order(pair[0])):
        yield from clauses.function(clause, checked)


def machines() -> Iterator[str]:
    """Return a chapter for each machine, and one for what refines what."""
    for machine in all_machines():
        yield from _machine(machine)
    if claimed := refinements():
        yield "## Refinements"
        for claim in claimed:
            yield from clauses.refinement(claim, Words(claim.machine, claim.mapping))


def shipped() -> Iterator[str]:
    """Return the models, and for each machine which features are explored together."""
    yield features.models(HOLDS, FAILS)
    must_hold = {model.name for model in HOLDS}
    for machine in all_machines():
        of_it = [model for model in MODELS.values() if model.machine is machine]
        if of_it:
            yield f"### Models of {machine.name}"
            yield features.settings(machine, of_it)
            proved = [model for model in of_it if model.name in must_hold]
            yield from features.together(machine, proved)


def all_machines() -> tuple[Machine, ...]:
    """Return every machine that a shipped model runs or refines, each once."""
    found = [model.machine for model in MODELS.values()]
    found += [claim.abstract for claim in refinements()]
    return tuple({machine.name: machine for machine in found}.values())


def refinements() -> tuple[Refinement, ...]:
    """Return every refinement that a shipped model claims, each once."""
    claimed = (model.refines for model in MODELS.values() if model.refines is not None)
    return tuple({claim.clause: claim for claim in claimed}.values())


def _machine(machine: Machine) -> Iterator[str]:
    words = Words(machine)
    yield f"## {TITLES.get(machine.name, machine.name)}"
    yield prose(inspect.cleandoc(machine.state.__doc__ or ""))
    yield f"Written in {', '.join(clauses.place(module) for module in words.places)}."
    if machine.routes is not None:
        sort = code(machine.routes.__name__)
        yield f"Routed by {sort}: an action writes only cells of the state it declares, or marks."
    yield tables.sorts(machine, words)
    if words.constants:
        yield tables.constants(words)
    yield tables.variables(machine, words)
    yield from tables.values(machine)
    if words.definitions:
        yield f"### Definitions of {machine.name}"
        lines = [line for each in words.definitions for line in clauses.definition(each, words)]
        yield fenced(lines)
    yield f"### Actions of {machine.name}"
    for traced in sorted(machine.actions, key=lambda each: clauses.order(each.clause)):
        yield from clauses.action(traced, words)
    yield f"### Properties of {machine.name}"
    permitted = [c for c in machine.claims if c.clause.startswith(clauses.PERMISSION)]
    yield from clauses.claims((c for c in machine.claims if c not in permitted), words)
    if permitted:
        yield f"### Permissions of {machine.name}"
        yield PERMISSIONS
        yield clauses.permissions(permitted)
        yield from clauses.claims(permitted, words)


def _checks() -> tuple[tuple[str, Callable[..., object]], ...]:
    name = "fivestate.spec.reuse"
    return getattr(import_module(name), "CHECKS", ()) if find_spec(name) else ()


SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "example action": example_action,
    "example invariant": example_invariant,
    "states": states,
    "checks": checks,
    "machines": machines,
    "models": shipped,
}
