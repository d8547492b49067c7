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


FOUR: tuple[Enum, ...] = (COMPRESSED, TAIL, WINDOW, INDEXER)
"""The groups that live on the device."""

ENTRIES: dict[Enum, bool] = {COMPRESSED: True}
ENTRIES_AND_WINDOW: dict[Enum, bool] = {COMPRESSED: True, WINDOW: True}

ROOM_FOR_ONE: dict[Enum, int] = {COMPRESSED: 2}
"""What an admission asks for at most: a cell and a private frame."""

ONE_INDEX_AT_A_TIME: dict[Enum, int] = {COMPRESSED: 2, INDEXER: 2}
ONE_AT_A_TIME: dict[Enum, int] = {COMPRESSED: 2, WINDOW: 2}
ONE_INDEX_AND_WINDOW_AT_A_TIME: dict[Enum, int] = {COMPRESSED: 2, WINDOW: 2, INDEXER: 2}
"""Caps that just hold one admission."""

ROOM_FOR_TWO_CELLS: dict[Enum, int] = {COMPRESSED: 2}
TWO_COPIES: dict[Enum, int] = {COMPRESSED: 2}
NOTHING_PRIVATE: dict[Enum, int] = {COMPRESSED: 0}
ROOM_FOR_TWO: dict[Enum, int] = {COMPRESSED: 4}
ROOM_FOR_THREE: dict[Enum, int] = {COMPRESSED: 4, TAIL: 4}

OFF: dict[str, Setting] = {
    "hash_only": False,
    "aborts": False,
    "stores": False,
    "disk": False,
    "storable": ENTRIES,
    "budget": 1,
    "misfits": False,
    "layouts": False,
    "weights": False,
    "crashes": False,
    "graphs": False,
    "forks": False,
    "reindexes": False,
    "prefetches": False,
}
"""Every feature switched off: a model names the ones it explores together."""


def cache(
    prefixes: int,
    groups: tuple[Enum, ...],
    requests: int = 2,
    **features: Setting,
) -> dict[str, Setting]:
    """Return the settings of a cache with room for two requests, and these features."""
    return {
        **OFF,
        "prefix": prefixes,
        "group": groups,
        "request": requests,
        "cap": dict.fromkeys(groups, 3),
        "private": dict.fromkeys(groups, 1),
        "reserve": dict.fromkeys(groups, 0),
        "host": dict.fromkeys(groups, 8),
        "slots": 2,
        "feeds": FEEDS,
        **features,
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
    cache(1, (COMPRESSED,), hash_only=True, aborts=True),
    refines=ONE_GROUP_IS_SCHEME_A,
)

HYBRID = Model(
    "hybrid",
    "Compressed KV and a window, every cell looked at before a hit is used.",
    ALLOCATOR,
    cache(1, (COMPRESSED, WINDOW), aborts=True),
)

ALL_GROUPS = Model(
    "all-groups",
    "All four groups that live on the device, every cell looked at.",
    ALLOCATOR,
    cache(1, FOUR, aborts=True),
)

ACROSS = Model(
    "across",
    "Rules across groups: what is made from what, stored, loaded back and out of step.",
    ALLOCATOR,
    cache(1, FOUR, aborts=True, stores=True, storable=ENTRIES_AND_WINDOW),
)

ACROSS_TIGHT = Model(
    "across-tight",
    "The same in a pool where the window has room for one request only.",
    ALLOCATOR,
    cache(
        1,
        FOUR,
        aborts=True,
        stores=True,
        storable=ENTRIES_AND_WINDOW,
        misfits=True,
        cap={**dict.fromkeys(FOUR, 3), WINDOW: 2},
    ),
)

SHARING = Model(
    "sharing",
    "Two prefixes and two requests contend for frames and for bandwidth.",
    ALLOCATOR,
    cache(2, (COMPRESSED, WINDOW), aborts=True, stores=True, misfits=True, crashes=True),
)

SHARING_TIGHT = Model(
    "sharing-tight",
    "Two prefixes in a pool with room for one: whoever waits lives on what is evicted for it.",
    ALLOCATOR,
    cache(
        2,
        (COMPRESSED, WINDOW),
        aborts=True,
        stores=True,
        cap=ONE_AT_A_TIME,
    ),
)

SHARING_TIERS = Model(
    "sharing-tiers",
    "The same over host memory and a disk, while kernels change.",
    ALLOCATOR,
    cache(
        2,
        (COMPRESSED, WINDOW),
        aborts=True,
        stores=True,
        disk=True,
        layouts=True,
        cap=ONE_AT_A_TIME,
    ),
)

