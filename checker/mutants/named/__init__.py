"""The named mutants: faults that somebody had, or that the sources warn of."""

from __future__ import annotations

from fivestate.checker.mutants.named.changes import CHANGES
from fivestate.checker.mutants.named.frames import FRAMES
from fivestate.checker.mutants.named.sequences import SEQUENCES
from fivestate.checker.mutants.named.static_steps import STATIC_STEPS
from fivestate.checker.mutants.named.tiers import TIERS
from fivestate.checker.mutants.named.verdicts import VERDICTS

NAMED = (*SEQUENCES, *VERDICTS, *FRAMES, *TIERS, *CHANGES, *STATIC_STEPS)

__all__ = ["NAMED"]
