"""What a query needs: the arithmetic of positions, the same for numbers and traced values.

Positions count tokens from 0; ``position`` is that of the next token, so tokens
``0 .. position - 1`` have been seen.
"""

from __future__ import annotations

from typing import TypeVar, overload

from fivestate.spec.language import Term, max_

Number = TypeVar("Number", int, Term)


@overload
def entries(position: int, ratio: int) -> int: ...
@overload
def entries(position: Term, ratio: Term) -> Term: ...
def entries(position: Term | int, ratio: Term | int) -> Term | int:
    """How many compressed entries the query sees: one for each complete group of ``ratio``."""
    return position // ratio  # type: ignore[operator]  # int // Term does not occur


@overload
def tail_start(folded: int, ratio: int, lookback: int) -> int: ...
@overload
def tail_start(folded: Term, ratio: Term, lookback: Term) -> Term: ...
def tail_start(folded: Term | int, ratio: Term | int, lookback: Term | int) -> Term | int:
    """First raw row the compressor still reads when ``folded`` entries exist.

    An overlapping compressor reads ``lookback`` rows before the group that it folds next, so
    its tail is not empty on a boundary.
    """
    return max_(folded * ratio - lookback, 0)


@overload
def window_start(position: int, window: int) -> int: ...
@overload
def window_start(position: Term, window: Term) -> Term: ...
def window_start(position: Term | int, window: Term | int) -> Term | int:
    """First row a sliding window of ``window`` tokens, the query included, reads."""
    return max_(position - window + 1, 0)
