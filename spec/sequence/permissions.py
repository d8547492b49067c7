"""What may be done with a sequence, up to its edges: a rule that is too strict is found here."""

from __future__ import annotations

from fivestate.spec.language import Term, Ways, may, ways, witness
from fivestate.spec.need import entries, tail_start, window_start
from fivestate.spec.sequence.actions import resume, roll_back, slide, trim
from fivestate.spec.sequence.state import LOOKBACK, RATIO, SPAN, Sequence


@witness("P-41", given=SPAN > 1)
def slides_by_one(s: Sequence) -> Term:
    """The window may let go of a single row."""
    return may(slide) & (s.window + 1 == window_start(s.verified, SPAN))


@witness("P-42", given=RATIO == 1)
def trims_by_one(s: Sequence) -> Term:
    """Where entries are tokens, the tail may let go of a single row."""
    return may(trim) & (s.tail + 1 == tail_start(s.folded, RATIO, LOOKBACK))


@witness("P-43")
def rolls_back_one(s: Sequence) -> Term:
    """A single draft may be rejected."""
    return may(roll_back) & (s.verified + 1 == s.written)


@witness("P-44")
def resumes_at_the_edges(s: Sequence) -> Ways:
    """A snapshot may be resumed from its first token to its last, as soon as it is indexed."""
    return ways(
        first=may(resume) & (s.snapshot == 1),
        last=may(resume) & (s.snapshot + 1 == s.written),
        indexed=may(resume) & (s.indexed == entries(s.snapshot, RATIO)),
    )


@witness("P-45", given=(RATIO > 1) | (LOOKBACK > 0))
def resumes_with_just_the_tail(s: Sequence) -> Term:
    """A snapshot may be resumed with no raw row more than is needed."""
    tail = tail_start(entries(s.snapshot, RATIO), RATIO, LOOKBACK)
    return may(resume) & (s.tail == tail) & (tail < s.snapshot)


@witness("P-46", given=SPAN > 1)
def resumes_with_just_the_window(s: Sequence) -> Term:
    """A snapshot may be resumed with no window row more than is needed."""
    window = window_start(s.snapshot, SPAN)
    return may(resume) & (s.window == window) & (window < s.snapshot)


@witness("P-47", given=LOOKBACK == 0)
def resumes_without_a_tail(s: Sequence) -> Term:
    """Where nothing overlaps, a boundary may be resumed though the donor's tail has gone on."""
    return may(resume) & (s.tail > s.snapshot)


@witness("P-48", given=SPAN == 1)
def resumes_without_a_window(s: Sequence) -> Term:
    """Where the window is the query alone, it may be resumed though the donor's has gone on."""
    return may(resume) & (s.window > s.snapshot)


PERMISSIONS = (
    slides_by_one,
    trims_by_one,
    rolls_back_one,
    resumes_at_the_edges,
    resumes_with_just_the_tail,
    resumes_with_just_the_window,
    resumes_without_a_tail,
    resumes_without_a_window,
)
