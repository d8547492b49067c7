"""Spans of tokens: half-open, sorted, merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """Tokens ``start .. end - 1``."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.start}..{self.end - 1}" if self.end > self.start else "nothing"

    @property
    def tokens(self) -> int:
        """How many tokens the span has."""
        return max(self.end - self.start, 0)

    def cut(self, other: Span) -> Span:
        """Return what both spans have."""
        return Span(max(self.start, other.start), min(self.end, other.end))


def merge(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the same tokens as the fewest spans, in order."""
    merged: list[Span] = []
    for span in sorted(span for span in spans if span.tokens):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def covered(need: Span, spans: Iterable[Span]) -> bool:
    """Say whether merged ``spans`` have every token of ``need``."""
    return not need.tokens or any(s.start <= need.start and need.end <= s.end for s in spans)


def overlap(need: Span, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of ``need`` that merged ``spans`` have."""
    return tuple(part for part in (need.cut(span) for span in spans) if part.tokens)


def missing(need: Span, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of ``need`` that merged ``spans`` do not have."""
    return tuple(_gaps(need, overlap(need, spans)))


def _gaps(need: Span, parts: tuple[Span, ...]) -> Iterator[Span]:
    at = need.start
    for part in parts:
        if part.start > at:
            yield Span(at, part.start)
        at = part.end
    if need.end > at:
        yield Span(at, need.end)
