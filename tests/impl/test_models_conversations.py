"""Conversations in which everything happens give the logits that a replay gives, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.impl.model_conversations import Conversations
from tests.impl.model_examples import FULL, HYBRID, PLAIN, WRONG, model, prompt, rng_of
from tests.impl.model_hash_only import taken_as_it_is
from tests.impl.model_places import Blocks, Parts, Place, Tiers
from transformers import DynamicCache

from fivestate.impl.models.provenance import Provenance
from fivestate.impl.models.replay import replay, run

TURNS = 334 if FULL else 6
"""Turns of each model in each place; three models make a thousand."""

ROUNDING = 1e-3
"""Logits of another chunk schedule are closer than this; those of wrong rows are not."""


@pytest.mark.parametrize("name", ["deepseek-v4", "gpt-oss", "qwen3"])
@pytest.mark.parametrize("place", [Parts, Blocks, Tiers])
def test_every_turn_of_random_conversations_is_bit_for_bit_the_replay(
    tmp_path: Path, name: str, place: type[Parts | Blocks | Tiers]
) -> None:
    on = model(name)
    where: Place = place(on, tmp_path) if issubclass(place, Tiers) else place(on)
    talk = Conversations(on, where, rng_of(3))
    for _ in range(TURNS):
        talk.turn()
    where.prefixes.close()
    assert {"MISS", "HIT", "fork", "crash"} <= set(talk.seen), talk.seen
    assert not FULL or {"PARTIAL", "damage", "load back"} <= set(talk.seen), talk.seen
    if name in PLAIN:
        assert talk.worst < ROUNDING
    else:
        assert talk.worst > WRONG


@pytest.mark.parametrize("name", HYBRID + PLAIN)
def test_reuse_by_hash_alone_is_wrong_on_every_hybrid_model_and_right_on_a_plain_one(
    name: str,
) -> None:
    on, rng = model(name), rng_of(2)
    shared, mine, theirs = prompt(rng, 48), prompt(rng, 24), prompt(rng, 20)
    donor = DynamicCache(config=on.config)
    run(on, donor, shared)
    run(on, donor, theirs)
    given = run(on, taken_as_it_is(donor, 48), mine)
    off = float((given - replay(on, Provenance().then(shared).then(mine))[0][48:]).abs().max())
    assert off < ROUNDING if name in PLAIN else off > WRONG


@pytest.mark.parametrize("name", HYBRID)
def test_at_its_very_end_even_reuse_by_hash_alone_is_right(name: str) -> None:
    """The oracle does not cry wolf: nothing has slid or been folded yet."""
    on, rng = model(name), rng_of(2)
    shared, mine = prompt(rng, 48), prompt(rng, 24)
    donor = DynamicCache(config=on.config)
    run(on, donor, shared)
    given = run(on, taken_as_it_is(donor, 48), mine)
    assert torch.equal(given, replay(on, Provenance().then(shared).then(mine))[0][48:])
