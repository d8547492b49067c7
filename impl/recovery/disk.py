"""Disk: copies in a store that outlives the process, each with its place in the chains."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from fivestate.impl.allocator import Pages
from fivestate.impl.chain import CopyKey
from fivestate.impl.recovery.chains import Chains, Place
from fivestate.impl.recovery.copies import Copies, Rows, View
from fivestate.impl.tiers import Store, StoreError, Vouched
from fivestate.impl.tiers.errors import Corrupt, DiskError


class DiskCopies(Copies[str]):
    """Copies in a store on disk, and where in the chains they belong: they outlive the process.

    Dropping is quick, for it is done under the allocator's lock; ``flush`` removes the files, at
    the latest before the next one is written. What was dropped and not flushed comes back after a
    crash, which does no harm: a key names one content, and it is checked when it is read.

    Args:
        store: an open store, of this model's geometry; ``identity.layout`` is the epoch of the
            kernels, as a number. It must be large enough that it evicts nothing by itself.
        capacity_bytes: what its objects are to take together; ``room.on_disk`` keeps to it,
            by ``claim``: checking and claiming are one step, for several transfers write at once.

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

    def put(self, key: CopyKey, pages: Pages | Vouched, place: Place | None = None) -> None:
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

    def lacks(self, size_bytes: int) -> bool:
        """Say whether ``size_bytes`` more do not fit beside what is there and what is coming."""
        with self._lock:
            return self._lacks(size_bytes)

    def can_hold(self, size_bytes: int) -> bool:
        """Say whether they would fit if nothing were there but what is coming."""
        with self._lock:
            return sum(self._coming.values()) + size_bytes <= self.capacity_bytes

    def claim(self, key: CopyKey, size_bytes: int) -> bool:
        """Set room aside for a copy that is to be put, if there is so much; say whether.

        The put takes it over; ``unclaim`` gives back what has not been taken.
        """
        with self._lock:
            if self._lacks(size_bytes):
                return False
            self._coming[key] = size_bytes
            return True

    def unclaim(self, key: CopyKey) -> None:
        """Give back the room that was set aside for a copy, if it has not come."""
        with self._lock:
            self._coming.pop(key, None)

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

    def _lacks(self, size_bytes: int) -> bool:
        coming = sum(self._coming.values())
        return self._used_bytes + coming + size_bytes > self.capacity_bytes

    def _name(self, key: CopyKey, number: int) -> str:
        return f"{key.digest.hex()}/{key.state.name}/{self.chains.session}-{number}"

    def _write(self, name: str, pages: Pages | Vouched) -> None:
        self.store.put(name, pages)

    def _read(self, name: str) -> AbstractContextManager[Vouched]:
        try:
            return nullcontext(self.store.read(name))
        except DiskError as error:
            raise Corrupt(name, str(error)) from error

    def _remove(self, name: str) -> None:
        with self._lock:
            self._trash.append(name)
