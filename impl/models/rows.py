"""Rows by absolute position: what a sliding cache has let go, kept while it was written."""

from __future__ import annotations

import torch
from torch import Tensor

from fivestate.spec.reuse import Span


class RowLog:
    """Rows of consecutive tokens, from a first one on, in the order they were written.

    Attributes:
        start: position of the first row that is kept.
        end: position behind the last.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = self.end = start
        self._pieces: list[Tensor] = []

    @property
    def kept(self) -> Span:
        """The positions that can be read."""
        return Span(self.start, self.end)

    def append(self, rows: Tensor) -> None:
        """Keep the rows of the next tokens.

        They are copied: a row must not change when the tensor it was written from does.

        Args:
            rows: shape (tokens, width).
        """
        self._pieces.append(rows.detach().clone())
        self.end += rows.shape[0]

    def read(self, span: Span) -> Tensor:
        """Return the rows of ``span``, shape (tokens, width); an own copy.

        Raises:
            ValueError: a row is not kept.
        """
        if not self.start <= span.start <= span.end <= self.end or not self._pieces:
            raise ValueError(f"rows {span}: rows {self.kept} are kept")
        if len(self._pieces) > 1:
            self._pieces = [torch.cat(self._pieces)]
        return self._pieces[0][span.start - self.start : span.end - self.start].clone()

    def forget(self, before: int) -> None:
        """Let go of the rows before a position."""
        first = min(max(before, self.start), self.end)
        if first > self.start:
            self._pieces = [self.read(Span(first, self.end))]
            self.start = first
