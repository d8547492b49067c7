"""How a state becomes one whole number: every cell in as few bits as its bounds need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from fivestate.spec.language.errors import ModelError
from fivestate.spec.language.model import Codes, Model

WORD_BITS = 64
MAX_BITS = 128
"""Two machine words: what a processor still compares and hashes in a few instructions."""

_ROWS_AT_ONCE = 1 << 14

Words = NDArray[np.uint64]


class Layout:
    """Where each cell of a model's state lies in the packed number.

    Attributes:
        lows, highs: for each cell its declared bounds.
        shifts: for each cell the position of its lowest bit.
        widths: for each cell its number of bits; a cell with one value has none.
        words: how many machine words a state takes, 1 or 2.
        word: LLVM's type of the packed number.
    """

    def __init__(self, model: Model) -> None:
        """Lay the cells out in their own order.

        Raises:
            ModelError: they need more than ``MAX_BITS`` bits.
        """
        self.lows = [cell.low for cell in model.cells]
        self.highs = [cell.high for cell in model.cells]
        self.widths = [(cell.high - cell.low).bit_length() for cell in model.cells]
        self.shifts = [sum(self.widths[:at]) for at in range(len(self.widths))]
        self.bits = sum(self.widths)
        if self.bits > MAX_BITS:
            raise ModelError(_too_wide(model, self.widths, self.bits))
        self.words = 1 if self.bits <= WORD_BITS else 2
        self.word = f"i{WORD_BITS * self.words}"

    def pack(self, codes: Codes) -> int:
        """Return the packed state."""
        parts = zip(codes, self.lows, self.shifts, strict=True)
        return sum((code - low) << shift for code, low, shift in parts)

    def rows(self, codes: Codes) -> Words:
        """Return the packed state as the row of machine words that stands in memory."""
        packed, mask = self.pack(codes), (1 << WORD_BITS) - 1
        return np.array([packed >> WORD_BITS * at & mask for at in range(self.words)], np.uint64)

    def column(self, rows: Words, position: int) -> NDArray[np.int64]:
        """Return the values of one cell in many packed states."""
        width, low = self.widths[position], self.lows[position]
        word, shift = divmod(self.shifts[position], WORD_BITS)
        if not width:
            return np.full(len(rows), low, np.int64)
        bits = rows[:, word] >> np.uint64(shift)
        if shift + width > WORD_BITS:  # the cell lies across both words
            bits = bits | rows[:, word + 1] << np.uint64(WORD_BITS - shift)
        return (bits & np.uint64((1 << width) - 1)).astype(np.int64) + low


class PackedStates(Sequence[Codes]):
    """Packed states that are decoded only where somebody looks.

    Args:
        layout: how they are packed.
        blocks: their rows; every block but the last has as many as the first.
    """

    def __init__(self, layout: Layout, blocks: list[Words]) -> None:
        self.layout, self.blocks = layout, blocks

    def __len__(self) -> int:
        return len(self.blocks[0]) * (len(self.blocks) - 1) + len(self.blocks[-1])

    @overload
    def __getitem__(self, index: int) -> Codes: ...
    @overload
    def __getitem__(self, index: slice) -> list[Codes]: ...
    def __getitem__(self, index: int | slice) -> Codes | list[Codes]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        block, row = divmod(places, len(self.blocks[0]))
        words = [int(word) for word in self.blocks[block][row]]
        packed = sum(word << WORD_BITS * at for at, word in enumerate(words))
        parts = zip(self._masks, self.layout.shifts, self.layout.lows, strict=True)
        return tuple((packed >> shift & mask) + low for mask, shift, low in parts)

    def __iter__(self) -> Iterator[Codes]:
        for block in self.blocks:
            for first in range(0, len(block), _ROWS_AT_ONCE):
                rows = block[first : first + _ROWS_AT_ONCE]
                columns = [self.layout.column(rows, at).tolist() for at in range(len(self._masks))]
                yield from zip(*columns, strict=True)

    def column(self, position: int) -> NDArray[np.int64]:
        """Return the values of one cell in all states."""
        return np.concatenate([self.layout.column(block, position) for block in self.blocks])

    @cached_property
    def _masks(self) -> list[int]:
        return [(1 << width) - 1 for width in self.layout.widths]


def _too_wide(model: Model, widths: list[int], bits: int) -> str:
    variables = dict.fromkeys(cell.variable for cell in model.cells)
    taken = {
        name: sum(w for cell, w in zip(model.cells, widths, strict=True) if cell.variable == name)
        for name in variables
    }
    widest = sorted(taken.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {width}" for name, width in widest)
    return (
        f"model {model.name}: a state takes {bits} bits, and the native engine packs at most "
        f"{MAX_BITS}: {shown}"
    )
