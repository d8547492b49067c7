"""One sequence: tokens are written, verified, folded and indexed; rows behind them are let go.

The split of a sequence into entries, tail and window depends on positions alone, never on the
chunks in which it was written. What is decided on is the *verified* length (D-6).
"""

from __future__ import annotations

from fivestate.spec.language import Fairness, Machine
from fivestate.spec.sequence.actions import (
    fold,
    index,
    resume,
    roll_back,
    slide,
    snapshot,
    trim,
    verify,
    write,
)
from fivestate.spec.sequence.permissions import PERMISSIONS
from fivestate.spec.sequence.properties import INVARIANTS, WITNESSES, tail_joins
from fivestate.spec.sequence.state import (
    LOOKBACK,
    RATIO,
    SPAN,
    TOKENS,
    Chunk,
    Entry,
    Sequence,
    tail_serves,
    window_serves,
)

NEXT = (write, verify, fold, index, trim, slide, roll_back, snapshot, resume)

PROPERTIES = (*INVARIANTS, *WITNESSES, *PERMISSIONS)

FAIRNESS = Fairness(weak=(write, verify, fold, index), finite=(roll_back, resume))
"""The engine goes on; drafts are rejected, and others resume here, only finitely often."""

SEQUENCE = Machine("sequence", Sequence, NEXT, PROPERTIES, fairness=FAIRNESS)

__all__ = [
    "FAIRNESS",
    "LOOKBACK",
    "NEXT",
    "PROPERTIES",
    "RATIO",
    "SEQUENCE",
    "SPAN",
    "TOKENS",
    "Chunk",
    "Entry",
    "Sequence",
    "fold",
    "tail_joins",
    "tail_serves",
    "window_serves",
]
