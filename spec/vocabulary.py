"""The words the specification is written in: the five cache states and what happens to them."""

from __future__ import annotations

from enum import Enum


class CacheState(Enum):
    """The five forms in which a prefix leaves something behind; each is ready in its own way."""

    COMPRESSED = "S-1"
    """Compressed KV (压缩历史块): ready when whole groups are folded, from accepted rows."""

    TAIL = "S-2"
    """Uncompressed tail (未压缩尾部): ready when it joins the entries and reaches the fork."""

    WINDOW = "S-3"
    """Sliding window (滑窗窗口): ready when every row the next query reads is still there."""

    INDEXER = "S-4"
    """Indexer state (索引器状态): ready when it has rows for exactly the entries, in step."""

    ON_DISK = "S-5"
    """On-disk prefix (盘上前缀): never ready as it is; loaded back and validated first."""


COMPRESSED, TAIL, WINDOW, INDEXER, ON_DISK = CacheState


class Device(Enum):
    """What the device holds of one prefix for one cache group: the life of a cell."""

    ABSENT = 0
    """No frame."""

    RESERVED = 1
    """A frame claimed at admission; nothing in it yet."""

    WRITING = 2
    """A kernel is writing it."""

    READY = 3
    """Complete."""


class Phase(Enum):
    """What a request is doing; the verdict on its prefix is part of it."""

    IDLE = 0
    MISS = 1
    """Waiting; nothing can be resumed from."""

    PARTIAL = 2
    """Waiting; the prefix can be used after something has been recovered."""

    HIT = 3
    """Waiting; the prefix can be used as it stands."""

    RECOVERING = 4
    """Admitted; the missing cells of its prefix are being made."""

    LEASED = 5
    """Holds the prefix; has not read it yet."""

    RUNNING = 6
    """Reads the prefix."""

    DRAINING = 7
    """Aborted while a step was in flight: kernels may still read."""
