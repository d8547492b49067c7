"""The digests that vouch for what a tier holds: the kernels' own, written in hexadecimal.

They are taken once, where bytes first come to a tier, and go along from tier to tier: each load
compares with what was stored, and never with what the last load happened to bring.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from fivestate.impl.tiers.tensors import Tensors, chunks, memory
from fivestate.kernels.digest import DIGEST_BYTES, digest_bytes

HEX_DIGITS = 2 * DIGEST_BYTES

CHUNK_BYTES = 1 << 20
"""Bytes under one digest: it is taken while they are still in a core's cache."""


def digest(data: bytes | memoryview) -> str:
    """Return the content digest of bytes in host memory, as hexadecimal digits."""
    return digest_bytes(data).hex()


@dataclass(frozen=True, eq=False, slots=True)
class Vouched:
    """An object in CPU memory, and the digests that vouch for it; nobody changes it any more.

    Attributes:
        tensors: by name, contiguous.
        digests: of each tensor's chunks, in their order.
        chunk_bytes: bytes under one digest; a tensor's last may have fewer.
    """

    tensors: Mapping[str, Tensor]
    digests: Mapping[str, tuple[str, ...]]
    chunk_bytes: int = CHUNK_BYTES

    @classmethod
    def of(cls, tensors: Tensors) -> Self:
        """Take the digests of contiguous tensors in CPU memory."""
        return cls(
            tensors,
            {
                name: tuple(digest(chunk) for chunk in chunks(memory(tensor), CHUNK_BYTES))
                for name, tensor in tensors.items()
            },
        )

    def wrong(self) -> str | None:
        """Return the name of a tensor that is not what its digests say, if there is one."""
        for name, tensor in self.tensors.items():
            parts = chunks(memory(tensor), self.chunk_bytes)
            for part, expected in zip(parts, self.digests[name], strict=True):
                if digest(part) != expected:
                    return name
        return None
