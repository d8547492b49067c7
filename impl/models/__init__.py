"""Real models of transformers: their caches taken apart, reused, and compared with a replay."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("transformers") is None:
    raise ImportError("fivestate.impl.models needs transformers 5.24 or later: fivestate[models]")

from fivestate.impl.models.by_block import ByBlock, cache_for
from fivestate.impl.models.layout import Layout, layout_of
from fivestate.impl.models.parts import Part, RecordedCache, Stamp, assemble, disassemble
from fivestate.impl.models.prefix_cache import Committed, Lease, PrefixCache
from fivestate.impl.models.provenance import Chunk, Provenance, scheduled
from fivestate.impl.models.replay import replay
from fivestate.impl.models.store import DictStore, Key, Store

__all__ = [
    "ByBlock",
    "Chunk",
    "Committed",
    "DictStore",
    "Key",
    "Layout",
    "Lease",
    "Part",
    "PrefixCache",
    "Provenance",
    "RecordedCache",
    "Stamp",
    "Store",
    "assemble",
    "cache_for",
    "disassemble",
    "layout_of",
    "replay",
    "scheduled",
]
