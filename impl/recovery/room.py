"""Room in the tiers: which copies go so that others can come.

What goes is asked of the allocator's own actions, the least recently used first: a copy that a
load is about to read stays, and the last entries of a prefix go behind all that hangs on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell, CopyKey, Node
from fivestate.impl.recovery.copies import Copies
from fivestate.impl.recovery.disk import DiskCopies
from fivestate.impl.refusals import Refused
from fivestate.spec.vocabulary import CacheState

Drop = Callable[[Node, CacheState], None]


def in_host(
    allocator: Allocator, cell: Cell, stays: Callable[[Cell], bool] = lambda _cell: False
) -> bool:
    """Drop copies from the tier next to the device until one of a cell fits, that is to be stored.

    First those go that the disk has too. For a fetch the allocator makes room by itself.

    Args:
        allocator: whose tier it is.
        cell: what is to be stored.
        stays: whether a cell's copy is left, such as one that is on its way to the disk.

    Returns:
        Whether it fits now.
    """
    with allocator.lock:
        if allocator.host_room(cell):
            return True
        mine = [other for other in allocator.cells() if other.state is cell.state]
        found = {other.copy.key: other for other in mine if other.copy is not None}
        host = allocator.settings.host
        oldest = host.keys() if isinstance(host, Copies) else list(found)
        twice = [key for key in oldest if key in found and allocator.archived(found[key])]
        others = [key for key in oldest if key in found and not stays(found[key])]
        for keys in (twice, others):
            _drop(found, keys, allocator.drop, lambda: allocator.host_room(cell))
        return allocator.host_room(cell)


@contextmanager
def on_disk(
    allocator: Allocator, disk: DiskCopies, key: CopyKey, size_bytes: int
) -> Iterator[bool]:
    """Claim room for a copy that is put within, erasing others for it; say whether there is.

    Two transfers that look at once never get the same room. What is only coming is not erased.
    """
    with allocator.lock:
        if disk.lacks(size_bytes) and disk.can_hold(size_bytes):
            found = {cell.disk.key: cell for cell in allocator.cells() if cell.disk is not None}
            _drop(found, disk.keys(), allocator.erase, lambda: not disk.lacks(size_bytes))
        fits = disk.claim(key, size_bytes)
    try:
        yield fits
    finally:
        if fits:
            disk.unclaim(key)


def _drop(
    cells: dict[CopyKey, Cell], keys: Iterable[CopyKey], drop: Drop, enough: Callable[[], bool]
) -> None:
    """Drop one after another; entries may go once what hangs on them is gone."""
    left = [key for key in keys if key in cells]
    going = True
    while going and not enough():
        going = False
        for key in list(left):
            try:
                drop(cells[key].node, cells[key].state)
            except Refused:
                continue
            left.remove(key)
            going = True
            if enough():
                return
