"""Rules across groups and across prefixes: what is made from what, and who gets the frames."""

from __future__ import annotations

from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language import Model
from fivestate.spec.models.sizes import (
    ENTRIES_AND_WINDOW,
    FOUR,
    ONE_AT_A_TIME,
    ONE_INDEX_AT_A_TIME,
    cache,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, WINDOW

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
    cache(1, FOUR, aborts=True, stores=True, storable=ENTRIES_AND_WINDOW, budget=2),
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
    cache(2, (COMPRESSED, WINDOW), aborts=True, stores=True, budget=2, misfits=True, crashes=True),
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
        budget=2,
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

ONE_SLOT = Model(
    "one-slot",
    "Only one request may be in use at a time.",
    ALLOCATOR,
    cache(1, (COMPRESSED, WINDOW), aborts=True, stores=True, slots=1),
)
