"""The file operations on objects: the one place where a test records them or makes them fail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

PIECES = 512
"""Pieces in one system call; POSIX promises no more than 16, and Linux takes 1,024."""


class Files:
    """The operating system's files, as a store uses them.

    Nothing is durable before `sync` for what is in a file, and `sync_directory` for its name.
    Every method raises OSError as the system does.
    """

    def create(self, path: Path) -> int:
        """Open a file for writing, empty, and return its descriptor."""
        return os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o644)

    def write(self, descriptor: int, pieces: Sequence[memoryview]) -> None:
        """Append all bytes of ``pieces`` (views of bytes, none empty)."""
        rest = list(pieces)
        while rest:
            rest = after(rest, os.writev(descriptor, rest[:PIECES]))

    def sync(self, descriptor: int) -> None:
        """Return when what was written is on the disk."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """Close a file."""
        os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, all or nothing."""
        old.rename(new)

    def unlink(self, path: Path) -> None:
        """Remove a name; whoever has the file open still reads it."""
        path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        """Return when the names in a folder are on the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def names(self, path: Path) -> list[str]:
        """Return the names in a folder."""
        return [entry.name for entry in path.iterdir()]

    def open(self, path: Path) -> int:
        """Open a file for reading and return its descriptor."""
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def size_bytes(self, descriptor: int) -> int:
        """Return how long an open file is."""
        return os.fstat(descriptor).st_size

    def will_read(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Let the system start to read a part of a file, without waiting for it.

        Linux takes no more of one call than its read-ahead for the device, often 128 kB.
        """
        os.posix_fadvise(descriptor, offset, size_bytes, os.POSIX_FADV_WILLNEED)

    def read(self, descriptor: int, offset: int, into: memoryview) -> int:
        """Read from ``offset`` until ``into`` is full or the file ends; return how many bytes."""
        done = 0
        while done < len(into):
            count = os.preadv(descriptor, [into[done:]], offset + done)
            if not count:
                break
            done += count
        return done


def after(pieces: Sequence[memoryview], done: int) -> list[memoryview]:
    """Return what is left of ``pieces`` without their first ``done`` bytes."""
    rest = list(pieces)
    while rest and done >= len(rest[0]):
        done -= len(rest.pop(0))
    if done:
        rest[0] = rest[0][done:]
    return rest
