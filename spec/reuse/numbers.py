"""The four numbers of a lookup, in tokens, and their sum over a load (命中率拆分).

Two rates are not enough: what granularity takes lies between what was seen and what can be
recovered, and read as one number it looks like a cold cache (B02, B85).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Numbers:
    """How far each question lets a prompt get.

    Attributes:
        prompt: tokens of the prompt.
        matched: tokens whose hash was found: the logical hit.
        feasible: tokens that are left after granularity, look-back and the last token.
        recoverable: tokens that can be resumed, whatever it takes.
        used: tokens that were resumed.
    """

    prompt: int
    matched: int = 0
    feasible: int = 0
    recoverable: int = 0
    used: int = 0

    def __add__(self, other: Numbers) -> Numbers:
        return Numbers(
            self.prompt + other.prompt,
            self.matched + other.matched,
            self.feasible + other.feasible,
            self.recoverable + other.recoverable,
            self.used + other.used,
        )


@dataclass
class Tally:
    """The four numbers of a load: each request counts once, at its first admission (B73)."""

    total: Numbers = field(default_factory=lambda: Numbers(0))
    _counted: set[str] = field(default_factory=set[str])

    def admitted(self, request: str, numbers: Numbers) -> None:
        """Count a request that is admitted; lookups before and after it change nothing."""
        if request not in self._counted:
            self._counted.add(request)
            self.total += numbers
