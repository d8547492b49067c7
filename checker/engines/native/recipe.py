"""Recipes: which compiled code a model comes to, known without grounding it again.

Grounding a model and writing its code takes longer than searching most models. What that text
depends on, the traced machine, the model's numbers, and the code that grounds and writes, is far
quicker to digest. A recipe is that digest; what is kept under it is the name of the compiled code,
which is still the digest of the whole text.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fivestate.spec.language.machine import Machine
    from fivestate.spec.language.model import Model

_WRITERS = ("fivestate.spec.language", "fivestate.checker.engines.native")
_machines: dict[int, tuple[Machine, str]] = {}


def recipe(model: Model, shared: str) -> str:
    """Return the digest of all that the model's text depends on, or nothing if none is known.

    Args:
        model: the model.
        shared: the part of the text that is not the model's own.
    """
    if not hasattr(model, "machine"):
        return ""  # made of ground trees by hand, as tests do: there is nothing to save
    parts = (
        _writers(),
        _machine(model.machine),
        repr([(cell.name, cell.type, cell.low, cell.high) for cell in model.cells]),
        repr([(sort, model.elements(sort)) for sort in model.machine.sorts]),
        repr(sorted(model.constants.items())),
        repr(model.first),
        repr([claim.name for claim in model.claims]),
        repr([step.label for step in model.steps]),
        shared,
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _machine(machine: Machine) -> str:
    """Return the digest of a traced machine; it is worked out once."""
    known = _machines.get(id(machine))
    if known is None or known[0] is not machine:
        text = repr((machine.actions, machine.claims))
        known = _machines[id(machine)] = machine, hashlib.sha256(text.encode()).hexdigest()
    return known[1]


@cache
def _writers() -> str:
    """Return the digest of the code that grounds a model and writes its text."""
    digest = hashlib.sha256()
    for package in _WRITERS:
        folders = [resources.files(package)]
        while folders:
            for entry in sorted(folders.pop().iterdir(), key=lambda each: each.name):
                if entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry)
                elif entry.name.endswith((".py", ".ll")):
                    digest.update(entry.name.encode() + b"\0" + entry.read_bytes())
    return digest.hexdigest()
