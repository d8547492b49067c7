"""Copies: what the allocator keeps of cells off the device, and the tier that is host memory.

They are the allocator's tiers. Like a pool, a tier never evicts by itself: what leaves it is
decided by the allocator's own actions, or a copy that it counts on would be gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Generic

from torch import Tensor

from fivestate.impl.allocator import Pages, Tier
from fivestate.impl.chain import CopyKey
from fivestate.impl.tiers import HostTier, StoreError
from fivestate.impl.tiers.errors import Corrupt, Missing
from fivestate.impl.tiers.recency import Key as Name

UNBOUNDED_BYTES = 1 << 62
"""Capacity of the host memory below: the allocator decides what leaves it."""

Rows = Mapping[str, tuple[int, int]]
"""By group, the blocks of an object from the first to the one behind the last."""


@dataclass(frozen=True, slots=True)
class View(Generic[Name]):
    """A copy: some blocks of an object. A copy that is cut in two leaves its object whole."""

    name: Name
    rows: Rows


class Copies(ABC, Generic[Name]):
    """A tier of the allocator over objects that have names; any thread may call it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._views: OrderedDict[CopyKey, View[Name]] = OrderedDict()
        self._users: Counter[Name] = Counter()
        self._sizes: dict[Name, int] = {}
        self._used_bytes = 0

    @property
    def used_bytes(self) -> int:
        """What its objects take, those included that are only read to their end."""
        return self._used_bytes

    def put(self, key: CopyKey, pages: Pages) -> None:
        """Keep a copy of these bytes; when it returns, they are there to stay.

        Raises:
            StoreError: they cannot be kept.
        """
        self._put(self._name(key, next(self._numbers)), key, pages)

    def _put(self, name: Name, key: CopyKey, pages: Pages) -> None:
        self._write(name, pages)
        rows = {group: (0, len(page)) for group, page in pages.items()}
        self._add(key, View(name, rows), sum(page.nbytes for page in pages.values()))

    def _add(self, key: CopyKey, view: View[Name], size_bytes: int) -> None:
        with self._lock:
            before = self._views.get(key)
            self._views[key] = view
            self._users[view.name] += 1
            self._used_bytes += size_bytes - self._sizes.get(view.name, 0)
            self._sizes[view.name] = size_bytes
        if before is not None:  # it was there by another way; a key has one content
            self._release(before.name)

    def get(self, key: CopyKey) -> Pages:
        """Return the bytes, checked.

        Raises:
            KeyError: there is no such copy.
            ValueError: they do not check, or cannot be read.
        """
        with self.reading(key) as pages:
            return {group: page.clone() for group, page in pages.items()}

    @contextmanager
    def reading(self, key: CopyKey) -> Iterator[Pages]:
        """Give the bytes, checked; they stay, and must not be changed, while it lasts.

        Raises:
            KeyError: there is no such copy.
            ValueError: they do not check, or cannot be read.
        """
        with self._lock:
            view = self._views.get(key)
            if view is None:
                raise Missing(key)
            self._views.move_to_end(key)
            self._users[view.name] += 1
        try:
            with self._read(view.name) as pages:
                missing = view.rows.keys() - pages.keys()
                if missing:
                    raise Corrupt(key, f"it has no {min(missing)!r}")
                rows = view.rows.items()
                yield {group: pages[group][first:last] for group, (first, last) in rows}
        finally:
            self._release(view.name)

    def drop(self, key: CopyKey) -> None:
        """Forget the bytes, if they are there; who reads them reads on."""
        with self._lock:
            view = self._views.pop(key, None)
        if view is not None:
            self._release(view.name)

    def split(self, key: CopyKey, upper: CopyKey, lower: CopyKey, sizes: Mapping[str, int]) -> None:
        """Make two copies of one: the first ``sizes`` blocks of each group, and the rest."""
        with self._lock:
            view = self._views.pop(key, None)
            if view is None:
                return  # it is gone, and a load will find that out
            heads: dict[str, tuple[int, int]] = {}
            tails: dict[str, tuple[int, int]] = {}
            for group, (first, last) in view.rows.items():
                middle = first + sizes.get(group, 0)
                heads[group], tails[group] = (first, middle), (middle, last)
            self._views[upper] = View(view.name, heads)
            self._views[lower] = View(view.name, tails)
            self._users[view.name] += 1

    def __contains__(self, key: CopyKey) -> bool:
        with self._lock:
            return key in self._views

    def keys(self) -> list[CopyKey]:
        """Return the keys, the least recently used first."""
        with self._lock:
            return list(self._views)

    def _release(self, name: Name) -> None:
        with self._lock:
            self._users[name] -= 1
            if self._users[name]:
                return
            del self._users[name]
            self._used_bytes -= self._sizes.pop(name, 0)
        self._remove(name)

    @abstractmethod
    def _name(self, key: CopyKey, number: int) -> Name:
        """Return what an object is called; the number of the put makes it new."""

    @abstractmethod
    def _write(self, name: Name, pages: Pages) -> None:
        """Write an object."""

    @abstractmethod
    def _read(self, name: Name) -> AbstractContextManager[Mapping[str, Tensor]]:
        """Read an object, and check it."""

    @abstractmethod
    def _remove(self, name: Name) -> None:
        """Remove an object that nobody reads; this never fails."""


def reading(tier: Tier, key: CopyKey) -> AbstractContextManager[Pages]:
    """Give what a tier has, without a copy of it where that can be.

    Raises:
        KeyError: there is no such copy.
        ValueError: it does not check, or cannot be read.
    """
    return tier.reading(key) if isinstance(tier, Copies) else nullcontext(tier.get(key))


class HostCopies(Copies[int]):
    """Copies in host memory: the tier next to the device.

    How many there may be the allocator knows (``Settings.host_blocks``).

    Args:
        pinned: as of ``HostTier``.
    """

    def __init__(self, *, pinned: bool | None = None) -> None:
        super().__init__()
        self.memory = HostTier[int](UNBOUNDED_BYTES, pinned=pinned)

    def _name(self, key: CopyKey, number: int) -> int:
        del key
        return number

    def _write(self, name: int, pages: Pages) -> None:
        self.memory.put(name, pages)

    def _read(self, name: int) -> AbstractContextManager[Mapping[str, Tensor]]:
        return self.memory.reading(name)

    def _remove(self, name: int) -> None:
        with suppress(StoreError):
            self.memory.drop(name)
