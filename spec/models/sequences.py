"""One sequence, in four sizes."""

from __future__ import annotations

from fivestate.spec.language import Model
from fivestate.spec.sequence import SEQUENCE

SEQUENCES = (
    Model(
        "sequence",
        "One sequence, its compressor without overlap.",
        SEQUENCE,
        {"tokens": 8, "ratio": 2, "lookback": 0, "window": 3},
    ),
    Model(
        "sequence-overlap",
        "One sequence, each entry overlapping the group before it.",
        SEQUENCE,
        {"tokens": 8, "ratio": 2, "lookback": 2, "window": 3},
    ),
)

SEQUENCE_PLAIN = Model(
    "sequence-plain",
    "One sequence whose entries are its tokens: nothing is compressed.",
    SEQUENCE,
    {"tokens": 7, "ratio": 1, "lookback": 0, "window": 2},
)

SEQUENCE_ODD = Model(
    "sequence-odd",
    "One sequence whose numbers share no factor, and whose window is the query alone.",
    SEQUENCE,
    {"tokens": 7, "ratio": 3, "lookback": 1, "window": 1},
)
