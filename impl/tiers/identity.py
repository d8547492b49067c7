"""Identity: what must agree before bytes that were stored mean the same as when they were."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Self

from fivestate.spec.reuse import Geometry

_NOT_IN_BYTES = {"role", "unverified"}


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """What a stored cell depends on, besides its key.

    Attributes:
        geometry: fingerprint of the cache groups; a folder is of one geometry for good.
        layout: the kernels' layout (内核 ABI); an object of another one is OLD, and repackable.
        weights: epoch of the model's weights; an object of another one is of no use.
    """

    geometry: str
    layout: str
    weights: int

    @classmethod
    def of(cls, geometry: Geometry, *, layout: str = "1", weights: int = 1) -> Self:
        """Return the identity of a model's cells."""
        return cls(fingerprint(geometry), layout, weights)


def fingerprint(geometry: Geometry) -> str:
    """Return 64 hexadecimal digits that name what of a geometry decides the bytes of a cell."""
    groups = [
        {name: value for name, value in asdict(group).items() if name not in _NOT_IN_BYTES}
        for group in geometry.groups
    ]
    return hashlib.sha256(json.dumps(groups, sort_keys=True, default=str).encode()).hexdigest()
