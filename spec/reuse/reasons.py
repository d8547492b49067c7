"""Reasons: why a prefix cannot be resumed further on, or not as it stands; always with a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Why(Enum):
    """What stands in the way; the value says between whom."""

    UNKNOWN = "unknown"
    IDENTITY = "identity"

    BELOW_GRANULARITY = "below_granularity"
    DRAFT_LOOKBACK = "draft_lookback"
    LAST_TOKEN = "last_token"  # noqa: S105 -- a token of a prompt
    HALF_BLOCK = "half_block"

    KERNEL = "abi"
    LAYOUT = "layout"
    DTYPE = "dtype"
    WEIGHTS = "weights"

    ENTRIES_GONE = "entries_gone"
    TAIL_GONE = "tail_gone"
    WINDOW_GONE = "window_gone"
    INDEX_GONE = "index_gone"
    INDEX_OUT_OF_STEP = "index_out_of_step"
    SNAPSHOT_GONE = "snapshot_gone"
    NOT_RESIDENT = "not_resident"

    MISALIGNED = "misaligned"
    OUT_OF_REGION = "out_of_region"
    OVERLAP = "overlap"

    NO_GAIN = "no_gain"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason.

    Attributes:
        clause: the check that gives it: ``H-0`` (identity) to ``H-4``, or ``cost``.
        why: what stands in the way.
        value: the values that differ, or the tokens that are gone.
        group: the group it concerns, if it is one.
        rank: the rank it concerns.
    """

    clause: str
    why: Why
    value: str
    group: str = ""
    rank: int = 0

    def __str__(self) -> str:
        where = f" in {self.group}" if self.group else ""
        on = f" on rank {self.rank}" if self.rank else ""
        return f"{self.clause} {self.why.value}({self.value}){where}{on}"
