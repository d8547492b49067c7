"""What a resume costs: bytes that move, tokens that are computed, and the time of both."""

from __future__ import annotations

from dataclasses import dataclass, field

from fivestate.spec.language import ModelError
from fivestate.spec.reuse.availability import Tier

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast bytes move and tokens are computed.

    Attributes:
        host_bytes_per_second: from host memory to the device.
        disk_bytes_per_second: from disk to the device.
        repack_bytes_per_second: within the device, into the layout the kernel wants.
        tokens_per_second: prefill.
    """

    host_bytes_per_second: int = 25_000_000_000
    disk_bytes_per_second: int = 3_000_000_000
    repack_bytes_per_second: int = 500_000_000_000
    tokens_per_second: int = 10_000

    def __post_init__(self) -> None:
        """Check every rate.

        Raises:
            ModelError: one is not a positive whole number.
        """
        for name in self.__slots__:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ModelError(
                    f"rates: {name} = {value!r}: a whole number, 1 or more, is allowed"
                )

    def load(self, tier: Tier) -> int:
        """Return the bytes a second that a tier gives to the device."""
        return self.disk_bytes_per_second if tier is Tier.DISK else self.host_bytes_per_second


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """The cost of one way to reach the fork; ordered by time.

    Attributes:
        nanoseconds: time to the fork, bytes and tokens together.
        load_bytes: bytes that come from a lower tier.
        repack_bytes: bytes that are rearranged on the device.
        replay_tokens: tokens computed a second time, for rows that are gone.
        recompute_tokens: tokens from the resume point to the fork.
    """

    nanoseconds: int = 0
    load_bytes: int = field(default=0, compare=False)
    repack_bytes: int = field(default=0, compare=False)
    replay_tokens: int = field(default=0, compare=False)
    recompute_tokens: int = field(default=0, compare=False)


def token_time(tokens: int, rates: Rates) -> int:
    """Nanoseconds to compute some tokens."""
    return tokens * NANOSECONDS // rates.tokens_per_second


def byte_time(count: int, bytes_per_second: int) -> int:
    """Nanoseconds to move some bytes."""
    return count * NANOSECONDS // bytes_per_second
