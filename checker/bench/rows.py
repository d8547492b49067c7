"""Rows: one figure, beside the same figure of a peer that was measured in the same run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Self

HEADINGS = ("what", "figure", "peer", "its figure", "ratio")
_NUMBER = 13
_WIDTHS = (50, 28, 38, _NUMBER, 8)


@dataclass(frozen=True)
class Row:
    """One figure and the peer's.

    Attributes:
        what: what was measured, and in which way.
        figure: ours.
        unit: of both figures.
        peer: what ours is measured against.
        peer_figure: the peer's.
        ratio: how many times better ours is; below 1 the peer is better.
    """

    what: str
    figure: float
    unit: str
    peer: str
    peer_figure: float
    ratio: float

    @classmethod
    def more(cls, what: str, figure: float, unit: str, peer: str, peer_figure: float) -> Self:
        """Return a row of figures of which the larger is better, such as states a second."""
        return cls(what, figure, unit, peer, peer_figure, figure / peer_figure)

    @classmethod
    def less(cls, what: str, figure: float, unit: str, peer: str, peer_figure: float) -> Self:
        """Return a row of figures of which the smaller is better, such as bytes."""
        return cls(what, figure, unit, peer, peer_figure, peer_figure / figure)


def to_json(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Return rows as JSON, with what has to be known to read them."""
    table = {"rows": [asdict(row) for row in rows], "notes": list(notes)}
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def heading() -> str:
    """Return the line above a table of ``line``s."""
    what, figure, *rest = HEADINGS
    return _spread([what, f"{figure:>{_NUMBER}}", *rest])


def line(row: Row) -> str:
    """Return a row as a person reads it."""
    figure = f"{short(row.figure):>{_NUMBER}} {row.unit}"
    return _spread([row.what, figure, row.peer, short(row.peer_figure), f"{short(row.ratio)}x"])


def short(figure: float) -> str:
    """Return a figure to three digits or, where it has more before the point, whole."""
    if abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:#.3g}"


def _spread(cells: Iterable[str]) -> str:
    what, figure, peer, *numbers = cells
    left = [f"{cell:<{width}}" for cell, width in zip((what, figure, peer), _WIDTHS, strict=False)]
    right = [f"{cell:>{width}}" for cell, width in zip(numbers, _WIDTHS[3:], strict=True)]
    return " ".join([*left, *right]).rstrip()
