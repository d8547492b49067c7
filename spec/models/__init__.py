"""The models that are shipped: machines at sizes that can be searched to the end."""

from __future__ import annotations

from fivestate.spec.models.changes import (
    CHANGE,
    DEEP,
    FORK,
    FORK_THREE,
    FORK_TWO,
    GRAPH,
    GRAPH_TWO,
    INDEX,
    INDEX_TIGHT,
    INDEX_TWO,
    STATIC_STEP_MODEL,
)
from fivestate.spec.models.groups import (
    ACROSS,
    ACROSS_TIGHT,
    ALL_GROUPS,
    CONTEND,
    HYBRID,
    ONE_SLOT,
    SHARING,
    SHARING_TIERS,
    SHARING_TIGHT,
)
from fivestate.spec.models.sequences import SEQUENCE_ODD, SEQUENCE_PLAIN, SEQUENCES
from fivestate.spec.models.thesis import (
    HASH_ONLY,
    HASH_ONLY_LAYOUT,
    HASH_ONLY_TIER,
    HOMOGENEOUS,
    SCHEME_A_MODEL,
)
from fivestate.spec.models.tiers import (
    HOST_CHANGE,
    HOST_FULL,
    PREFETCH,
    PREFETCH_ALL,
    PREFETCH_TIERS,
    TIERS,
    TIERS_CHANGE,
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
    STATIC_STEP_MODEL,
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

__all__ = [
    "ACROSS",
    "ACROSS_TIGHT",
    "ALL_GROUPS",
    "CHANGE",
    "CONTEND",
    "DEEP",
    "FAILS",
    "FORK",
    "FORK_THREE",
    "FORK_TWO",
    "GRAPH",
    "GRAPH_TWO",
    "HASH_ONLY",
    "HASH_ONLY_LAYOUT",
    "HASH_ONLY_TIER",
    "HOLDS",
    "HOMOGENEOUS",
    "HOST_CHANGE",
    "HOST_FULL",
    "HYBRID",
    "INDEX",
    "INDEX_TIGHT",
    "INDEX_TWO",
    "LARGE",
    "MODELS",
    "ONE_SLOT",
    "PREFETCH",
    "PREFETCH_ALL",
    "PREFETCH_TIERS",
    "SCHEME_A_MODEL",
    "SEQUENCES",
    "SEQUENCE_ODD",
    "SEQUENCE_PLAIN",
    "SHARING",
    "SHARING_TIERS",
    "SHARING_TIGHT",
    "SLICES",
    "STATIC_STEP_MODEL",
    "TIERS",
    "TIERS_CHANGE",
]
