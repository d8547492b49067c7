"""Real models of transformers: their caches taken apart, reused, and compared with a replay.

Where to begin, from the user's side down:

- ``prefix_cache``: ``PrefixCache``, what stands beside ``generate``; ``folder``: what outlives the
  process
- two backends keep its rows, as ``backend`` says: ``by_digest``, each part by itself in a
  ``store``; ``by_block``, in the pools of the reference allocator, with ``pages`` and
  ``load_back``. Below the device that one has ``below`` (what moves), ``labels`` (a copy names its
  run) and ``runs_table`` (how rows were made, on disk)
- a cache apart and together again: ``parts``, over ``layers`` and ``rows``, which keep what
  transformers lets go; ``layout`` says where in a model's cache the rows of each group are. A new
  kind of model begins there
- what "the same bits" means: ``provenance``, ``replay``, and ``weights``
- ``tiny`` and ``bench`` are for tests and figures
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("transformers") is None:
    raise ImportError("fivestate.impl.models needs transformers 5.24 or later: fivestate[models]")

from fivestate.impl.models.by_block import ByBlock, cache_for
from fivestate.impl.models.folder import Folder
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
    "Folder",
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
