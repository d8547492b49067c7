"""Parts as bytes: safetensors files whose label says what they are and how they were made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.models.provenance import Chunk
from fivestate.impl.models.runs import Node
from fivestate.spec.reuse import Span, Tier


@dataclass(frozen=True, slots=True)
class Stub:
    """What is known of a part without reading its rows."""

    span: Span
    stamp: Stamp
    tier: Tier


def to_bytes(part: Part, node: Node) -> bytes:
    """Return a part, and the block it belongs to, as the bytes of a safetensors file."""
    label = json.dumps(
        {
            "span": part.span,
            "weights": part.stamp.weights,
            "run": part.stamp.run,
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
        stamp = Stamp(int(said["weights"]), str(said["run"]))
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
