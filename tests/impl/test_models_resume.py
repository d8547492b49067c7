"""A resume is bit for bit what the same chunks give without one, at every position."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from tests.impl.model_examples import FULL, HYBRID, PLAIN, lengths, model, prompt, rng_of, schedule
from tests.impl.model_oracle import oracle
from transformers import DynamicCache, PreTrainedModel

from fivestate.impl.models.parts import RecordedCache, assemble, disassemble
from fivestate.impl.models.provenance import Provenance
from fivestate.impl.models.replay import replay, run

SEEDS = 40 if FULL else 1
TOKENS = 72 if FULL else 40


def recorded(on: PreTrainedModel, provenance: Provenance) -> RecordedCache:
    """Return a cache that records, after the chunks of a provenance that keeps every row."""
    cache = RecordedCache(on)
    for chunk, _ in provenance.steps():
        run(on, cache, chunk.tokens)
    return cache


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_the_oracle_and_the_recording_cache_serve_as_transformers_own(name: str) -> None:
    on = model(name)
    for seed in range(SEEDS):
        donor = schedule(rng_of(seed), TOKENS)
        own = DynamicCache(config=on.config)
        wanted = torch.cat([run(on, own, chunk.tokens) for chunk, _ in donor.steps()])
        recording = RecordedCache(on)
        given = torch.cat([run(on, recording, chunk.tokens) for chunk, _ in donor.steps()])
        assert torch.equal(given, wanted)
        assert torch.equal(oracle(on, donor)[0], wanted)
        assert torch.equal(replay(on, donor)[0], wanted)


@pytest.mark.parametrize("name", HYBRID + PLAIN)
@pytest.mark.parametrize("seed", range(SEEDS) if FULL else [1])
def test_a_resume_at_every_position_is_bit_for_bit_the_replay(name: str, seed: int) -> None:
    on, rng = model(name), rng_of(seed)
    donor = schedule(rng, TOKENS)
    cache = recorded(on, donor)
    remembers = oracle(on, donor)[1]
    for position in range(1, TOKENS + 1):
        resumed = assemble(on, disassemble(cache, position), position)
        baseline = deepcopy(remembers)
        baseline.rewind(position)
        fork = prompt(rng, rng.randint(1, 40))
        for length in lengths(rng, len(fork), 20)[: 3 if FULL else 2]:
            chunk, fork = fork[:length], fork[length:]
            assert torch.equal(run(on, resumed, chunk), run(on, baseline, chunk)), position


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_forks_of_forks_are_one_schedule_and_replay_gives_it_again(name: str) -> None:
    on = model(name)
    for seed in range(SEEDS):
        rng = rng_of(seed)
        provenance = schedule(rng, 30)
        cache = recorded(on, provenance)
        for _ in range(4):
            position = rng.randint(max(1, provenance.end - 25), provenance.end)
            provenance = provenance.cut(position)
            cache = assemble(on, disassemble(cache, position), position)
            given = []
            for length in lengths(rng, rng.randint(1, 40)):
                tokens = prompt(rng, length)
                provenance = provenance.then(tokens)
                given.append(run(on, cache, tokens))
            wanted = oracle(on, provenance)[0]
            assert torch.equal(torch.cat(given), wanted[position:])
            assert torch.equal(replay(on, provenance)[0], wanted)


@pytest.mark.parametrize("name", ["deepseek-v4", "gpt-oss"])
def test_another_schedule_gives_other_bits_but_no_other_text(name: str) -> None:
    """Why a baseline has to replay the chunks: the oracle can tell schedules apart."""
    on, tokens = model(name), prompt(rng_of(1), 48)
    one, _ = replay(on, Provenance().then(tokens))
    other, _ = replay(on, Provenance().then(tokens[:17]).then(tokens[17:]))
    assert not torch.equal(one, other)
    assert (one - other).abs().max() < 1e-3
