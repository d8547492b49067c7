"""Warm-up: prefixes that have a name are brought to the device before anybody asks (预热)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from fivestate.impl.cache import Cache
from fivestate.impl.keys import Prompt
from fivestate.impl.recovery.worker import Worker
from fivestate.impl.refusals import Refused


class Warmth(Enum):
    """What came of warming one prefix up."""

    BEGUN = "begun"
    """Its bytes are on their way."""

    THERE = "there"
    """Nothing of it is missing."""

    WANTED = "wanted"
    """A request is at it already."""

    NO_ROOM = "no room"
    """Its blocks are not beyond the reserve that is left to requests."""

    UNKNOWN = "unknown"
    """Nobody has computed it, or it is gone: it takes a request to have it."""


_BY_GUARD = {
    "known": Warmth.UNKNOWN,
    "unheld": Warmth.WANTED,
    "useful": Warmth.THERE,
    "reserve": Warmth.NO_ROOM,
}


def warm(
    cache: Cache, worker: Worker, named: Mapping[str, Prompt | Sequence[int]]
) -> dict[str, Warmth]:
    """Begin to bring the known parts of some prompts to the device, in their order.

    Args:
        cache: where they are known.
        worker: moves the bytes; of the same allocator.
        named: by name, such as those of the system prompts of a service.

    Raises:
        ClosedError: the worker is closed.
        ValueError: a prompt is empty, or has something that is no token; the worker is of another
            allocator.
    """
    if worker.allocator is not cache.allocator:
        raise ValueError("warm: the worker is of another allocator than the cache")
    return {name: _warm(cache, worker, prompt) for name, prompt in named.items()}


def _warm(cache: Cache, worker: Worker, prompt: Prompt | Sequence[int]) -> Warmth:
    with cache.allocator.lock:
        node = cache.match(prompt).found.node
        if node.parent is None:
            return Warmth.UNKNOWN
        try:
            worker.prefetch(node)
        except Refused as refused:
            return _BY_GUARD[refused.guard]
        return Warmth.BEGUN
