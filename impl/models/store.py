"""Stores: where parts of prefixes are kept, what a store must offer, and one in memory.

Off the device a part is a safetensors file whose label says what it is and how it was made.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from safetensors import SafetensorError
from safetensors.torch import load, save

from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.models.provenance import Chunk, Node
from fivestate.spec.reuse import Span, Tier


class Key(NamedTuple):
    """A part's name: the digest of all tokens up to a block boundary, and the group."""

    digest: bytes
    group: str


@dataclass(frozen=True, slots=True)
class Stub:
    """What is known of a part without reading its rows."""

    span: Span
    stamp: Stamp
    tier: Tier


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
        """Let go of a block, and of all that goes on from it."""
        children: dict[bytes, list[bytes]] = {}
        for child, node in self._nodes.items():
            children.setdefault(node.parent, []).append(child)
        gone = [digest]
        for each in gone:  # it grows: a long conversation is a deep tree
            gone += children.get(each, ())
        for each in gone:
            del self._nodes[each]
            for parts in self._device.values():
                parts.pop(each, None)
        for key in [key for key in self.bytes if key.digest not in self._nodes]:
            del self.bytes[key]


def to_bytes(part: Part, node: Node) -> bytes:
    """Return a part, and the block it belongs to, as the bytes of a safetensors file."""
    label = json.dumps(
        {
            "span": part.span,
            "weights": part.stamp.weights,
            "run": part.stamp.run,
            "kernels": part.stamp.kernels,
            "parent": node.parent.hex(),
            "end": node.end,
            "chunks": node.chunks,
            "block_run": node.run,
        }
    )
    return save({"rows": part.rows}, metadata={"fivestate": label, "digest": _digest(part, label)})


def read_label(blob: bytes, tier: Tier = Tier.HOST) -> tuple[Stub, Node] | None:
    """Return what bytes say of their part and its block; nothing where they say nothing."""
    try:
        said: dict[str, Any] = json.loads(_metadata(blob)["fivestate"])
        stamp = Stamp(int(said["weights"]), str(said["run"]), str(said["kernels"]))
        chunks = tuple(Chunk(start, tuple(tokens)) for start, tokens in said["chunks"])
        node = Node(bytes.fromhex(said["parent"]), said["end"], chunks, said["block_run"])
        return Stub(Span(*said["span"]), stamp, tier), node
    except (ValueError, KeyError, TypeError):
        return None


def from_bytes(blob: bytes) -> Part | None:
    """Return the part, or nothing where a byte of it has changed."""
    label = read_label(blob)
    if label is None:
        return None
    try:
        part = Part(label[0].span, load(blob)["rows"], label[0].stamp)
    except (SafetensorError, KeyError):
        return None
    said = _metadata(blob)
    return part if _digest(part, said["fivestate"]) == said.get("digest") else None


def _metadata(blob: bytes) -> dict[str, Any]:
    """Read a safetensors header: its length in 8 bytes, then JSON."""
    length = int.from_bytes(blob[:8], "little")
    metadata = json.loads(blob[8 : 8 + length])["__metadata__"]
    if not isinstance(metadata, dict):
        raise TypeError("the label of a part is no table")
    return metadata


def _digest(part: Part, label: str) -> str:
    """256 bits over label and rows: a row that has changed its place is found too."""
    digest = blake2b(label.encode(), digest_size=32)
    digest.update(save({"rows": part.rows}))
    return digest.hexdigest()
