"""What the shadow costs a request: beside one that is computed without any cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from transformers import DynamicCache

from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.replay import run
from fivestate.impl.models.tiny import VOCABULARY, tiny
from fivestate.impl.rollout import Ramp, Rollout
from fivestate.impl.shadow import Shadow
from fivestate.impl.shadow_models import ShadowCache

SYSTEM_TOKENS, QUESTION_TOKENS = 256, 16
NEVER = Ramp(shares=(0.0, 1.0), agreements=10**9, sample=1.0)
"""Stays in the shadow, and compares every hit."""

ALWAYS = Ramp(shares=(0.0, 1.0), agreements=1, sample=1.0)
"""Rises at once, and compares every hit."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What one request takes, in milliseconds.

    Attributes:
        what: how it is served.
        milliseconds: the least of some rounds.
        peer: what it is measured against.
        peer_milliseconds: the least of the peer, in the same rounds.
    """

    what: str
    milliseconds: float
    peer: str
    peer_milliseconds: float


def overhead(model: str = "deepseek-v4", rounds: int = 8) -> Iterator[Overhead]:
    """Yield what a request takes in the shadow, and where it is reused and compared all the same.

    Raises:
        ValueError: there is no such tiny model.
    """
    on, chance = tiny(model), Random(0)  # noqa: S311 -- prompts are no secret
    system = _tokens(chance, SYSTEM_TOKENS)
    served = {
        "in the shadow, compared": ShadowCache(PrefixCache(on), Shadow(Rollout(NEVER))),
        "reused, compared": ShadowCache(PrefixCache(on), Shadow(Rollout(ALWAYS))),
    }

    for cache in served.values():
        for _ in range(2):  # known, and risen
            _serve(cache, [*system, *_tokens(chance, QUESTION_TOKENS)])
    best = dict.fromkeys((*served, ""), float("inf"))
    for _ in range(rounds):
        text = [*system, *_tokens(chance, QUESTION_TOKENS)]
        best[""] = min(best[""], _timed(partial(run, on, DynamicCache(config=on.config), text)))
        for name, cache in served.items():
            best[name] = min(best[name], _timed(partial(_serve, cache, text)))
    for name in served:
        yield Overhead(f"a request {name}", best[name], "no cache", best[""])


def _serve(cache: ShadowCache, text: list[int]) -> None:
    held = cache.lease(text)
    run(cache.prefixes.model, held.cache, text[held.lease.resume :])
    cache.commit(held, text)


def _tokens(chance: Random, count: int) -> list[int]:
    return [chance.randrange(3, VOCABULARY) for _ in range(count)]


def _timed(way: Callable[[], object]) -> float:
    start = time.perf_counter()
    way()
    return 1_000 * (time.perf_counter() - start)
