"""What a model has and has room for: conditions under which something can happen in it."""

from __future__ import annotations

from fivestate.spec.allocator.state import (
    CAP,
    HASH_ONLY,
    HOST,
    PRIVATE,
    SLOTS,
    STORABLE,
    STORES,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import Term, count, exists, forall
from fivestate.spec.vocabulary import COMPRESSED, CacheState


def has(state: CacheState) -> Term:
    """The model has this group."""
    return exists(Group, lambda g: g == state)


HYBRID = exists(Group, lambda g: g != COMPRESSED)
"""Not compressed KV alone."""
GRADED = (HYBRID | STORES) & ~HASH_ONLY
"""A request can be told PARTIAL."""
TWO_STORABLE = count(Group, lambda g: STORABLE[g]) > 1
"""More than compressed KV can be stored."""
TWO_PREFIXES = exists(Prefix, lambda p: exists(Prefix, lambda q: p != q))
"""There is another prefix than the one that is spoken of."""
LEAST_ROOM = forall(Group, lambda g: CAP[g] >= 1 + 2 * PRIVATE[g])
"""Two requests have room on one prefix."""
SHARING = exists(Request, lambda r: exists(Request, lambda q: q != r)) & LEAST_ROOM & (SLOTS > 1)
"""Two requests can be in use at once."""
CONTENDED = SHARING & TWO_PREFIXES
"""So they can, and there are two prefixes to want."""
ROOM_FOR_ALL = forall(Group, lambda g: CAP[g] >= 1 + SLOTS * PRIVATE[g])
"""As many requests as may be in use have room on one prefix."""
HOST_TIGHT = count(Prefix, lambda p: p == p) > HOST[COMPRESSED]  # noqa: PLR0124 -- how many there are
"""There are more prefixes than the tier next to the device has room for."""
