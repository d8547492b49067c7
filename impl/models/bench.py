"""Time to the first token: a prompt that goes on from a cached prefix, beside one that is computed.

The model is tiny and runs on a CPU, so the seconds say nothing about a real one; how they grow
with the prompt does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from transformers import DynamicCache, PreTrainedModel

from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.replay import run
from fivestate.impl.models.tiny import VOCABULARY, tiny

PROMPTS = (128, 256, 512, 1024, 2048)
"""Lengths of the prompts, in tokens."""

QUESTION_TOKENS = 16
"""Tokens at the end of a prompt that are new."""

ROUNDS = 3
"""How often each is run; the least time counts, for others only ever add."""


@dataclass(frozen=True, slots=True)
class FirstToken:
    """How long a prompt takes to its first token.

    Attributes:
        prompt_tokens: tokens of the prompt.
        resumed_tokens: tokens of it that were reused.
        reuse_seconds: matching, assembling and computing the rest.
        recompute_seconds: computing all of it.
    """

    prompt_tokens: int
    resumed_tokens: int
    reuse_seconds: float
    recompute_seconds: float

    @property
    def ratio(self) -> float:
        """How many times sooner the token is there."""
        return self.recompute_seconds / self.reuse_seconds


def first_token(
    prompts: Sequence[int] = PROMPTS, *, model: str = "deepseek-v4", rounds: int = ROUNDS
) -> Iterator[FirstToken]:
    """Yield the times of each prompt length, shortest first.

    Raises:
        ValueError: a length leaves nothing to reuse, or there is no such tiny model.
    """
    on = tiny(model)
    for tokens in sorted(prompts):
        if tokens <= 2 * QUESTION_TOKENS:
            raise ValueError(f"prompt of {tokens} tokens: {2 * QUESTION_TOKENS + 1} or more")
        yield _measured(on, tokens, rounds)


def _measured(on: PreTrainedModel, tokens: int, rounds: int) -> FirstToken:
    prefixes = PrefixCache(on)
    generator = torch.Generator().manual_seed(tokens)
    prompt = torch.randint(3, VOCABULARY, (tokens,), generator=generator).tolist()
    donor = prefixes.lease(prompt[:-QUESTION_TOKENS])
    run(on, donor.cache, donor.tokens)
    prefixes.commit(donor, donor.tokens)
    resumed = prefixes.match(prompt).resume

    def reuse() -> None:
        lease = prefixes.lease(prompt)
        run(on, lease.cache, prompt[lease.resume :])

    def recompute() -> None:
        run(on, DynamicCache(config=on.config), prompt)

    least = {reuse: float("inf"), recompute: float("inf")}
    for _ in range(rounds):
        for way, seconds in least.items():
            least[way] = min(seconds, _seconds(way))
    return FirstToken(tokens, resumed, least[reuse], least[recompute])


def _seconds(way: Callable[[], None]) -> float:
    start = perf_counter()
    way()
    return perf_counter() - start
