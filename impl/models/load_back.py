"""Load back: a leased prefix is brought to the device, as far as that takes no computing (回迁)."""

from __future__ import annotations

from contextlib import suppress

from fivestate.impl.allocator.settings import Pages
from fivestate.impl.cache import Cache
from fivestate.impl.leases import Lease
from fivestate.impl.recoveries import BY_ITSELF, Recovery, Task
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Means


def load_back(cache: Cache, lease: Lease) -> list[Task]:
    """Load back what is off the device; return what only computing would give again.

    That is not begun: rows made in other chunks would differ. An index counts as stale once its
    entries were loaded back (D-13). Who calls this has made sure that all copies of a prefix are
    of one run, so the index is made from its own copy.
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
    cell, allocator = task.node.cells[task.state], cache.allocator
    if task.means is not Means.REBUILD_INDEX or cell.copy is None or not allocator.stored(cell):
        return None
    with suppress(KeyError, ValueError):
        return allocator.settings.host.get(cell.copy.key)
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
