"""Every mutant there is: made by rule of each machine, and named."""

from __future__ import annotations

from dataclasses import replace

from fivestate.checker.mutants.generate import generated
from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.named import NAMED
from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.models import HOLDS

MACHINES = tuple({model.machine.name: model.machine for model in HOLDS}.values())


def every_mutant() -> list[Mutant]:
    """Return the named mutants, then those made by rule.

    Machines have actions of the same names, so a mutant made by rule of another machine than the
    allocator says of which.
    """
    made = [
        mutant if machine is ALLOCATOR else replace(mutant, name=f"{machine.name}: {mutant.name}")
        for machine in MACHINES
        for mutant in generated(machine)
    ]
    return [*NAMED, *made]
