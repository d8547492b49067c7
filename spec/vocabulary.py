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

    __hash__ = object.__hash__  # by its name, as an Enum does it, takes ten times longer


COMPRESSED, TAIL, WINDOW, INDEXER, ON_DISK = CacheState


class Device(Enum):
    """What the device holds of one prefix for one cache group: the life of a cell."""

    ABSENT = 0
    """No frame."""

    RESERVED = 1
    """A frame claimed at admission; nothing in it yet."""

    WRITING = 2
    """A kernel is writing it."""

    LOADING = 3
    """A transfer is bringing it back: read, verified, moved, its metadata rebuilt."""

    READY = 4
    """Complete; whether it fits is another matter."""


class Fit(Enum):
    """What keeps a complete cell from being read as it is; the later value takes precedence."""

    OK = 0
    """Nothing."""

    MISALIGNED = 1
    """Its bytes lie where the kernel does not look for them (H-4)."""

    OLD_LAYOUT = 2
    """Older kernels wrote it (H-2)."""

    OUT_OF_STEP = 3
    """An index whose entries have been replaced; a repack must not make it look right."""


class Copy(Enum):
    """What a tier off the device holds of a cell."""

    NONE = 0
    """Nothing."""

    STORING = 1
    """A transfer is bringing it there; whether it arrives is open."""

    STORED = 2
    """A copy that was complete when it was stored."""

    OLD = 3
    """A copy that older kernels wrote."""


class Bytes(Enum):
    """A ghost: what a kernel that read these bytes now would see."""

    WRONG = 0
    """Not the prefix."""

    FIXABLE = 1
    """Not what the kernel expects, and can become so: half made, misplaced, in an old layout."""

    RIGHT = 2
    """The prefix."""


class Phase(Enum):
    """What a request is doing; the verdict on its prefix is part of it."""

    IDLE = 0
    """Nothing."""

    MISS = 1
    """Waits; nothing can be resumed from."""

    PARTIAL = 2
    """Waits; the prefix can be used after something has been recovered."""

    HIT = 3
    """Waits; the prefix can be used as it stands."""

    RECOVERING = 4
    """Admitted; the missing cells of its prefix are being made or loaded."""

    LEASED = 5
    """Holds the prefix; has not read it yet."""

    RUNNING = 6
    """Reads the prefix, kernel by kernel."""

    REPLAYING = 7
    """Reads the prefix through a captured graph."""

    DRAINING = 8
    """Aborted while a step was in flight: kernels may still read."""
