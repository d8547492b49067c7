"""The bench of ``classify``: verdicts a second, and what they depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from fivestate.checker.bench.rows import Row
from fivestate.checker.bench.timing import Tell, Timed, best_of, timed
from fivestate.checker.plan.speed import Speed, measure
from fivestate.spec.reuse import Geometry

TOKENS = 131_072
ROUNDS = 5
SECONDS = 0.2
"""How long one speed is measured in one round."""

_TOKEN_BYTES = 4
_UNIT = "verdicts/s"
_Key = tuple[int, int]


def notes(geometry: Geometry) -> list[str]:
    """Return what has to be known to read the rows."""
    return [
        f"{geometry.name}, one core, best of {ROUNDS} rounds; in each round everybody has a turn",
        (
            "hashing is what an engine does before it can look a prompt up; a ratio of 10 means "
            "that ten verdicts cost as much"
        ),
        "the other ratios say what a verdict costs there and here: 1 is no growth",
    ]


def rows(geometry: Geometry, tell: Tell, seconds: float = SECONDS) -> Iterator[Row]:
    """Measure, and yield every row."""
    best: dict[_Key, float] = {}
    prompt = bytes(_TOKEN_BYTES * TOKENS)
    step = geometry.hash_block_size

    def verdicts() -> Timed:
        seen: set[_Key] = set()
        with timed() as spent:
            for speed in measure(geometry, seconds):
                key = (speed.tokens, speed.groups)
                if key not in seen:  # a smaller geometry may have as many groups that vote
                    best[key] = max(best.get(key, 0.0), speed.per_second)
                seen.add(key)
        return spent

    hashes = best_of(
        ROUNDS,
        {
            "verdicts": verdicts,
            "chain": lambda: _chained(prompt, _TOKEN_BYTES * step),
            "whole": lambda: _chained(prompt, len(prompt)),
        },
        tell,
    )
    groups = max(voting for _, voting in best)
    here = best[TOKENS, groups]
    what = f"{TOKENS:,} tokens, {groups} groups"
    chain = f"SHA-256 chained over the tokens, by {step}"
    yield Row.more(what, here, _UNIT, chain, 1 / hashes["chain"].wall)
    yield Row.more(what, here, _UNIT, "one SHA-256 over all tokens", 1 / hashes["whole"].wall)
    yield from _growth([Speed(*key, per_second) for key, per_second in best.items()], groups)


def _growth(speeds: list[Speed], groups: int) -> Iterator[Row]:
    lengths = sorted((s for s in speeds if s.groups == groups), key=lambda s: s.tokens)
    for speed in lengths[1:]:
        yield Row.more(
            f"{speed.tokens:,} tokens, {groups} groups",
            speed.per_second,
            _UNIT,
            f"{lengths[0].tokens:,} tokens",
            lengths[0].per_second,
        )
    whole = next(s for s in lengths if s.tokens == TOKENS)
    for speed in sorted((s for s in speeds if s.groups < groups), key=lambda s: -s.groups):
        yield Row.more(
            f"{TOKENS:,} tokens, {speed.groups} groups".replace(" 1 groups", " 1 group"),
            speed.per_second,
            _UNIT,
            f"{groups} groups",
            whole.per_second,
        )


def _chained(prompt: bytes, step: int) -> Timed:
    """Hash each piece of a prompt with the digest of what comes before it."""
    digest = b""
    with timed() as spent:
        for start in range(0, len(prompt), step):
            digest = hashlib.sha256(digest + prompt[start : start + step]).digest()
    return spent
