"""The models that are shipped: machines at sizes that can be searched to the end."""

from __future__ import annotations

from enum import Enum

from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language import Model
from fivestate.spec.language.settings import Setting
from fivestate.spec.scheme_a import ONE_GROUP_IS_SCHEME_A, SCHEME_A
from fivestate.spec.sequence import SEQUENCE
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

FEEDS: dict[tuple[Enum, Enum], bool] = {
    (COMPRESSED, WINDOW): True,
    (COMPRESSED, INDEXER): True,
    (COMPRESSED, TAIL): True,
    (WINDOW, TAIL): True,
}
"""What is made from what: entries first, the window by replay, the tail from both."""


def one_prefix(*groups: Enum, **switches: bool) -> dict[str, Setting]:
    """Return the settings of one prefix, two requests and these groups, with room for both."""
    return {
        "prefix": 1,
        "request": 2,
        "group": groups,
        "cap": dict.fromkeys(groups, 3),
        "private": dict.fromkeys(groups, 1),
        "feeds": {pair: True for pair in FEEDS if set(pair) <= set(groups)},
        "hash_only": False,
        "aborts": True,
        **switches,
    }


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

SCHEME_A_MODEL = Model(
    "scheme-a",
    "Prefix reuse as it was: one block a prefix, found is usable.",
    SCHEME_A,
    {"prefix": 2, "request": 2},
)

HOMOGENEOUS = Model(
    "homogeneous",
    "One group, one tier, one layout, key dropped with its block: a hash hit may be used.",
    ALLOCATOR,
    one_prefix(COMPRESSED, hash_only=True),
    refines=ONE_GROUP_IS_SCHEME_A,
)

HYBRID = Model(
    "hybrid",
    "Compressed KV and a window, every cell looked at before a hit is used.",
    ALLOCATOR,
    one_prefix(COMPRESSED, WINDOW),
)

FIVE_STATES = Model(
    "all-groups",
    "All four groups that live on the device, every cell looked at.",
    ALLOCATOR,
    one_prefix(COMPRESSED, TAIL, WINDOW, INDEXER),
)

HASH_ONLY = Model(
    "hash-only",
    "The hybrid geometry, and a hash hit used as if it were homogeneous.",
    ALLOCATOR,
    one_prefix(COMPRESSED, WINDOW, hash_only=True, aborts=False),
    start=(
        ("arrive", "r0", "p0"),
        ("admit", "r0", "p0"),
        ("make", "p0", "COMPRESSED"),
        ("made", "p0", "COMPRESSED"),
        ("make", "p0", "WINDOW"),
        ("made", "p0", "WINDOW"),
        ("publish", "p0"),
        ("resume", "r0", "p0"),
        ("run", "r0"),
    ),
    start_says="p0 is published, and r0, which computed it, still runs",
)

HOLDS = (*SEQUENCES, SCHEME_A_MODEL, HOMOGENEOUS, HYBRID, FIVE_STATES)
"""The models that must be PROVED: what ``fivestate check`` runs."""

FAILS = (HASH_ONLY,)
"""Models that show what goes wrong: run by name."""

MODELS = {model.name: model for model in (*HOLDS, *FAILS)}
