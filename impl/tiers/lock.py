"""One store at a time opens a folder: a lock that goes with the process that holds it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from fivestate.impl.tiers.errors import DiskError, LockedError


class FolderLock:
    """An exclusive lock on a folder, in a file that names its holder.

    The file stays when the lock is given back: were it removed, two processes could each lock a
    file of that name.

    Raises:
        LockedError: somebody else has it.
        DiskError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise DiskError("open", path, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace")
            os.close(self._descriptor)
            raise LockedError(path.parent, holder or "unknown") from error
        except OSError as error:
            os.close(self._descriptor)
            raise DiskError("lock", path, error) from error

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)
