"""Settings: the sizes and the policy of one allocator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch

from fivestate.impl.chain import CopyKey
from fivestate.spec.reuse import Geometry
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, CacheState

Pages = dict[str, torch.Tensor]
"""The bytes of a cell: by group, shape (blocks, page_bytes), dtype uint8."""

MADE_FROM: Mapping[CacheState, tuple[CacheState, ...]] = {
    COMPRESSED: (),
    WINDOW: (COMPRESSED,),
    INDEXER: (COMPRESSED,),
    TAIL: (COMPRESSED, WINDOW),
}
"""What each state is made from: entries first, the window by replay, the tail from both."""


class Tier(Protocol):
    """A place off the device that keeps the bytes of cells."""

    def put(self, key: CopyKey, pages: Pages) -> None:
        """Keep a copy of these bytes; when it returns, they are there to stay."""
        ...

    def get(self, key: CopyKey) -> Pages:
        """Return the bytes, checked.

        Raises:
            KeyError: there is no such copy.
            ValueError: the bytes do not check.
        """
        ...

    def drop(self, key: CopyKey) -> None:
        """Forget the bytes, if they are there."""
        ...


@runtime_checkable
class Divisible(Protocol):
    """A tier that can cut a copy in two, as a node of the tree is split.

    Of a node that has copies in a tier that cannot, no boundary inside is offered.
    """

    def split(
        self,
        key: CopyKey,
        upper: CopyKey,
        lower: CopyKey,
        sizes: Mapping[str, int],
    ) -> None:
        """Make two copies of one: of each group, the first ``sizes`` blocks, and the rest."""
        ...


class Memory:
    """The tier that an allocator has by default: host memory, for as long as the process lives."""

    def __init__(self) -> None:
        self.copies: dict[CopyKey, Pages] = {}

    def put(self, key: CopyKey, pages: Pages) -> None:
        """Keep a copy of these bytes."""
        self.copies[key] = {name: page.cpu().clone() for name, page in pages.items()}

    def get(self, key: CopyKey) -> Pages:
        """Return the bytes.

        Raises:
            KeyError: there is no such copy.
        """
        return self.copies[key]

    def drop(self, key: CopyKey) -> None:
        """Forget the bytes, if they are there."""
        self.copies.pop(key, None)

    def split(
        self,
        key: CopyKey,
        upper: CopyKey,
        lower: CopyKey,
        sizes: Mapping[str, int],
    ) -> None:
        """Make two copies of one: of each group, the first ``sizes`` blocks, and the rest."""
        pages = self.copies.pop(key)
        self.copies[upper] = {name: page[: sizes[name]] for name, page in pages.items()}
        self.copies[lower] = {name: page[sizes[name] :] for name, page in pages.items()}


Convert = Callable[[str, torch.Tensor, int, int], torch.Tensor]
"""``convert(group, pages, old, new)``: pages in another kernel epoch's layout."""


def same_layout(group: str, pages: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """Return the pages as they are: the layout is the same for all kernels."""
    del group, old, new
    return pages


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an allocator is built from.

    Attributes:
        geometry: the cache groups; only those that vote have cells.
        num_blocks: by group, the blocks of its pool; the null block comes on top.
        slots: requests that may be in use at once.
        transfers_at_once: the bandwidth budget: loads, stores and demotions that may be under way
            at once.
        storable: the states of which copies are kept off the device.
        reserve: by group, the blocks that prefetching leaves to requests.
        host_blocks: by group, the blocks that fit into the tier next to the device; a group that
            is not named has no limit there.
        host: the tier next to the device.
        disk: the tier behind it, if there is one; then ``host`` is lost with the process.
        device: where the pools are.
        page_bytes: by group, the bytes of a page where they are not the geometry's.
        convert: how pages get from one kernel epoch's layout into another's.
    """

    geometry: Geometry
    num_blocks: Mapping[str, int]
    slots: int = 256
    transfers_at_once: int = 8
    storable: frozenset[CacheState] = frozenset({COMPRESSED})
    reserve: Mapping[str, int] = field(default_factory=dict[str, int])
    host_blocks: Mapping[str, int] = field(default_factory=dict[str, int])
    host: Tier = field(default_factory=Memory)
    disk: Tier | None = None
    device: torch.device | str = "cpu"
    page_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    convert: Convert = same_layout

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ValueError: a size is out of its range, or a group is missing or unknown.
        """
        names = {group.name for group in self.geometry.groups}
        for name, value in (("slots", self.slots), ("transfers_at_once", self.transfers_at_once)):
            if value < 1:
                raise ValueError(f"settings: {name} = {value}: 1 or more is allowed")
        for table in ("num_blocks", "reserve", "host_blocks", "page_bytes"):
            unknown = set(getattr(self, table)) - names
            if unknown:
                known = ", ".join(sorted(names))
                raise ValueError(f"settings: {table} names {min(unknown)!r}; known: {known}")
        missing = names - set(self.num_blocks)
        if missing:
            raise ValueError(f"settings: num_blocks has no {min(missing)!r}")