CONTEND = Model(
    "contend",
    "As tight, with indexes made anew in place, captured graphs, and kernels that change.",
    ALLOCATOR,
    cache(
        2,
        (COMPRESSED, INDEXER),
        aborts=True,
        stores=True,
        reindexes=True,
        graphs=True,
        layouts=True,
        cap=ONE_INDEX_AT_A_TIME,
    ),
)

TIERS = Model(
    "tiers",
    "Host memory and a disk behind it: demotion, and eviction under a load.",
    ALLOCATOR,
    cache(
        1,
        (COMPRESSED, WINDOW),
        aborts=True,
        stores=True,
        storable=ENTRIES_AND_WINDOW,
        disk=True,
        misfits=True,
        crashes=True,
    ),
)

HOST_FULL = Model(
    "host-full",
    "Three prefixes, and host memory for two of them: two are recovered at once, from disk too.",
    ALLOCATOR,
    cache(
        3,
        (COMPRESSED,),
        stores=True,
        disk=True,
        host=TWO_COPIES,
        cap=ROOM_FOR_TWO_CELLS,
        private=NOTHING_PRIVATE,
    ),
)

HOST_CHANGE = Model(
    "host-change",
    "Host memory for two prefixes of three, while kernels change.",
    ALLOCATOR,
    cache(
        3,
        (COMPRESSED,),
        1,
        aborts=True,
        stores=True,
        disk=True,
        layouts=True,
        host=TWO_COPIES,
        cap=ROOM_FOR_TWO_CELLS,
        private=NOTHING_PRIVATE,
    ),
)

TIERS_CHANGE = Model(
    "tiers-change",
    "Copies in host memory and on disk while weights and kernels change.",
    ALLOCATOR,
    cache(
        1,
        (COMPRESSED,),
        aborts=True,
        stores=True,
        disk=True,
        layouts=True,
        weights=True,
        crashes=True,
        misfits=True,
        graphs=True,
    ),
)

CHANGE = Model(
    "change",
    "Weights and kernels change, and the process crashes, with an index to keep in step.",
    ALLOCATOR,
    cache(
        1,
        (COMPRESSED, WINDOW, INDEXER),
        aborts=True,
        stores=True,
        storable=ENTRIES_AND_WINDOW,
        layouts=True,
        weights=True,
        crashes=True,
        misfits=True,
    ),
)

GRAPH = Model(
    "graph",
    "Captured graphs, while kernels change and the process crashes.",
    ALLOCATOR,
    cache(
        1,
        (COMPRESSED, WINDOW),
        aborts=True,
        stores=True,
        graphs=True,
        layouts=True,
        crashes=True,
    ),
)

FORK = Model(
    "fork",
    "A running request is forked beside a third that waits; each writes a tail of its own.",
    ALLOCATOR,
    cache(1, (COMPRESSED, TAIL), 3, aborts=True, forks=True, crashes=True, slots=3),
)

GRAPH_TWO = Model(
    "graph-two",
    "Two captured graphs that share one null block, with room for one to run beside the other.",
    ALLOCATOR,
    cache(2, (COMPRESSED,), aborts=True, stores=True, graphs=True, cap=ROOM_FOR_TWO),
)

FORK_TWO = Model(
    "fork-two",
    "Two prefixes are forked, with room for two requests and three that could be used.",
    ALLOCATOR,
    cache(2, (COMPRESSED, TAIL), aborts=True, forks=True, cap=ROOM_FOR_THREE),
)

FORK_THREE = Model(
    "fork-three",
    "One prefix and three requests, with room for all of them and places for two.",
    ALLOCATOR,
    cache(1, (COMPRESSED, TAIL), 3, aborts=True, forks=True, cap=ROOM_FOR_THREE),
)

INDEX = Model(
    "index",
    "An index is made anew in place while requests want to reuse it.",
    ALLOCATOR,
    cache(1, (COMPRESSED, INDEXER), aborts=True, stores=True, reindexes=True),
)

INDEX_TIGHT = Model(
    "index-tight",
    "An index is made anew in place while its window has to make room for another prefix.",
    ALLOCATOR,
    cache(
        2,
        (COMPRESSED, WINDOW, INDEXER),
        1,
        aborts=True,
        stores=True,
        reindexes=True,
        cap=ONE_INDEX_AND_WINDOW_AT_A_TIME,
    ),
)

