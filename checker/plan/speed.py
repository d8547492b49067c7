"""How fast ``classify`` is, and how that grows with the prompt and with the groups."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fivestate.spec.reuse import Asked, Availability, Geometry, classify, resident
from fivestate.spec.reuse.groups import Role

LENGTHS_TOKENS = (1_024, 16_384, 131_072, 1_048_576)


@dataclass(frozen=True)
class Speed:
    """How many prefixes a second are classified.

    Attributes:
        tokens: tokens of the shared prefix.
        groups: groups that vote.
        per_second: verdicts a second, on one core.
    """

    tokens: int
    groups: int
    per_second: float


def measure(geometry: Geometry, seconds: float = 0.5) -> Iterator[Speed]:
    """Yield the speed at several lengths, then at the longest but one with fewer groups.

    Every group has everything on the device but the windows, which have to be replayed: that is
    the path through all of ``classify``.
    """
    for tokens in LENGTHS_TOKENS:
        yield _speed(geometry, tokens, seconds)
    for count in range(len(geometry.groups) - 1, 0, -1):
        kept = geometry.groups[:count]
        names = {group.name for group in kept}
        if all(group.of in {"", *names} for group in kept):
            yield _speed(replace(geometry, groups=kept), LENGTHS_TOKENS[-2], seconds)


def _speed(geometry: Geometry, tokens: int, seconds: float) -> Speed:
    copies = {
        group.name: (resident(0, tokens),)
        for group in geometry.groups
        if group.role is Role.REQUIRED
    }
    asked, available = Asked(tokens), Availability((copies,))
    rounds, started = 0, time.perf_counter()
    while (spent := time.perf_counter() - started) < seconds:
        classify(geometry, asked, available)
        rounds += 1
    return Speed(tokens, len(geometry.voting), rounds / spent)
