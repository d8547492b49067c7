"""What the tests of real models share: the models, random prompts and random schedules."""

from __future__ import annotations

import os
from functools import cache
from random import Random

import torch
from transformers import PreTrainedModel

from fivestate.impl.models.provenance import Provenance, scheduled
from fivestate.impl.models.tiny import VOCABULARY, tiny

FULL = bool(os.environ.get("FIVESTATE_FULL"))
"""Whether to run what takes an hour."""

HYBRID = ("deepseek-v4", "gpt-oss", "gemma3")
PLAIN = ("qwen3",)

WRONG = 1e-2
"""Logits that differ by more are wrong; by less, the chunks of two schedules could explain it."""


@cache
def model(name: str) -> PreTrainedModel:
    """Return a tiny model, made once.

    One thread: with more, a product's rows are shared out by how many there are.
    """
    torch.set_num_threads(1)
    return tiny(name)


def rng_of(seed: int) -> Random:
    """Return a source of numbers that are the same every time."""
    return Random(seed)  # noqa: S311 -- not for secrets


def prompt(rng: Random, tokens: int) -> list[int]:
    """Return random tokens."""
    return [rng.randrange(VOCABULARY) for _ in range(tokens)]


def lengths(rng: Random, tokens: int, longest: int = 40) -> list[int]:
    """Return chunk lengths that add up: single tokens, short ones and long ones in turns."""
    made: list[int] = []
    while (left := tokens - sum(made)) > 0:
        made.append(min(rng.randint(1, rng.choice((1, 5, longest))), left))
    return made


def schedule(rng: Random, tokens: int) -> Provenance:
    """Return a random prompt, cut into random chunks."""
    return scheduled(prompt(rng, tokens), lengths(rng, tokens))