INDEX_TWO = Model(
    "index-two",
    "An index is made anew in place beside another prefix that is held or recovered.",
    ALLOCATOR,
    cache(2, (COMPRESSED, INDEXER), aborts=True, stores=True, reindexes=True),
)

PREFETCH = Model(
    "prefetch",
    "Prefixes are recovered before anybody asks, beside requests that wait.",
    ALLOCATOR,
    cache(
        2,
        (COMPRESSED,),
        aborts=True,
        stores=True,
        prefetches=True,
        reserve=ROOM_FOR_ONE,
    ),
)

PREFETCH_TIERS = Model(
    "prefetch-tiers",
    "A prefetch out of host memory and from disk, and what its copies are worth if it fails.",
    ALLOCATOR,
    cache(
        1,
        (COMPRESSED, WINDOW),
        1,
        aborts=True,
        stores=True,
        storable=ENTRIES_AND_WINDOW,
        disk=True,
        prefetches=True,
    ),
)

PREFETCH_ALL = Model(
    "prefetch-all",
    "One request and a prefetch, over every kind of cell, tier and change.",
    ALLOCATOR,
    cache(
        1,
        (COMPRESSED, WINDOW, INDEXER),
        1,
        aborts=True,
        stores=True,
        prefetches=True,
        reindexes=True,
        misfits=True,
        layouts=True,
        crashes=True,
    ),
)

ONE_SLOT = Model(
    "one-slot",
    "Only one request may be in use at a time.",
    ALLOCATOR,
    cache(1, (COMPRESSED, WINDOW), aborts=True, stores=True, slots=1),
)

DEEP = Model(
    "deep",
    "Two prefixes, two groups, two requests, and every feature that these can show.",
    ALLOCATOR,
    cache(
        2,
        (COMPRESSED, WINDOW),
        aborts=True,
        stores=True,
        storable=ENTRIES_AND_WINDOW,
        misfits=True,
        layouts=True,
        weights=True,
        crashes=True,
        graphs=True,
    ),
)

HASH_ONLY = Model(
    "hash-only",
    "The hybrid geometry, and a hash hit used as if it were homogeneous.",
    ALLOCATOR,
    cache(1, (COMPRESSED, WINDOW), hash_only=True),
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

HASH_ONLY_TIER = Model(
    "hash-only-tier",
    "One group and a tier off the device: a hash hit is no longer enough even there.",
    ALLOCATOR,
    cache(1, (COMPRESSED,), hash_only=True, stores=True),
    start=(
        ("arrive", "r0", "p0"),
        ("admit", "r0", "p0"),
        ("make", "p0", "COMPRESSED"),
        ("made", "p0", "COMPRESSED"),
        ("publish", "p0"),
        ("resume", "r0", "p0"),
        ("run", "r0"),
        ("finish", "r0"),
    ),
    start_says="p0 is published, and nobody uses it",
)

HASH_ONLY_LAYOUT = Model(
    "hash-only-layout",
    "One group, one tier, and kernels that change: a hash hit is no longer enough even there.",
    ALLOCATOR,
    cache(1, (COMPRESSED,), hash_only=True, layouts=True),
    start=HASH_ONLY_TIER.start,
    start_says=HASH_ONLY_TIER.start_says,
)

SLICES = (
    *(ACROSS, ACROSS_TIGHT, SHARING, SHARING_TIGHT, SHARING_TIERS, CONTEND),
    *(TIERS, HOST_FULL, HOST_CHANGE, TIERS_CHANGE, CHANGE),
    *(GRAPH, GRAPH_TWO, FORK, FORK_TWO, FORK_THREE, INDEX, INDEX_TWO, INDEX_TIGHT),
    *(PREFETCH, PREFETCH_TIERS, PREFETCH_ALL, ONE_SLOT),
)
"""The allocator in pieces: together they explore every feature with what it interacts with."""

HOLDS = (
    *SEQUENCES,
    SEQUENCE_PLAIN,
    SEQUENCE_ODD,
    SCHEME_A_MODEL,
    HOMOGENEOUS,
    HYBRID,
    ALL_GROUPS,
    *SLICES,
)
"""The models that must be PROVED: what ``fivestate check`` runs."""

LARGE = (DEEP,)
"""Models that must be PROVED and take a minute: run by name."""

FAILS = (HASH_ONLY, HASH_ONLY_TIER, HASH_ONLY_LAYOUT)
"""Models that show what goes wrong: run by name."""

MODELS = {model.name: model for model in (*HOLDS, *LARGE, *FAILS)}
