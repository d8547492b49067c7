"""The host tier: cells in CPU memory, pinned where there is a device to copy them to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Generic

import torch
from torch import Tensor

from fivestate.impl.tiers.digest import Vouched
from fivestate.impl.tiers.errors import Corrupt, Missing
from fivestate.impl.tiers.recency import Key, Recency
from fivestate.impl.tiers.tensors import Tensors, forms, require_fit


class HostTier(Generic[Key]):
    """Cells in host memory, for as long as the process lives.

    Any thread may call any method; bytes are copied side by side. A method that raises has changed
    nothing, but that what is corrupt is gone.

    Args:
        capacity_bytes: what its tensors may take together. One that is being put comes on top,
            since nothing is evicted for it before it is there.
        pinned: whether its memory is pinned, so that a device can copy by itself; by default where
            there is a CUDA device.
        on_evicted: called with a key after a `put` has evicted it, on that put's thread.

    Raises:
        ValueError: the capacity is below 0, or memory cannot be pinned here.
    """

    def __init__(
        self,
        capacity_bytes: int,
        *,
        pinned: bool | None = None,
        on_evicted: Callable[[Key], None] | None = None,
    ) -> None:
        possible = torch.cuda.is_available()
        if pinned and not possible:
            raise ValueError("pinned = True: memory is pinned for a CUDA device, and there is none")
        self.pinned = possible if pinned is None else pinned
        self._recency = Recency[Key](capacity_bytes)
        self._objects: dict[Key, Vouched] = {}
        self._on_evicted = on_evicted
        self._lock = Lock()

    def put(self, key: Key, tensors: Tensors | Vouched) -> None:
        """Keep a copy of an object, in place of one of the same key.

        Args:
            key: anything that can be hashed.
            tensors: by name; of any shape, dtype and device. What is vouched for is taken over as
                it is, with its digests, and copied only where memory is pinned.

        Raises:
            TooLargeError: it is larger than the capacity.
            FullError: what could be evicted for it is being read.
        """
        given = tensors.tensors if isinstance(tensors, Vouched) else tensors
        size = sum(tensor.nbytes for tensor in given.values())
        with self._lock:
            self._recency.victims(key, size)
        kept = self._kept(tensors)
        with self._lock:
            evicted = self._recency.victims(key, size)
            for other in evicted:
                self._let_go(other)
            self._objects[key] = kept
            self._recency.add(key, size)
        if self._on_evicted is not None:
            for other in evicted:
                self._on_evicted(other)

    def get(self, key: Key, *, into: Tensors | None = None) -> dict[str, Tensor]:
        """Return a copy of an object's tensors, each checked against its digest.

        Args:
            key: its key.
            into: tensors to copy into, on any device; new ones in CPU memory by default.

        Raises:
            Missing: there is none.
            Corrupt: it does not check, and has been dropped.
            ValueError: ``into`` does not fit the object.
        """
        with self.reading(key) as tensors:
            if into is None:
                return {name: tensor.clone() for name, tensor in tensors.items()}
            require_fit(forms(tensors), into)
            for name, tensor in tensors.items():
                into[name].copy_(tensor)
            return dict(into)

    @contextmanager
    def reading(self, key: Key) -> Iterator[Mapping[str, Tensor]]:
        """Give an object's own tensors, checked; they stay, and must not change, while it lasts.

        Raises:
            Missing: there is none.
            Corrupt: it does not check, and has been dropped.
        """
        with self.vouched(key) as found:
            yield found.tensors

    @contextmanager
    def vouched(self, key: Key) -> Iterator[Vouched]:
        """Give an object as `reading` does, with the digests that vouch for it."""
        with self._lock:
            found = self._objects.get(key)
            if found is None:
                raise Missing(key)
            self._recency.hold(key)
        try:
            wrong = found.wrong()
            if wrong is not None:
                self._forget(key, found)
                raise Corrupt(key, f"tensor {wrong!r} is not what its digest says")
            yield found
        finally:
            with self._lock:
                self._recency.release(key)
                self._recency.touch(key)

    def drop(self, key: Key) -> None:
        """Drop an object that no load reads, if there is one.

        Raises:
            HeldError: a load reads it.
        """
        with self._lock:
            self._recency.require_unheld(key)
            if key in self._objects:
                self._let_go(key)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._objects

    def keys(self) -> list[Key]:
        """Return the keys, the least recently used first."""
        with self._lock:
            return self._recency.keys()

    @property
    def used_bytes(self) -> int:
        """What its tensors take."""
        return self._recency.used_bytes

    def _kept(self, given: Tensors | Vouched) -> Vouched:
        """Return what is kept of an object: a copy, or itself where it may be."""
        if not isinstance(given, Vouched):
            return Vouched.of({name: self._copy(tensor) for name, tensor in given.items()})
        if not self.pinned:
            return given
        copies = {name: self._copy(tensor) for name, tensor in given.tensors.items()}
        return replace(given, tensors=copies)

    def _copy(self, tensor: Tensor) -> Tensor:
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=self.pinned)
        return copy.copy_(tensor.detach())

    def _forget(self, key: Key, found: Vouched) -> None:
        with self._lock:
            if self._objects.get(key) is found:
                self._let_go(key)

    def _let_go(self, key: Key) -> None:
        del self._objects[key]
        self._recency.remove(key)
