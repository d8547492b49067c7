"""Random conversations on one model: turns, forks, eviction, offload, damage, crash and restart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import torch
from tests.impl.model_examples import lengths, prompt
from tests.impl.model_hash_only import taken_as_it_is
from tests.impl.model_oracle import oracle
from tests.impl.model_places import Place
from torch import Tensor
from transformers import Cache, PreTrainedModel

from fivestate.impl.models.prefix_cache import Lease, PrefixCache
from fivestate.impl.models.replay import run
from fivestate.spec.need import round_down

LONGEST = 150
"""Tokens after which a conversation is not continued."""


@dataclass
class Conversations:
    """Conversations that share prompts, and a prefix cache that is treated badly.

    Attributes:
        on: the model.
        place: where its rows are kept, and what goes wrong there.
        rng: what decides everything.
        texts: the tokens of every turn that is over.
        caches: what the cache object of each of them held when it was over.
        seen: how often what happened.
        worst: by how much reuse by hash alone was off, at most.
    """

    on: PreTrainedModel
    place: Place
    rng: Random
    texts: list[list[int]] = field(default_factory=list[list[int]])
    caches: list[Cache] = field(default_factory=list[Cache])
    seen: Counter[str] = field(default_factory=Counter[str])
    worst: float = 0.0

    def __post_init__(self) -> None:
        """Start with system prompts."""
        self.systems = [prompt(self.rng, tokens) for tokens in (21, 40)]

    @property
    def prefixes(self) -> PrefixCache:
        """The cache that is asked."""
        return self.place.prefixes

    def turn(self) -> None:
        """One question and its answer: the logits are the oracle's, bit for bit."""
        self.place.trouble(self.rng, self.seen)
        text = [*self.text(), *prompt(self.rng, self.rng.randint(1, 40))]
        lease = self.prefixes.lease(text)
        self.seen[lease.verdict.kind.value] += 1
        self.seen.update(step.means.value for step in lease.verdict.plan.steps)
        given: list[Tensor] = []
        for length in lengths(self.rng, len(text) - lease.resume):
            at = lease.cache.get_seq_length()
            given.append(run(self.on, lease.cache, text[at : at + length]))
        for _ in range(self.rng.randint(1, 5)):
            text.append(int(given[-1][-1].argmax()))
            given.append(run(self.on, lease.cache, text[-1:]))
        committed = self.prefixes.commit(lease, text)
        wanted, _ = oracle(self.on, committed.provenance)
        assert committed.provenance.tokens == tuple(text)
        assert torch.equal(torch.cat(given), wanted[lease.resume :]), self.seen
        self.by_hash_alone(text, wanted)
        self.remember(text, lease)

    def text(self) -> list[int]:
        """Return what a turn goes on from: a conversation, a fork of one, or a system prompt."""
        what = self.rng.random()
        if not self.texts or what < 0.2:
            return list(self.rng.choice(self.systems))
        text = self.rng.choice(self.texts[-8:])
        if len(text) > LONGEST or what < 0.5:
            self.seen["fork"] += 1
            return text[: self.rng.randint(1, min(len(text), LONGEST))]
        return list(text)

    def by_hash_alone(self, text: list[int], wanted: Tensor) -> None:
        """Do what an engine does that believes its hashes, and note how far off it is."""
        best, donor = 0, None
        for other, cache in zip(self.texts, self.caches, strict=True):
            at = round_down(
                min(shared(other, text), len(other) - 1),
                self.prefixes.layout.geometry.scheduler_block_size,
            )
            if at > best:
                best, donor = at, cache
        if donor is not None:
            logits = run(self.on, taken_as_it_is(donor, best), text[best:])
            self.worst = max(self.worst, float((logits - wanted[best:]).abs().max()))

    def remember(self, text: list[int], lease: Lease) -> None:
        """Keep the last few conversations."""
        self.texts.append(text)
        self.caches.append(lease.cache)
        del self.texts[:-8], self.caches[:-8]


def shared(one: list[int], other: list[int]) -> int:
    """Return how many tokens two texts have in common."""
    same = [a == b for a, b in zip(one, other, strict=False)]
    return same.index(False) if False in same else len(same)
