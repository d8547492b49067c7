"""The thesis: where a hash hit may be used, and three places where it may not."""

from __future__ import annotations

from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language import Model
from fivestate.spec.models.sizes import cache
from fivestate.spec.scheme_a import ONE_GROUP_IS_SCHEME_A, SCHEME_A
from fivestate.spec.vocabulary import COMPRESSED, WINDOW

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
