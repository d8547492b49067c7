"""A store's folder as tests open it, look into it and damage it."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.impl.tier_workload import IDENTITY, value

from fivestate.impl.tiers import Store, StoreIdentity
from fivestate.impl.tiers.files import Files

ROOM = 1 << 20


def opened(
    path: Path,
    identity: StoreIdentity = IDENTITY,
    room: int = ROOM,
    files: Files | None = None,
) -> Store:
    """Open a folder."""
    return Store.open(path, identity=identity, capacity_bytes=room, files=files)


def the_file(store: Store) -> Path:
    """Return the file of the only object there is."""
    (path,) = (store.path / "objects").iterdir()
    return path


def size_of_one(tmp_path: Path) -> int:
    """Return the size of the file of an object such as the tests put."""
    with opened(tmp_path / "measure") as store:
        store.put("k", value(1))
        return store.stats().used_bytes


def flip(path: Path, offset: int, mask: int = 1) -> None:
    """Change some bits of a byte; negative offsets count from the end."""
    content = bytearray(path.read_bytes())
    content[offset] ^= mask
    path.write_bytes(content)


class Slow(Files):
    """Files that stop a read until they are told to go on."""

    def __init__(self) -> None:
        self.reading, self.go_on = threading.Event(), threading.Event()

    def will_read(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Stop."""
        super().will_read(descriptor, offset, size_bytes)
        self.reading.set()
        assert self.go_on.wait(30)
