"""What of a sliding window is kept for later, and what it costs to have it again (滑窗策略)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fivestate.spec.language import ModelError
from fivestate.spec.need import round_down, window_start
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import Shape
from fivestate.spec.reuse.spans import Span


class Keep(Enum):
    """Which window rows of a finished prefix are stored."""

    FULL = "full"
    """All rows: every position can be resumed."""

    PERIODIC = "periodic"
    """The rows before every multiple of a period: the rest is replayed from there."""

    ZERO = "zero"
    """None: every layer's window is replayed, from layers × (W − 1) tokens back."""

    BOUNDED = "bounded replay"
    """None: the last window alone is replayed. Approximate: it depends on where it starts."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What a policy costs for one prefix.

    Attributes:
        keep: the policy.
        stored_bytes: bytes it keeps for the prefix.
        replay_tokens: the most tokens that have to be computed again for one resume.
        exact: whether what is computed again is what was there.
    """

    keep: Keep
    stored_bytes: int
    replay_tokens: int
    exact: bool


def kept_rows(keep: Keep, tokens: int, window: int, period: int) -> tuple[Span, ...]:
    """Return the window rows that a policy keeps of a prefix.

    Raises:
        ModelError: the period is not positive.
    """
    if period < 1:
        raise ModelError(f"window policy: period = {period}: 1 token or more is allowed")
    if keep is Keep.FULL:
        return (Span(0, tokens),)
    if keep is not Keep.PERIODIC:
        return ()
    ends = range(period, tokens + 1, period)
    return tuple(Span(window_start(end, window), end) for end in ends)


def bill(geometry: Geometry, keep: Keep, tokens: int, period: int, step: int) -> Bill:
    """Return what a policy costs for a prefix that is resumed at a multiple of ``step``.

    A periodic policy replays from its last checkpoint, unless the windows are computed again in
    fewer tokens. Source: domain §4.1, §4.2.
    """
    runs = [group for group in geometry.voting if group.shape is Shape.RUN]
    stored = sum(
        group.bytes_for(span)
        for group in runs
        for span in kept_rows(keep, tokens, group.window, period)
    )
    window, layers = geometry.widest_window, geometry.window_layers
    cold = min(layers * (window - 1), tokens)
    match keep:
        case Keep.FULL:
            replay = 0
        case Keep.PERIODIC:
            last = round_down(tokens, step)
            far = max((p - round_down(p, period) for p in range(step, last + 1, step)), default=0)
            replay = min(far, cold)
        case Keep.ZERO:
            replay = cold
        case Keep.BOUNDED:
            replay = min(window, tokens) if runs else 0
    return Bill(keep, stored, replay, keep is not Keep.BOUNDED)
