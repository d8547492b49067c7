"""What changes under everybody: weights and kernels, crashes, graphs, forks, an index made anew."""

from __future__ import annotations

from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language import Model
from fivestate.spec.models.sizes import (
    ENTRIES_AND_WINDOW,
    ONE_INDEX_AND_WINDOW_AT_A_TIME,
    ROOM_FOR_THREE,
    ROOM_FOR_TWO,
    cache,
)
from fivestate.spec.static_step import STATIC_STEP
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

CHANGE = Model(
    "change",
    "Weights and kernels change, and the process crashes, with an index to keep in step.",
    ALLOCATOR,
    cache(
        1,
        (COMPRESSED, WINDOW, INDEXER),
        aborts=True,
        stores=True,
        budget=2,
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

GRAPH_TWO = Model(
    "graph-two",
    "Two captured graphs that share one null block, with room for one to run beside the other.",
    ALLOCATOR,
    cache(2, (COMPRESSED,), aborts=True, stores=True, graphs=True, cap=ROOM_FOR_TWO),
)

STATIC_STEP_MODEL = Model(
    "static-step",
    "A captured step that recovers inside, at a fixed shape, beside requests that owe more.",
    STATIC_STEP,
    {"row": 2, "lanes": 1, "most": 2},
)

FORK = Model(
    "fork",
    "A running request is forked beside a third that waits; each writes a tail of its own.",
    ALLOCATOR,
    cache(1, (COMPRESSED, TAIL), 3, aborts=True, forks=True, crashes=True, slots=3),
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
