"""Disk: copies in a store that outlives the process, each with its place in the chains."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from torch import Tensor

from fivestate.impl.allocator import Pages
from fivestate.impl.chain import CopyKey
from fivestate.impl.recovery.chains import Chains, Place
from fivestate.impl.recovery.copies import Copies, Rows, View
from fivestate.impl.tiers import Store, StoreError
from fivestate.impl.tiers.errors import Corrupt, DiskError


class DiskCopies(Copies[str]):
    """Copies in a store on disk, and where in the chains they belong: they outlive the process.

    Dropping is quick, for it is done under the allocator's lock; ``flush`` removes the files, at
    the latest before the next one is written. What was dropped and not flushed comes back after a
    crash, which does no harm: a key names one content, and it is checked when it is read.

    Args:
        store: an open store, of this model's geometry; ``identity.layout`` is the epoch of the
            kernels, as a number. It must be large enough that it evicts nothing by itself.
        capacity_bytes: what its objects are to take together; ``room.on_disk`` keeps to it.

    Raises:
        ValueError: the capacity is not positive, or the layout is no number.
        DiskError: the table of places cannot be read or written.
    """

    def __init__(self, store: Store, capacity_bytes: int) -> None:
        super().__init__()
        if capacity_bytes < 1:
            raise ValueError(f"capacity_bytes = {capacity_bytes}: 1 or more is allowed")
        self.store, self.capacity_bytes = store, capacity_bytes
        if not store.identity.layout.isdigit():
            shown = f"identity.layout = {store.identity.layout!r}"
            raise ValueError(f"disk copies: {shown}: the epoch of the kernels, a number, is needed")
        self.chains = Chains(Path(store.path) / "chains.db")
        self._trash: list[str] = []

    @property
    def layout(self) -> int:
        """The epoch of the kernels."""
        return int(self.store.identity.layout)

    @property
    def weights(self) -> int:
        """The epoch of the weights."""
        return self.store.identity.weights

    def follow(self, layout: int, weights: int) -> None:
        """Take up the epochs of an allocator whose kernels or weights have changed.

        What other weights made is dropped.

        Raises:
            HeldError: a load reads some of it.
            DiskError: the manifest cannot be written.
        """
        self.flush()
        self.store.change_layout(str(layout))
        self.store.change_weights(weights)

    def put(self, key: CopyKey, pages: Pages, place: Place | None = None) -> None:
        """Keep a copy of these bytes; when it returns, they are there to stay.

        Args:
            key: its key.
            pages: its bytes.
            place: where it belongs; without it no restart finds it.

        Raises:
            StoreError: they cannot be kept.
        """
        name = self._name(key, next(self._numbers))
        if place is not None:
            self.chains.keep(name, place)
        try:
            self._put(name, key, pages)
        except BaseException:
            self.chains.forget(name)
            raise

    def found(self) -> dict[str, Place]:
        """Return what an earlier process left, by name; what has no place is dropped.

        Raises:
            DiskError: the places cannot be read.
        """
        names = self.store.keys()
        places = self.chains.places(frozenset(names))
        self._trash += [name for name in names if name not in places]
        return places

    def attach(self, key: CopyKey, name: str, rows: Rows, size_bytes: int) -> None:
        """Let a key be a copy of some blocks of an object that an earlier process left."""
        self._add(key, View(name, rows), size_bytes)

    def reject(self, name: str) -> None:
        """Drop an object that an earlier process left and nobody has attached to."""
        with self._lock:
            if not self._users[name]:
                self._trash.append(name)

    def flush(self) -> None:
        """Remove the files of what was dropped; it waits for the disk."""
        while True:
            with self._lock:
                if not self._trash:
                    return
                name = self._trash.pop()
            with suppress(StoreError):  # what stays is swept, or found again, at the next opening
                self.store.drop(name)
            self.chains.forget(name)

    def close(self) -> None:
        """Remove what was dropped, and close the store and the table of places."""
        self.flush()
        self.store.close()
        self.chains.close()

    def _name(self, key: CopyKey, number: int) -> str:
        return f"{key.digest.hex()}/{key.state.name}/{self.chains.session}-{number}"

    def _write(self, name: str, pages: Pages) -> None:
        self.store.put(name, pages)

    def _read(self, name: str) -> AbstractContextManager[Mapping[str, Tensor]]:
        try:
            return nullcontext(self.store.get(name))
        except DiskError as error:
            raise Corrupt(name, str(error)) from error

    def _remove(self, name: str) -> None:
        with self._lock:
            self._trash.append(name)
