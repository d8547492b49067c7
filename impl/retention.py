"""Retention: where a sequence that is committed is cut into nodes, and what is kept of windows."""

from __future__ import annotations

from dataclasses import dataclass

from fivestate.spec.language import ModelError
from fivestate.spec.need import round_down
from fivestate.spec.reuse.windows import Keep


@dataclass(frozen=True, slots=True)
class Retention:
    """Which positions of a finished sequence can be resumed without a replay (滑窗策略).

    A window and a tail are kept at the ends of nodes, so the policy is the length of nodes. With
    ``FULL`` every scheduler block ends one; with ``PERIODIC`` every multiple of the period or,
    without one, the last boundary before a prompt's last token, at which the same prompt resumes
    again; and every place where the engine commits. With ``ZERO`` and ``BOUNDED`` the engine's
    commits alone, and the windows are let go when the request ends. Source: domain §1.9.

    Attributes:
        keep: the policy.
        period_tokens: of ``PERIODIC``, the distance of the ends; nothing means the ends of prompts
            and the commits.
    """

    keep: Keep = Keep.PERIODIC
    period_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the period.

        Raises:
            ModelError: it is not positive, or the policy has none.
        """
        period = self.period_tokens
        if period is not None and (period < 1 or self.keep is not Keep.PERIODIC):
            allowed = "1 token or more is allowed, and only with PERIODIC"
            raise ModelError(f"retention: period_tokens = {period}: {allowed}")

    @property
    def keeps_windows(self) -> bool:
        """Whether windows stay when the request ends."""
        return self.keep in (Keep.FULL, Keep.PERIODIC)

    def ends(
        self, start_tokens: int, end_tokens: int, step_tokens: int, asked_tokens: int = 0
    ) -> list[int]:
        """Return where nodes end, from the first multiple of the step behind a start to an end.

        Args:
            start_tokens: where what is known ends.
            end_tokens: where what can be known ends.
            step_tokens: the distance of boundaries.
            asked_tokens: tokens of the prompt; 0 where no windows have to be kept.
        """
        last = round_down(end_tokens, step_tokens)
        if last <= start_tokens:
            return []
        if self.keep is Keep.FULL:
            return list(range(start_tokens + step_tokens, last + 1, step_tokens))
        if self.keep is not Keep.PERIODIC:
            return [last]
        period = self.period_tokens
        if period is None:
            marks = range(max(asked_tokens - 1, 0), asked_tokens)
        else:
            marks = range(round_down(start_tokens, period) + period, last, period)
        inside = {round_down(mark, step_tokens) for mark in marks}
        return [*sorted(end for end in inside if start_tokens < end < last), last]
