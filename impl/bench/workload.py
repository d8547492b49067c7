"""The workload of the benches: turns of one conversation, each with the history before it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol, TypeVar

T = TypeVar("T")

ASKED_TOKENS = 200
"""Tokens that a user adds in one turn."""

ANSWERED_TOKENS = 56
"""Tokens that are decoded in one turn: with the question, one scheduler block of dsv4-flash."""

CHUNK_TOKENS = 8_192
VOCABULARY = 129_280

PHASES = ("hash", "match", "allocate", "append", "free")
"""What a turn consists of, in this order."""


@dataclass
class Turn:
    """What one turn took.

    Attributes:
        hit_tokens: tokens that were reused.
        seconds: by phase.
    """

    hit_tokens: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def timed(self, phase: str, run: Callable[[], T]) -> T:
        """Run something, note how long it took, and return what it returns.

        Processor time of this thread: whoever else uses the machine does not count.
        """
        start = time.thread_time()
        result = run()
        self.seconds[phase] = time.thread_time() - start
        return result


class Contender(Protocol):
    """Somebody who keeps the cache of a conversation."""

    name: str

    def turn(self, prompt: list[int], answer: list[int]) -> Turn:
        """Reuse what there is of a prompt, compute the rest of it, decode an answer, and end."""
        ...


@dataclass(frozen=True)
class Result:
    """What turns of one length took, in milliseconds.

    Attributes:
        hit_tokens: what was reused, turn by turn.
        phases: by phase, the median.
    """

    hit_tokens: tuple[int, ...]
    phases: dict[str, float]

    @property
    def without_hashing(self) -> float:
        """The milliseconds of one turn whose digests are there."""
        return sum(took for phase, took in self.phases.items() if phase != "hash")

    @property
    def with_hashing(self) -> float:
        """The milliseconds of one turn."""
        return sum(self.phases.values())


def converse(contenders: list[Contender], tokens: int, turns: int) -> dict[str, Result]:
    """Let everybody go through the same conversation, turn about, and return what they took.

    The first prompt that counts has ``tokens``; the one before it computes most of them.
    """
    draw = random.Random(tokens)  # noqa: S311 -- the same conversation every time
    history = [draw.randrange(VOCABULARY) for _ in range(_start(tokens))]
    took: dict[str, list[Turn]] = {contender.name: [] for contender in contenders}
    for number in range(turns + 1):
        history += [draw.randrange(VOCABULARY) for _ in range(ASKED_TOKENS)]
        answer = [draw.randrange(VOCABULARY) for _ in range(ANSWERED_TOKENS)]
        for contender in contenders:
            turn = contender.turn(list(history), answer)
            if number:
                took[contender.name].append(turn)
        history += answer
    return {name: _result(measured) for name, measured in took.items()}


def _start(tokens: int) -> int:
    return tokens - ASKED_TOKENS - ANSWERED_TOKENS - ASKED_TOKENS


def _result(turns: list[Turn]) -> Result:
    phases = {
        phase: 1_000 * median(turn.seconds.get(phase, 0.0) for turn in turns) for phase in PHASES
    }
    return Result(tuple(turn.hit_tokens for turn in turns), phases)
