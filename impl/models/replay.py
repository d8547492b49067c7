"""Replay: compute a prefix again in the chunks it was made in, with nothing reused."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel

from fivestate.impl.models.parts import RecordedCache, assemble, disassemble
from fivestate.impl.models.provenance import Provenance


@torch.no_grad()
def run(model: PreTrainedModel, cache: Cache, tokens: Sequence[int]) -> Tensor:
    """Compute tokens as one chunk behind what the cache has.

    Returns:
        The logits of each of them, shape (tokens, vocabulary).
    """
    chunk = torch.tensor([list(tokens)], device=model.device)
    logits: Tensor = model(chunk, cache=cache, use_cache=True).logits[0]
    return logits


def replay(model: PreTrainedModel, provenance: Provenance) -> tuple[Tensor, Cache]:
    """Return what a run without reuse gives, in the chunks of a provenance.

    Where every row was kept the cache is transformers' own, untouched. Where a chunk's later rows
    were dropped, no cache of transformers can follow; then the cache is cut at that place.

    Returns:
        The logits of each token, shape (tokens, vocabulary), and the cache behind the last.
    """
    cache = DynamicCache(config=model.config) if provenance.plain else RecordedCache(model)
    logits: list[Tensor] = []
    for chunk, kept in provenance.steps():
        logits.append(run(model, cache, chunk.tokens)[:kept])
        if isinstance(cache, RecordedCache) and kept < len(chunk.tokens):
            at = chunk.start + kept
            cache = assemble(model, disassemble(cache, at), at, layout=cache.layout)
    vocabulary = int(model.config.get_text_config(decoder=True).vocab_size)
    return torch.cat([torch.empty((0, vocabulary)), *logits]), cache
