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

from fivestate.impl.allocator import Pages, Tier
from fivestate.impl.chain import CopyKey
from fivestate.impl.tiers import HostTier, StoreError, Vouched
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

    def of(self, found: Vouched) -> Vouched | Pages:
        """Return what the copy has of its object: all of it, or the blocks of each group.

        Raises:
            Corrupt: the object has no such group.
        """
        if self.rows == {group: (0, len(page)) for group, page in found.tensors.items()}:
            return found
        missing = self.rows.keys() - found.tensors.keys()
        if missing:
            raise Corrupt(self.name, f"it has no {min(missing)!r}")
        cut = self.rows.items()
        return {group: found.tensors[group][first:last] for group, (first, last) in cut}


class Copies(ABC, Generic[Name]):
    """A tier of the allocator over objects that have names; any thread may call it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._views: OrderedDict[CopyKey, View[Name]] = OrderedDict()
        self._users: Counter[Name] = Counter()
        self._sizes: dict[Name, int] = {}
        self._used_bytes = 0
        self._coming: dict[CopyKey, int] = {}  # bytes that have room, and are not there yet

    @property
    def used_bytes(self) -> int:
        """What its objects take, those included that are only read to their end."""
        return self._used_bytes

    def put(self, key: CopyKey, pages: Pages | Vouched) -> None:
        """Keep a copy of these bytes; when it returns, they are there to stay.

        What is vouched for keeps its digests, and nobody changes it any more.

        Raises:
            StoreError: they cannot be kept.
        """
        self._put(self._name(key, next(self._numbers)), key, pages)

    def _put(self, name: Name, key: CopyKey, pages: Pages | Vouched) -> None:
        self._write(name, pages)
        given = pages_of(pages)
        rows = {group: (0, len(page)) for group, page in given.items()}
        self._add(key, View(name, rows), sum(page.nbytes for page in given.values()))

    def _add(self, key: CopyKey, view: View[Name], size_bytes: int) -> None:
        with self._lock:
            self._coming.pop(key, None)
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
        with self.vouched(key) as found:
            yield pages_of(found)

    @contextmanager
    def vouched(self, key: CopyKey) -> Iterator[Vouched | Pages]:
        """Give the bytes as `reading` does, with their digests if they are a whole object."""
        with self._lock:
            view = self._views.get(key)
            if view is None:
                raise Missing(key)
            self._views.move_to_end(key)
            self._users[view.name] += 1
        try:
            with self._read(view.name) as found:
                yield view.of(found)
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
    def _write(self, name: Name, pages: Pages | Vouched) -> None:
        """Write an object."""

    @abstractmethod
    def _read(self, name: Name) -> AbstractContextManager[Vouched]:
        """Read an object, and check it."""

    @abstractmethod
    def _remove(self, name: Name) -> None:
        """Remove an object that nobody reads; this never fails."""


def pages_of(found: Pages | Vouched) -> Pages:
    """Return the pages of what is read, vouched for or not."""
    return dict(found.tensors) if isinstance(found, Vouched) else found


def vouched(tier: Tier, key: CopyKey) -> AbstractContextManager[Vouched | Pages]:
    """Give what a tier has, without a copy of it, and with its digests, where that can be.

    Raises:
        KeyError: there is no such copy.
        ValueError: it does not check, or cannot be read.
    """
    return tier.vouched(key) if isinstance(tier, Copies) else nullcontext(tier.get(key))


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

    def _write(self, name: int, pages: Pages | Vouched) -> None:
        self.memory.put(name, pages)

    def _read(self, name: int) -> AbstractContextManager[Vouched]:
        return self.memory.vouched(name)

    def _remove(self, name: int) -> None:
        with suppress(StoreError):
            self.memory.drop(name)
