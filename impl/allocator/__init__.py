"""The reference allocator: real memory, and one method for each action of the machine."""

from __future__ import annotations

from fivestate.impl.allocator.base import Doubt, Implements
from fivestate.impl.allocator.changes import Changes
from fivestate.impl.allocator.checks import Checks
from fivestate.impl.allocator.forks import Forks
from fivestate.impl.allocator.graphs import Captured
from fivestate.impl.allocator.prefetch import Prefetch
from fivestate.impl.allocator.requests import Requests
from fivestate.impl.allocator.room import Room
from fivestate.impl.allocator.settings import (
    MADE_FROM,
    Divisible,
    Memory,
    Pages,
    Settings,
    Tier,
)

__all__ = [
    "MADE_FROM",
    "Allocator",
    "Captured",
    "Divisible",
    "Doubt",
    "Implements",
    "Memory",
    "Pages",
    "Settings",
    "Tier",
]


class Allocator(Requests, Room, Prefetch, Forks, Changes, Checks):
    """An allocator of a cache with several groups, over torch memory.

    Its methods are the machine's actions, with their names and parameters: each is atomic, and is
    refused, with nothing changed, by the first of its guards that is false. A pool is filled by
    whoever asks ``relieve``; bytes are moved by whoever owns the transfers and kernels.

    >>> allocator = Allocator(Settings(geometry=geometry, num_blocks={"c4": 1024, "swa": 256}))
    """
