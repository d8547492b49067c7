"""A tier as the allocator calls it: by what names a copy of a cell, not by a string."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

from fivestate.impl.tiers.host import HostTier
from fivestate.impl.tiers.store import Store
from fivestate.impl.tiers.tensors import Tensors
from fivestate.spec.vocabulary import CacheState

CellKey: TypeAlias = tuple[bytes, CacheState, int]
"""The digest of a prefix's hash chain, the cell's state, and which copy of the cell it is."""


def cell_key(digest: bytes, state: CacheState, serial: int = 0) -> str:
    """Return the key of a copy of a cell.

    Layout and weights are no part of it: a `StoreIdentity` has them, once for a folder.
    Source: domain §9(9).
    """
    return f"{digest.hex()}/{state.name}/{serial}"


def cell_of(key: str) -> CellKey:
    """Return what a key names.

    Raises:
        ValueError: `cell_key` never gave it.
    """
    digest, state, serial = key.split("/")
    if state not in CacheState.__members__:
        raise ValueError(f"key {key!r}: there is no cache state {state!r}")
    return bytes.fromhex(digest), CacheState[state], int(serial)


class Cells:
    """A tier whose objects are named by `CellKey`."""

    def __init__(self, tier: Store | HostTier[str]) -> None:
        self.tier = tier

    def put(self, key: CellKey, pages: Tensors) -> None:
        """Keep a copy of a cell's pages; what the tier's ``put`` says holds."""
        self.tier.put(cell_key(*key), pages)

    def get(self, key: CellKey, *, into: Tensors | None = None) -> dict[str, Tensor]:
        """Return a cell's pages, checked; what the tier's ``get`` says holds."""
        return self.tier.get(cell_key(*key), into=into)

    def drop(self, key: CellKey) -> None:
        """Drop a cell's pages, if they are there; what the tier's ``drop`` says holds."""
        self.tier.drop(cell_key(*key))

    def keys(self) -> list[CellKey]:
        """Return what there is, the least recently used first."""
        return list(map(cell_of, self.tier.keys()))
