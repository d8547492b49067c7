"""Rollout: a cache is believed step by step, and not at all once a comparison fails (灰度与回滚).

Hit rates say nothing about wrong text. So reuse starts in the shadow: hits are classified and
recovered but not used, and on a sample what the cache would have given is compared with what was
computed. Agreement raises the share of prefixes that are really reused, step by step; one
difference takes it back to nothing, and the way up is longer then.
Source: seed 001 §8(7); seed 002 §9(1), §9(6).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from threading import Lock

from fivestate.spec.language import ModelError

LOG = logging.getLogger("fivestate.rollout")

_SPACE = 1 << 64


class Use(Enum):
    """What is done with a hit."""

    REUSE = "reuse"
    """The cached prefix is used."""

    SHADOW = "shadow"
    """It is classified and recovered, and the prefix is computed all the same."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one hit.

    Attributes:
        use: whether the cached prefix is used.
        compare: whether to compute the prefix too and report ``agreed`` or ``differed``.
    """

    use: Use
    compare: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """The rule by which reuse rises (放量规则).

    Attributes:
        shares: share of prefixes that are reused at each step; the first is the shadow's.
        agreements: comparisons in a row that must agree before the next step.
        sample: share of hits that are compared, whatever the step.
        setback: by what the agreements asked for are multiplied after each difference.
        differences: differences after which only a person starts it again (``restart``).
    """

    shares: tuple[float, ...] = (0.0, 0.01, 0.1, 0.5, 1.0)
    agreements: int = 100
    sample: float = 0.05
    setback: int = 2
    differences: int = 3

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ModelError: a share is outside 0 to 1 or falls, the first is not 0, nothing would be
                compared, or a number is below 1.
        """
        rising = all(a < b for a, b in zip(self.shares, self.shares[1:], strict=False))
        if not self.shares or self.shares[0] != 0 or self.shares[-1] > 1 or not rising:
            message = f"ramp: shares = {self.shares}: they start at 0 and rise to 1 at most"
            raise ModelError(message)
        if not 0 < self.sample <= 1:
            message = f"ramp: sample = {self.sample}: above 0 (else nothing is noticed), 1 at most"
            raise ModelError(message)
        for name in ("agreements", "setback", "differences"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ModelError(f"ramp: {name} = {value!r}: a whole number, 1 or more, is allowed")


class Rollout:
    """Decides hit by hit, and learns from comparisons.

    One prefix always gets one answer at one step, and keeps being reused at every later step: the
    decision depends on its key alone, not on chance. Safe to call from several threads.
    """

    def __init__(self, ramp: Ramp | None = None) -> None:
        self.ramp = ramp or Ramp()
        self._lock = Lock()
        self._step = 0
        self._agreed = 0
        self._differences = 0
        self._halted = False

    @property
    def share(self) -> float:
        """The share of prefixes that are reused now, 0 to 1."""
        return self.ramp.shares[self._step]

    @property
    def halted(self) -> bool:
        """Whether it has fallen back for good, until ``restart``."""
        return self._halted

    @property
    def owed(self) -> int:
        """Comparisons in a row that must still agree before the next step; 0 at the last one."""
        if self._halted or self._step == len(self.ramp.shares) - 1:
            return 0
        return self._asked() - self._agreed

    def decide(self, key: bytes) -> Decision:
        """Say what to do with a hit on the prefix whose digest is ``key``.

        Raises:
            ValueError: the key is not bytes, or empty.
        """
        if not key or not isinstance(key, bytes):
            raise ValueError(f"rollout: key = {key!r}: the digest of a prefix, as bytes, is needed")
        reused = _place(key, b"share") < self.share * _SPACE
        compared = _place(key, b"sample") < self.ramp.sample * _SPACE
        return Decision(Use.REUSE if reused else Use.SHADOW, compared)

    def agreed(self) -> None:
        """Take in that what the cache gives equals what was computed."""
        with self._lock:
            if self._halted:
                return
            self._agreed += 1
            last = self._step == len(self.ramp.shares) - 1
            if not last and self._agreed >= self._asked():
                self._step += 1
                self._agreed = 0
                LOG.info("reuse rises to %.2f of prefixes", self.share)

    def differed(self, key: bytes, found: str) -> None:
        """Take in that the cache would have given something else: back to the shadow at once.

        Args:
            key: the prefix's digest.
            found: what differed, for the log.
        """
        with self._lock:
            self._step = 0
            self._agreed = 0
            self._differences += 1
            self._halted = self._differences >= self.ramp.differences
        LOG.error("reuse falls back to 0: prefix %s: %s", key.hex()[:16], found)

    def restart(self) -> None:
        """Begin again in the shadow, with everything forgotten: a person's decision."""
        with self._lock:
            self._step = self._agreed = self._differences = 0
            self._halted = False

    def _asked(self) -> int:
        return int(self.ramp.agreements * self.ramp.setback**self._differences)


def _place(key: bytes, purpose: bytes) -> int:
    """Return where a key lies in 0 .. 2^64 - 1, for one purpose independently of the other."""
    return int.from_bytes(blake2b(key, digest_size=8, person=purpose).digest(), "big")
