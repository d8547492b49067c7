"""Host memory and a disk behind it, full and empty, and prefetching out of both."""

from __future__ import annotations

from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language import Model
from fivestate.spec.models.sizes import (
    ENTRIES_AND_WINDOW,
    NOTHING_PRIVATE,
    ROOM_FOR_ONE,
    ROOM_FOR_TWO_CELLS,
    TWO_COPIES,
    cache,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, WINDOW

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
        budget=2,
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
        budget=2,
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
