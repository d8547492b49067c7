"""Cache groups: layers whose cache has one shape, its sizes, and what it needs at a position."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fivestate.spec.language import ModelError
from fivestate.spec.need import (
    blocks,
    chunk_start,
    entries,
    entries_end,
    round_up,
    tail_start,
    window_start,
)
from fivestate.spec.reuse.spans import Span
from fivestate.spec.vocabulary import COMPRESSED, ON_DISK, TAIL, WINDOW, CacheState


class Shape(Enum):
    """Which tokens must be there to resume at a position: what makes its resume points a set."""

    PREFIX = "prefix"
    """Everything that is folded: downward closed."""

    RUN = "run"
    """The window before the position: not downward closed."""

    OPEN_GROUP = "open group"
    """The rows that are not folded yet, and the look-back."""

    POINT = "point"
    """A snapshot of exactly this position: cannot be sliced, cannot be rewound."""

    CHUNK = "chunk"
    """The rows of the position's own chunk; nothing at a chunk's start."""


class Role(Enum):
    """Whether a group votes on where to resume."""

    REQUIRED = "required"
    """Votes; what is missing has to be there."""

    REBUILDABLE = "rebuildable"
    """Votes; what is missing can be made again from other groups."""

    VOLATILE = "volatile"
    """Never votes: a draft model's cache, whose loss costs guesses and no correctness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """Layers whose cache has one shape (缓存组).

    Attributes:
        name: what reasons and tables call it.
        state: which of the five states it is.
        block_size: tokens that one block covers, for entries too.
        ratio: tokens that are folded into one entry; of a tail, those of its compressor.
        lookback: raw rows a fold reads before its own group; more than 0 where groups overlap.
        window: tokens a window query reads, itself included; of a chunk shape, the chunk.
        layers: layers that have this cache.
        bytes_per_entry: bytes of one entry, row or snapshot in one layer.
        page_alignment: bytes to a multiple of which a page is padded.
        recurrent: its one entry is the whole history: a snapshot, of COMPRESSED.
        chunked: its window is the position's own chunk, not the rows just before it.
        role: whether it votes.
        of: the compressed group whose tail or index it is; by default the one of its ratio.
        unverified: the fields whose figures were not read in a primary source.
    """

    name: str
    state: CacheState
    block_size: int
    ratio: int = 1
    lookback: int = 0
    window: int = 0
    layers: int = 1
    bytes_per_entry: int = 1
    page_alignment: int = 1
    recurrent: bool = False
    chunked: bool = False
    role: Role = Role.REQUIRED
    of: str = ""
    unverified: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ModelError: a size is out of its range, or two fields do not fit together.
        """
        _check(self)

    @property
    def shape(self) -> Shape:
        """The shape of what it needs."""
        match self.state:
            case CacheState.COMPRESSED:
                return Shape.POINT if self.recurrent else Shape.PREFIX
            case CacheState.WINDOW:
                return Shape.CHUNK if self.chunked else Shape.RUN
            case CacheState.TAIL:
                return Shape.OPEN_GROUP
            case _:
                return Shape.PREFIX

    def need(self, position: int) -> Span:
        """Return the tokens that must be there to compute the token at ``position``."""
        match self.shape:
            case Shape.PREFIX:
                return Span(0, entries_end(position, self.ratio))
            case Shape.OPEN_GROUP:
                folded = entries(position, self.ratio)
                return Span(tail_start(folded, self.ratio, self.lookback), position)
            case Shape.RUN:
                return Span(window_start(position, self.window), position)
            case Shape.CHUNK:
                return Span(chunk_start(position, self.window), position)
            case Shape.POINT:
                return Span(0, position)

    @property
    def most_rows(self) -> int:
        """The most rows of a run, a tail or a chunk that some position needs."""
        match self.shape:
            case Shape.RUN | Shape.CHUNK:
                return self.window - 1
            case Shape.OPEN_GROUP:
                return self.lookback + self.ratio - 1
            case _:
                return 0

    @property
    def period(self) -> int:
        """Positions after which what a tail or chunk needs starts to grow from its least again."""
        match self.shape:
            case Shape.OPEN_GROUP:
                return self.ratio
            case Shape.CHUNK:
                return self.window
            case _:
                return 1

    @property
    def hit_blocks(self) -> int:
        """Blocks of a run or tail that a hit needs; 0 where it needs the whole prefix."""
        return blocks(self.most_rows, self.block_size)

    @property
    def entries_per_block(self) -> int:
        """Entries, rows or snapshots in one block."""
        if self.shape is Shape.POINT:
            return 1
        return self.block_size // (self.ratio if self.shape is Shape.PREFIX else 1)

    @property
    def page_size_bytes(self) -> int:
        """Bytes of one block in one layer, padded."""
        return round_up(self.entries_per_block * self.bytes_per_entry, self.page_alignment)

    @property
    def padding_bytes(self) -> int:
        """Bytes of a page that hold nothing."""
        return self.page_size_bytes - self.entries_per_block * self.bytes_per_entry

    def bytes_for(self, span: Span) -> int:
        """Return the bytes of these tokens in all layers, without padding."""
        if self.shape is Shape.POINT:
            return self.layers * self.bytes_per_entry if span.tokens else 0
        ratio = self.ratio if self.shape is Shape.PREFIX else 1
        first, last = entries(span.start, ratio), blocks(span.end, ratio)
        return max(last - first, 0) * self.layers * self.bytes_per_entry


_LEAST = {
    **dict.fromkeys(("block_size", "ratio", "layers", "bytes_per_entry", "page_alignment"), 1),
    **dict.fromkeys(("lookback", "window"), 0),
}
"""The smallest value of each size."""


def _check(group: CacheGroup) -> None:
    if group.state is ON_DISK:
        _refuse(group, "state", "it is a tier, not a group: the other four states are allowed")
    for name, least in _LEAST.items():
        value = getattr(group, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            _refuse(group, name, f"a whole number, {least} or more, is allowed")
    if group.shape is Shape.PREFIX and group.block_size % group.ratio:
        _refuse(group, "block_size", f"a multiple of ratio = {group.ratio} is allowed")
    if group.state is WINDOW and not group.window:
        _refuse(group, "window", "1 or more is allowed: the query reads itself")
    only_for = {"recurrent": COMPRESSED, "chunked": WINDOW, "window": WINDOW, "lookback": TAIL}
    for name, state in only_for.items():
        if getattr(group, name) and group.state is not state:
            _refuse(group, name, f"only a {state.name} group has it")
    if group.state is COMPRESSED and group.role is Role.REBUILDABLE:
        _refuse(group, "role", "required or volatile is allowed: entries are made from tokens")


def _refuse(group: CacheGroup, name: str, allowed: str) -> None:
    value = getattr(group, name)
    shown = value.name if isinstance(value, Enum) else repr(value)
    raise ModelError(f"group {group.name!r}: {name} = {shown}: {allowed}")
