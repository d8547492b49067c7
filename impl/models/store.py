"""Where parts of prefixes are kept: what a store must offer, and one in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from fivestate.impl.models.blobs import Stub, from_bytes, read_label, to_bytes
from fivestate.impl.models.parts import Part
from fivestate.impl.models.runs import Node
from fivestate.spec.reuse import Tier


class Key(NamedTuple):
    """A part's name: the digest of all tokens up to a block boundary, and the group."""

    digest: bytes
    group: str


_NONE: OrderedDict[bytes, Part] = OrderedDict()
"""The parts of a group that has none; never written to."""


class Store(Protocol):
    """What a prefix cache asks of a store. A part may be gone at any time but between two calls."""

    def node(self, digest: bytes) -> Node | None:
        """Return a block of a prefix, if it is known."""
        ...

    def keep(self, digest: bytes, node: Node) -> None:
        """Make a block known; what was made in another run goes, and all that goes on from it."""
        ...

    def look(self, key: Key) -> Stub | None:
        """Say where a part is, if anywhere."""
        ...

    def put(self, key: Key, part: Part) -> None:
        """Keep a part of a known block; others of its group may have to go."""
        ...

    def get(self, key: Key) -> Part | None:
        """Return a part, from wherever it is; nothing if it is gone, or was damaged."""
        ...


class DictStore:
    """A store in memory: parts on the device, and bytes of parts off it.

    Each group has its own order of eviction, least recently used first, so windows can go while
    entries stay. What is evicted is gone unless its bytes were offloaded.

    Attributes:
        capacity: parts of each group that the device has room for; a group not named has no limit.
        bytes: the bytes off the device: what a crash leaves, and a new store starts from.
    """

    def __init__(
        self, capacity: Mapping[str, int] | None = None, kept: Mapping[Key, bytes] | None = None
    ) -> None:
        self.capacity = dict(capacity or {})
        self.bytes: dict[Key, bytes] = dict(kept or {})
        self._nodes: dict[bytes, Node] = {}
        self._device: dict[str, OrderedDict[bytes, Part]] = {}
        for (digest, _), blob in self.bytes.items():
            label = read_label(blob)
            if label is not None:
                self._nodes.setdefault(digest, label[1])

    def __iter__(self) -> Iterator[Key]:
        """Yield the parts on the device."""
        for group, parts in self._device.items():
            yield from (Key(digest, group) for digest in parts)

    def node(self, digest: bytes) -> Node | None:
        """Return a block of a prefix, if it is known."""
        return self._nodes.get(digest)

    def keep(self, digest: bytes, node: Node) -> None:
        """Make a block known; what was made in another run goes, and all that goes on from it."""
        known = self._nodes.get(digest)
        if known is not None and known != node:
            self._forget(digest)
        self._nodes[digest] = node

    def look(self, key: Key) -> Stub | None:
        """Say where a part is, if anywhere."""
        part = self._device.get(key.group, _NONE).get(key.digest)
        if part is not None:
            return Stub(part.span, part.stamp, Tier.DEVICE)
        label = read_label(self.bytes.get(key, b""))
        return None if label is None else label[0]

    def put(self, key: Key, part: Part) -> None:
        """Keep a part of a known block on the device; the least recently used of its group goes.

        Raises:
            ValueError: its block is not known.
        """
        if key.digest not in self._nodes:
            raise ValueError(f"group {key.group!r}: block {key.digest.hex()[:8]} is not known")
        parts = self._device.setdefault(key.group, OrderedDict())
        parts[key.digest] = part
        parts.move_to_end(key.digest)
        while len(parts) > self.capacity.get(key.group, len(parts)):
            parts.popitem(last=False)

    def get(self, key: Key) -> Part | None:
        """Return a part, from wherever it is; a copy that is damaged is dropped."""
        parts = self._device.get(key.group, _NONE)
        if key.digest in parts:
            parts.move_to_end(key.digest)
            return parts[key.digest]
        part = from_bytes(self.bytes.get(key, b""))
        if part is None:
            self.bytes.pop(key, None)
        else:
            self.put(key, part)
        return part

    def offload(self, key: Key) -> None:
        """Keep the bytes of a part off the device too."""
        part = self._device.get(key.group, _NONE).get(key.digest)
        if part is not None:
            self.bytes[key] = to_bytes(part, self._nodes[key.digest])

    def evict(self, key: Key) -> None:
        """Let go of a part on the device."""
        self._device.get(key.group, _NONE).pop(key.digest, None)

    def _forget(self, digest: bytes) -> None:
        for child in [d for d, node in self._nodes.items() if node.parent == digest]:
            self._forget(child)
        del self._nodes[digest]
        for parts in self._device.values():
            parts.pop(digest, None)
        for key in [key for key in self.bytes if key.digest == digest]:
            del self.bytes[key]
