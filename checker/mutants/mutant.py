"""Mutants: a machine with one fault in it, under a name that stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fivestate.spec.language.machine import Machine
from fivestate.spec.language.tracing import Action


class Kind(StrEnum):
    """How a mutant differs from the machine."""

    DROP_GUARD = "drop-guard"  # an action is no longer refused by one guard
    STRENGTHEN_GUARD = "strengthen-guard"  # an action is refused where it need not be
    DELETE_ACTION = "delete-action"  # an action is never taken
    WEAKEN_EFFECT = "weaken-effect"  # an action leaves a cell as it is, or forgets a case
    NAMED = "named"  # a fault that somebody had, or that the sources warn of


RESTRICTING = (Kind.STRENGTHEN_GUARD, Kind.DELETE_ACTION)
"""Kinds that only take steps away: no state is new, so no safety property can notice."""


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        name: what it is called, such as ``drop evict.unleased``.
        kind: how it was made.
        machine: the machine it is a fault of.
        actions: what stands instead of the actions of these names; nothing, where one is gone.
        sentence: what is wrong, where that is not plain from the name.
        source: who had it, or who warns of it.
    """

    name: str
    kind: Kind
    machine: Machine
    actions: Mapping[str, Action | None]
    sentence: str = ""
    source: str = ""
