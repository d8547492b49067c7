"""A cache that is served by the tests' engine, for tests of what an engine can ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.impl.token_engine import GEOMETRIES, Engine, Held

from fivestate.impl.cache import Cache
from fivestate.impl.leases import Lease
from fivestate.spec.need import blocks

PROMPT = list(range(100, 152))
"""Three blocks of sixteen and four tokens."""


def engine(name: str = "hybrid", tokens: int = 400, **more: Any) -> Engine:
    """Return an engine whose pools each have blocks for some tokens."""
    shape = GEOMETRIES[name]
    return Engine(shape, {g.name: blocks(tokens, g.block_size) for g in shape.groups}, **more)


def serve(served: Engine, tokens: list[int], **more: Any) -> Held:
    """Compute a prompt, and commit what can be; the request goes on."""
    held = served.start(tokens, **more)
    served.recover(held)
    while left := len(held.tokens) - held.written:
        served.fill(held, min(left, served.cache.in_flight_tokens))
        served.commit(held)
    return held


def known(served: Engine, tokens: list[int]) -> None:
    """Let a prompt be known, and nobody hold it."""
    served.release(serve(served, tokens))


def free(served: Engine) -> dict[str, int]:
    return {name: pool.free for name, pool in served.allocator.pools.items()}


OPERATIONS: dict[str, Callable[[Cache, Lease], object]] = {
    "recover": Cache.recover,
    "snapshot": Cache.snapshot,
    "blocks": Cache.blocks,
    "fill": lambda cache, lease: cache.fill(lease, 1),
    "append": lambda cache, lease: cache.append(lease, [1]),
    "verify": lambda cache, lease: cache.verify(lease, 0),
    "commit": Cache.commit,
    "fork": Cache.fork,
    "ledger": Cache.ledger,
}
"""What an engine can do with a lease."""
