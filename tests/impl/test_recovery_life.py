"""Threads, delays and faults: nothing wrong is ever read, and every fault of ours is noticed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.impl.recovery_life import Life
from tests.impl.recovery_world import allocator

from fivestate.impl.allocator import Allocator
from fivestate.impl.recovery import DiskCopies, restore
from fivestate.spec.vocabulary import COMPRESSED, WINDOW

SEEDS = range(4)

Fault = Callable[[Life, pytest.MonkeyPatch], None]


def boundaries(home: Allocator) -> tuple[set[bytes], set[bytes]]:
    """Return what is known of every chain, and at which ends a window is on disk."""
    nodes = [node for node in home.nodes() if home.known(node)]
    ends = {n.digests[-1] for n in nodes if WINDOW in n.cells and n.cells[WINDOW].disk is not None}
    assert all(node.cells[COMPRESSED].disk is not None for node in nodes)
    return {digest for node in nodes for digest in node.digests}, ends


def test_whatever_happens_what_is_read_is_right_and_a_crash_loses_nothing_acknowledged(
    tmp_path: Path,
) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        folder, after = tmp_path / f"{seed}", tmp_path / f"{seed} after"
        life = Life(folder, seed)
        life.run(users=3, turns=60)
        life.close()
        seen += life.seen
        shutil.copytree(folder, after, ignore=shutil.ignore_patterns("lock"))
        disk = life.home.settings.disk
        assert isinstance(disk, DiskCopies)
        assert life.noticed() <= disk.store.stats().corrupt
        life.home.crash()
        again = allocator(after)
        restore(again)
        assert boundaries(again) == boundaries(life.home)
        again.check()
    for what in ("read", "resumed", "aborted", "damaged memory", "damaged disk"):
        assert seen[what], (what, seen)
