"""Availability: which copies of a prefix exist, where, and what their producer wrote on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from fivestate.spec.language import ModelError
from fivestate.spec.reuse.spans import Span


class Tier(IntEnum):
    """Where bytes are; the device first."""

    DEVICE = 0
    HOST = 1
    DISK = 2


@dataclass(frozen=True, slots=True)
class Abi:
    """What a kernel assumes of the bytes it reads (内核 ABI).

    Attributes:
        kernel: version of the kernel's binary interface.
        layout: axis order, packing and placement rule; equal byte counts say nothing (B36).
        dtype: type of the elements and of their scales.
        weights: epoch of the model's weights: all states and tiers, not compressed KV only (B72).
    """

    kernel: str = "1"
    layout: str = "1"
    dtype: str = "bf16"
    weights: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bytes of a copy are: address, distance of blocks, and the region they may use.

    Attributes:
        address: first byte.
        stride: bytes from one block to the next, padding included (B34).
        payload: bytes of one block that are read or written.
        count: number of blocks.
        region_start: first byte of the region that is registered for the copy.
        region_end: the byte after its last.
    """

    address: int
    stride: int
    payload: int
    count: int
    region_start: int
    region_end: int

    @property
    def last(self) -> int:
        """The byte after the last one that is touched."""
        return self.address + (self.count - 1) * self.stride + self.payload


@dataclass(frozen=True, slots=True)
class Extent:
    """One copy of some tokens of one group.

    Attributes:
        span: the tokens it has; a snapshot has absorbed ``0 .. end - 1`` and serves only ``end``.
        tier: where it is.
        abi: what its producer wrote on it.
        place: where its bytes are, if that is known.
        generation: of an index, the generation of the entries it was made from; of entries,
            their own.
    """

    span: Span
    tier: Tier = Tier.DEVICE
    abi: Abi = Abi()
    place: Place | None = None
    generation: int = 0

    def __post_init__(self) -> None:
        """Check the span.

        Raises:
            ModelError: it is empty or starts before 0.
        """
        if not 0 <= self.span.start < self.span.end:
            start, end = self.span
            message = f"copy: span = [{start}, {end}]"
            raise ModelError(f"{message}: 0 <= start < end is allowed, end not included")


Extents = Mapping[str, tuple[Extent, ...]]
"""The copies of each group, by its name; a group that is not named has none."""


@dataclass(frozen=True)
class Identity:
    """What a prefix is, besides its tokens' hash; all of it is part of the key.

    Attributes:
        parent: digest of the chain of blocks before it.
        adapter: name of the adapter, if one is used.
        salt: what keeps tenants apart.
        modality: digest of images and the like, with their positions.
        digest_bits: width of the digest that was compared.
        tokens: the tokens, where they are at hand to be compared.
    """

    parent: str = ""
    adapter: str | None = None
    salt: str | None = None
    modality: str = ""
    digest_bits: int = 256
    tokens: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Availability:
    """Everything that exists of one prefix.

    Attributes:
        ranks: the copies on each rank of the tensor- or pipeline-parallel group.
        identity: what the stored prefix is.
        known: whether its hash is in the index at all.
    """

    ranks: tuple[Extents, ...]
    identity: Identity = field(default_factory=Identity)
    known: bool = True

    @classmethod
    def on_one_rank(cls, **copies: tuple[Extent, ...]) -> Availability:
        """Return the availability of a model that is not split."""
        return cls((copies,))


def resident(start: int, end: int) -> Extent:
    """Return a copy of tokens ``start .. end - 1`` that is on the device and fit to use."""
    return Extent(Span(start, end))


def stored(start: int, end: int, tier: Tier = Tier.DISK) -> Extent:
    """Return a copy of tokens ``start .. end - 1`` that is only off the device."""
    return Extent(Span(start, end), tier)
