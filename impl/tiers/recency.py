"""Recency: which objects of a bounded tier go first; it counts uses and never asks a clock."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Container, Hashable
from typing import Generic, TypeVar

from fivestate.impl.tiers.errors import FullError, HeldError, TooLargeError

Key = TypeVar("Key", bound=Hashable)


class Recency(Generic[Key]):
    """The sizes of a tier's objects, in the order of their last use (最近最少使用).

    Not safe against threads by itself: its tier calls it under a lock of its own.

    Attributes:
        capacity_bytes: what all objects together may take.
        used_bytes: what they take.
    """

    def __init__(self, capacity_bytes: int) -> None:
        if capacity_bytes < 0:
            raise ValueError(f"capacity_bytes = {capacity_bytes}: 0 or more is allowed")
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self._sizes: OrderedDict[Key, int] = OrderedDict()
        self._readers: Counter[Key] = Counter()

    def keys(self) -> list[Key]:
        """Return the keys, the least recently used first."""
        return list(self._sizes)

    def add(self, key: Key, size_bytes: int) -> None:
        """Count an object, in place of one of the same key, as the one used last."""
        self.remove(key)
        self._sizes[key] = size_bytes
        self.used_bytes += size_bytes

    def remove(self, key: Key) -> None:
        """Count an object no longer, if it was."""
        self.used_bytes -= self._sizes.pop(key, 0)

    def touch(self, key: Key) -> None:
        """Note a use."""
        if key in self._sizes:
            self._sizes.move_to_end(key)

    def hold(self, key: Key) -> None:
        """Keep an object from being evicted or dropped while a load reads it."""
        self._readers[key] += 1

    def release(self, key: Key) -> None:
        """End one `hold`."""
        self._readers[key] -= 1
        if not self._readers[key]:
            del self._readers[key]

    def require_unheld(self, key: Key) -> None:
        """Refuse if a load reads the object.

        Raises:
            HeldError: one does.
        """
        if readers := self._readers[key]:
            raise HeldError(key, readers)

    def excess(self) -> list[Key]:
        """Return what has to go because there is more than the capacity."""
        over = self.used_bytes - self.capacity_bytes
        return self._oldest(over, ())[0]

    def victims(self, key: Key, size_bytes: int) -> list[Key]:
        """Return what has to go before ``size_bytes`` of ``key`` fit; nothing is changed.

        Raises:
            TooLargeError: nothing that could go would make room.
            FullError: what could go is being read.
        """
        if size_bytes > self.capacity_bytes:
            raise TooLargeError(key, size_bytes, self.capacity_bytes)
        needed = self.used_bytes - self._sizes.get(key, 0) + size_bytes - self.capacity_bytes
        chosen, freed_bytes = self._oldest(needed, {key, *self._readers})
        if freed_bytes < needed:
            held = sum(self._sizes.get(other, 0) for other in self._readers)
            raise FullError(key, size_bytes, held, self.capacity_bytes)
        return chosen

    def _oldest(self, needed_bytes: int, spared: Container[Key]) -> tuple[list[Key], int]:
        """Return the oldest that have as many bytes together, or all, and how many they have."""
        chosen: list[Key] = []
        freed = 0
        for key, size in self._sizes.items():
            if freed >= needed_bytes:
                break
            if key not in spared:
                chosen.append(key)
                freed += size
        return chosen, freed
