"""Moves between tiers: what a transfer does, and how it says whether what came is of use."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from torch import Tensor

from fivestate.impl.tiers.errors import StoreError
from fivestate.impl.tiers.host import HostTier
from fivestate.impl.tiers.store import Store
from fivestate.impl.tiers.tensors import Tensors


class Outcome(Enum):
    """How a transfer ended; the three ends of a load in the machine (A-42, A-43, A-44)."""

    GOOD = "good"
    """What came checks."""

    MISALIGNED = "misaligned"
    """What came checks, and lies where no kernel looks for it."""

    BAD = "bad"
    """It did not come, or does not check: no copy of it may be loaded again."""


class Source(Protocol):
    """A tier from which objects named by strings are read."""

    def get(self, key: str, *, into: Tensors | None = None) -> dict[str, Tensor]:
        """Return an object's tensors, checked."""
        ...


class Target(Protocol):
    """A tier to which objects named by strings are written."""

    def put(self, key: str, tensors: Tensors) -> None:
        """Keep an object."""
        ...


def load_cell(source: Source, key: str, into: Tensors, alignment_bytes: int = 1) -> Outcome:
    """Read an object into frames.

    Args:
        source: the tier that has it.
        key: its key.
        into: the frames, by name.
        alignment_bytes: what the kernels want the frames' addresses to be a multiple of.
    """
    try:
        source.get(key, into=into)
    except StoreError:
        return Outcome.BAD
    misplaced = any(frame.data_ptr() % alignment_bytes for frame in into.values())
    return Outcome.MISALIGNED if misplaced else Outcome.GOOD


def store_cell(target: Target, key: str, frames: Tensors) -> Outcome:
    """Write an object from frames; on GOOD it is there to stay."""
    try:
        target.put(key, frames)
    except StoreError:
        return Outcome.BAD
    return Outcome.GOOD


def demote(host: HostTier[str], disk: Store, key: str) -> None:
    """Write a host copy to disk; the host keeps it, until it is dropped there (降级).

    Its digests go along: what changes on the way is found out by the next load.

    Raises:
        Missing: the host has none.
        Corrupt: the host's does not check, and has been dropped.
        StoreError: the disk does not take it.
        ValueError: it has a name or a dtype that the disk does not take.
    """
    with host.vouched(key) as found:
        disk.put(key, found)


def fetch(disk: Store, host: HostTier[str], key: str) -> None:
    """Read a disk copy into host memory, and check it; the disk keeps it (升级).

    Its digests go along, as in `demote`.

    Raises:
        Missing: the disk has none.
        Corrupt: the disk's does not check, and has been dropped.
        StoreError: it cannot be read, or the host has no room.
    """
    host.put(key, disk.read(key))
