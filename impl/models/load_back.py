"""Load back (回迁) and let go: how rows of a model come to the device, and how they leave."""

from __future__ import annotations

from contextlib import suppress

from fivestate.impl.allocator import Allocator, Pages
from fivestate.impl.cache import Cache
from fivestate.impl.chain import Node
from fivestate.impl.leases import Lease
from fivestate.impl.recoveries import BY_ITSELF, Recovery, Task
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Means
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Copy, Device


def load_back(cache: Cache, lease: Lease) -> list[Task]:
    """Load back what is off the device; return what only computing would give again.

    That is not begun: rows made in other chunks would differ. Nor does an index follow from its
    entries here, so it has a copy of its own, against D-13, whose reason is that such a copy could
    be of another generation than the entries. These copies name the run of their rows, and one
    that names another than its block is dropped when it is read (``labels``), so the two are of
    one generation always. As in the machine an index counts as stale once its entries were loaded
    back, and is then made, from that copy.
    """
    recovery = cache.recover(lease)
    while not recovery.finish():
        tasks, begun = recovery.pending(), False
        for task in tasks:
            pages = _copy_of(cache, task)
            if task.means in BY_ITSELF or pages is not None:
                begun = _carry_out(cache, recovery, task, pages) or begun
        if not begun:
            return [task for task in tasks if task.means not in BY_ITSELF]
    return []


def _copy_of(cache: Cache, task: Task) -> Pages | None:
    """Return the rows of an index that has to be rebuilt, if there is a copy that checks."""
    if task.means is not Means.REBUILD_INDEX:
        return None
    cell, settings = task.node.cells[task.state], cache.allocator.settings
    for tier, copied in ((settings.host, cell.copy), (settings.disk, cell.disk)):
        if tier is not None and copied is not None and copied.complete:
            with suppress(KeyError, ValueError):
                return tier.get(copied.key)
    return None


def _carry_out(cache: Cache, recovery: Recovery, task: Task, pages: Pages | None) -> bool:
    """Do one task of a recovery; say whether it could begin."""
    try:
        recovery.begin(task)
    except Refused:
        return False
    try:
        if task.means is Means.LOAD_BACK:
            recovery.load(task)
    except (KeyError, ValueError):
        recovery.failed(task)
        return True
    for group, rows in (pages or {}).items():
        pool = cache.allocator.pools[group]
        pool.write(task.blocks[group], rows.to(pool.storage.device))
    recovery.done(task)
    return True


def let_go(allocator: Allocator, node: Node) -> None:
    """Let go of a leaf on every tier, its entries last.

    Raises:
        Refused: something of it is leased or under way; the rest stays what it is.
    """
    for state in (TAIL, WINDOW, INDEXER, COMPRESSED):
        cell = node.cells.get(state)
        if cell is None:
            continue
        if cell.device is Device.READY:
            allocator.evict(node, state)
        if allocator.copy_of(cell) is not Copy.NONE:
            allocator.drop(node, state)
        if allocator.disk_of(cell) is not Copy.NONE:
            allocator.erase(node, state)
