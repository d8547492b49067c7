"""Below the device: host memory that is bounded, and a disk that outlives the process.

What is committed goes down by itself, on threads: to host memory, and from there to disk. When the
device is full its rows can go, since they are below; when host memory is full those go that the
disk has too. What a prompt needs comes back the same way, and each copy is checked and compared
with the run of its block.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from pathlib import Path

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Node as Segment
from fivestate.impl.models.labels import DiskRows
from fivestate.impl.models.parts import Stamp
from fivestate.impl.models.runs_table import RunsTable
from fivestate.impl.recoveries import Recovery
from fivestate.impl.recovery import Worker
from fivestate.impl.tiers.errors import ClosedError, DiskError

LOG = logging.getLogger("fivestate.models")


class Below:
    """The tiers behind the device, of one allocator.

    Attributes:
        worker: moves what goes down and what comes back.
        by: weights and kernels of what is there when it is opened.
    """

    def __init__(self, allocator: Allocator, disk: DiskRows, runs: RunsTable, by: Stamp) -> None:
        self.worker, self.by = Worker(allocator), by
        self._allocator, self._disk, self._runs = allocator, disk, runs
        self._closed = False

    @property
    def path(self) -> Path:
        """The folder."""
        return self._disk.store.path

    def require_open(self) -> None:
        """Refuse to go on once it is closed.

        Raises:
            ClosedError: it is.
        """
        if self._closed:
            raise ClosedError(self.path)

    def know(self) -> bool:
        """Make durable how new blocks were made: that comes before any copy of them.

        Returns:
            Whether that could be written; if not, the blocks are on the device alone.
        """
        try:
            self._runs.flush()
        except DiskError as error:
            LOG.warning("what was committed is not kept on disk: %s", error)
            return False
        return True

    def keep(self, segment: Segment) -> None:
        """Begin to bring a new block down."""
        for state in segment.cells:
            self.worker.store(segment, state)

    def bring(self, recovery: Recovery) -> None:
        """Bring what a lease needs to the device, as far as there are copies that check."""
        self.worker.recover(recovery.node)
        self.worker.wait(recovery.node)

    def settle(self) -> None:
        """Wait until nothing moves: what was committed, and found room on disk, is safe."""
        self.worker.idle()

    def follow(self, now: Stamp) -> None:
        """Name what is made from now on after its makers; what others made has been dropped."""
        self._allocator.weights = maker_of(now)
        self._disk.follow(self._allocator.layout, self._allocator.weights)

    def close(self) -> None:
        """Wait until all is safe, and close the folder; a second time does nothing."""
        if not self._closed:
            self._closed = True
            self.worker.idle()
            self.worker.close()
            self._disk.close()
            self._runs.close()


def maker_of(now: Stamp) -> int:
    """Return 63 bits that name weights and kernels: rows of two of them are never of one run."""
    name = blake2b(f"{now.weights} {now.kernels}".encode(), digest_size=8)
    return int.from_bytes(name.digest(), "big") >> 1
