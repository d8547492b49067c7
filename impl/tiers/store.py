"""The store: cells on disk, each acknowledged only once it is durable, each checked when read.

Source: design §8; domain §9(5), §9(9).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Condition
from typing import Self

from torch import Tensor

from fivestate.impl.tiers.digest import Vouched
from fivestate.impl.tiers.errors import ClosedError, Corrupt, Missing, StoreError
from fivestate.impl.tiers.files import Files
from fivestate.impl.tiers.folder import Folder, rebuild
from fivestate.impl.tiers.holdings import Holdings, Stats
from fivestate.impl.tiers.identity import StoreIdentity
from fivestate.impl.tiers.manifest import Entry
from fivestate.impl.tiers.object_file import Label, Unreadable, encode
from fivestate.impl.tiers.recency import Recency
from fivestate.impl.tiers.tensors import Tensors, on_cpu

KEY_LIMIT = 1024
"""Characters that a key may have."""

READERS = min(4, os.cpu_count() or 1)
"""Threads that read and check: one can do neither as fast as a disk gives."""


class Store:
    """A folder of cells that outlives the process (盘上前缀); made by `Store.open`.

    Any thread may call any method; files are read and written side by side. A method that raises
    has changed nothing, but that what is corrupt or without its file is gone after a `get`.

    Attributes:
        path: the folder.
        identity: what its cells have to agree with.
    """

    def __init__(
        self,
        folder: Folder,
        identity: StoreIdentity,
        recency: Recency[str],
        on_evicted: Callable[[str], None] | None,
    ) -> None:
        self.path, self.identity = folder.path, identity
        self._folder, self._on_evicted = folder, on_evicted
        self._holdings = Holdings(folder, recency, identity.weights)
        self._changed = Condition()
        self._users = 0
        self._open = True
        self._readers = ThreadPoolExecutor(READERS, "store-reads")

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        identity: StoreIdentity,
        capacity_bytes: int,
        on_evicted: Callable[[str], None] | None = None,
        files: Files | None = None,
    ) -> Self:
        """Open a folder, making it if there is none, and clear away what a crash has left.

        Objects of other weights are dropped; those of another layout are kept and `is_old`.

        Args:
            path: the folder.
            identity: what its cells have to agree with.
            capacity_bytes: what its objects may take together. An object that is being written
                comes on top, since nothing is evicted for it before it is durable.
            on_evicted: called with a key after a `put` has evicted it, on that put's thread;
                it must not raise.
            files: the operations on object files.

        Raises:
            LockedError: somebody else has it open.
            GeometryError: it is of another geometry.
            VersionError: a newer release wrote it.
            ManifestError: its manifest is damaged or gone; see `rebuild`.
            DiskError: the system refuses to read or write it.
            ValueError: the capacity is below 0.
        """
        recency = Recency[str](capacity_bytes)
        folder = Folder(Path(path).absolute(), identity.geometry, files or Files())
        try:
            return cls(folder, identity, recency, on_evicted)
        except BaseException:
            folder.close()
            raise

    @staticmethod
    def rebuild(path: Path | str) -> tuple[int, list[Path]]:
        """Make the manifest of a closed folder again, from its objects' headers.

        Returns:
            How many objects the manifest has now, and the files whose header does not check,
            which the next opening removes.

        Raises:
            LockedError: somebody has it open.
            ManifestError: its objects are of more than one geometry.
            DiskError: the system refuses to read or write it.
        """
        return rebuild(Path(path).absolute(), Files())

    def put(self, key: str, tensors: Tensors | Vouched) -> None:
        """Store an object, in place of one of the same key; on return it is durable.

        Evicts the least recently used objects that no load reads, once the new one is safe.

        Args:
            key: up to 1,024 characters.
            tensors: by name; of any shape and device, and any dtype that safetensors has. What is
                vouched for keeps its digests.

        Raises:
            TooLargeError: it is larger than the capacity.
            FullError: what could be evicted for it is being read.
            DiskError: it cannot be written.
            ClosedError: the store is closed.
            StoreError: the weights have changed meanwhile.
            ValueError: the key, a name or a dtype is not allowed.
        """
        _require_key(key)
        if isinstance(tensors, Vouched):
            ready = replace(tensors, tensors=on_cpu(tensors.tensors))
        else:
            ready = Vouched.of(on_cpu(tensors))
        with self._using():
            with self._changed:
                number, identity = self._holdings.next_number(), self.identity
            label = Label(key, number, identity.geometry, identity.layout, identity.weights)
            encoded = encode(label, ready)
            entry = Entry.of(label, encoded.size_bytes, encoded.seal)
            with self._changed:
                self._holdings.recency.victims(key, entry.size_bytes)
            self._folder.write(entry, encoded)
            try:
                evicted = self._acknowledge(entry)
            except BaseException:
                self._folder.remove(entry)
                raise
        if self._on_evicted is not None:
            for other in evicted:
                self._on_evicted(other)

    def get(self, key: str, *, into: Tensors | None = None) -> dict[str, Tensor]:
        """Return an object's tensors, each checked against its digest.

        Args:
            key: its key.
            into: tensors to read into, of the same names, shapes and dtypes; new ones in CPU
                memory by default. After an error their contents mean nothing.

        Raises:
            Missing: there is none, or its file is gone.
            Corrupt: it does not check, and has been dropped.
            DiskError: the system cannot read it; it has not been dropped.
            ClosedError: the store is closed.
            ValueError: ``into`` does not fit the object.
        """
        found = self.read(key, into=into)
        return dict(found.tensors if into is None else into)

    def read(self, key: str, *, into: Tensors | None = None) -> Vouched:
        """Return an object as `get` does, with the digests that vouch for it, for another tier."""
        with self._using():
            entry, descriptor = self._begin_read(key)
            try:
                found = self._folder.read(entry, descriptor, into, self._readers)
            except Unreadable as error:
                with self._changed:
                    self._holdings.forget(entry, "corrupt")
                raise Corrupt(key, str(error)) from None
            finally:
                with self._changed:
                    self._holdings.recency.release(key)
            with self._changed:
                self._holdings.use(entry)
        return found

    def drop(self, key: str) -> None:
        """Drop an object that no load reads, if there is one.

        Raises:
            HeldError: a load reads it.
            DiskError: the manifest cannot be written.
            ClosedError: the store is closed.
        """
        with self._changed:
            self._require_open()
            self._holdings.recency.require_unheld(key)
            if key in self._holdings:
                self._holdings.remove([self._holdings.entry(key)], "dropped")

    def change_layout(self, layout: str) -> None:
        """Note that the kernels now want another layout: what is of another `is_old`.

        Raises:
            ClosedError: the store is closed.
        """
        with self._changed:
            self._require_open()
            self.identity = replace(self.identity, layout=layout)

    def change_weights(self, weights: int) -> None:
        """Drop everything that other weights made.

        Raises:
            HeldError: a load reads some of it.
            DiskError: the manifest cannot be written.
            ClosedError: the store is closed.
        """
        with self._changed:
            self._require_open()
            self._holdings.drop_other_weights(weights)
            self.identity = replace(self.identity, weights=weights)

    def is_old(self, key: str) -> bool:
        """Whether an object is in a layout that the kernels no longer expect.

        Raises:
            Missing: there is none.
            ClosedError: the store is closed.
        """
        with self._changed:
            self._require_open()
            return self._holdings.entry(key).layout != self.identity.layout

    def __contains__(self, key: str) -> bool:
        with self._changed:
            return key in self._holdings

    def keys(self) -> list[str]:
        """Return the keys, the least recently used first."""
        with self._changed:
            return self._holdings.recency.keys()

    def stats(self) -> Stats:
        """Return what it holds, and what has happened since it was opened."""
        with self._changed:
            return self._holdings.stats()

    def close(self) -> None:
        """Close the store once what is under way has ended; a second time does nothing."""
        with self._changed:
            if self._open:
                self._open = False
                self._changed.wait_for(lambda: not self._users)
                self._holdings.close()
                self._readers.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Keep the store from closing while an object is read or written."""
        with self._changed:
            self._require_open()
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def _acknowledge(self, entry: Entry) -> list[str]:
        with self._changed:
            if entry.weights != self.identity.weights:
                raise StoreError(f"object {entry.key!r}: the weights changed while it was put")
            return self._holdings.acknowledge(entry)

    def _begin_read(self, key: str) -> tuple[Entry, int]:
        """Open an object's file and keep the object from being evicted."""
        with self._changed:
            entry = self._holdings.entry(key)
            try:
                descriptor = self._folder.open(entry)
            except FileNotFoundError:
                self._holdings.forget(entry, "without_file")
                raise Missing(key, "its file is gone") from None
            self._holdings.recency.hold(key)
        return entry, descriptor

    def _require_open(self) -> None:
        if not self._open:
            raise ClosedError(self.path)


def _require_key(key: str) -> None:
    if not 0 < len(key) <= KEY_LIMIT:
        raise ValueError(f"key has {len(key):,} characters: 1 to {KEY_LIMIT:,} are allowed")
    if key.encode(errors="replace") != key.encode(errors="surrogatepass"):
        raise ValueError(f"key {key!r} is not text that UTF-8 has")
