"""What transfers may take: threads, frames, places in a queue, and bytes a second."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What transfers may take together (迁移预算).

    Attributes:
        workers: threads.
        frames: frames that may be moved at once.
        queue: transfers that may wait.
        bytes_per_second: bandwidth; infinite by default.
        burst_bytes: what may be moved at once after a pause; by default what a second gives.
    """

    workers: int = 2
    frames: int = 8
    queue: int = 1024
    bytes_per_second: float = math.inf
    burst_bytes: float | None = None

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ValueError: one is out of its range.
        """
        for name in ("workers", "frames", "queue"):
            if getattr(self, name) < 1:
                raise ValueError(f"budget: {name} = {getattr(self, name)}: 1 or more is allowed")
        if not self.bytes_per_second > 0:
            message = f"budget: bytes_per_second = {self.bytes_per_second}"
            raise ValueError(f"{message}: more than 0 is allowed")
        if self.burst_bytes is not None and self.burst_bytes < 0:
            raise ValueError(f"budget: burst_bytes = {self.burst_bytes}: 0 or more is allowed")


class Bucket:
    """How many bytes may be moved now (带宽预算).

    A transfer starts while the bucket is not in debt, and takes its whole size out; so one that is
    larger than the bucket is not held up for ever, and in the long run the rate is kept.
    Not safe against threads by itself.

    Args:
        budget: its rate and its burst.
        clock: seconds; one that goes backwards fills nothing and takes nothing back.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float]) -> None:
        self._rate, self._clock = budget.bytes_per_second, clock
        self._burst = self._rate if budget.burst_bytes is None else budget.burst_bytes
        self._level = self._burst
        self._seen = clock()

    def wait_seconds(self) -> float:
        """Return after how many seconds the next transfer may start; 0 if it may now."""
        if math.isinf(self._rate):
            return 0.0
        now = self._clock()
        elapsed = max(0.0, now - self._seen)
        self._level = min(self._burst, self._level + elapsed * self._rate)
        self._seen = now
        return max(0.0, -self._level / self._rate)

    def take(self, size_bytes: int) -> None:
        """Take out what a transfer moves that starts now."""
        if not math.isinf(self._rate):
            self._level -= size_bytes
