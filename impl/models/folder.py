"""A folder: rows of earlier prompts that outlive the process, for whoever opens it again."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path

import torch

from fivestate.impl.allocator import Allocator, Settings
from fivestate.impl.cache import Cache
from fivestate.impl.models.below import Below, maker_of
from fivestate.impl.models.by_block import ByBlock
from fivestate.impl.models.labels import DiskRows, HostRows
from fivestate.impl.models.layout import Layout
from fivestate.impl.models.parts import Stamp
from fivestate.impl.models.runs_table import RunsTable
from fivestate.impl.recovery import restore
from fivestate.impl.recovery.copies import UNBOUNDED_BYTES
from fivestate.impl.retention import Retention
from fivestate.impl.tiers import Store, StoreIdentity, fingerprint
from fivestate.spec.need import blocks
from fivestate.spec.reuse import Policy, Rates
from fivestate.spec.reuse.windows import Keep

HOST_BLOCKS = 2
"""Scheduler blocks that host memory has room for at the least: one goes down, one comes up."""


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Where rows are kept, and how many of them on each tier.

    One process at a time has it open. It is of one model's cache layout; rows of other weights, or
    of other kernels, are dropped when it is opened.

    Attributes:
        path: the folder; it is made if there is none.
        device_tokens: for how many tokens there is room beside the model.
        host_tokens: for how many in host memory: two blocks at least, or nothing could be fetched.
        disk_bytes: what all objects on disk may take together.
    """

    path: str | PathLike[str]
    device_tokens: int = 8_192
    host_tokens: int = 65_536
    disk_bytes: int = 16 << 30

    def open(self, layout: Layout, now: Stamp, salt: str, rates: Rates, device: object) -> ByBlock:
        """Open it: what an earlier process left is known again.

        Args:
            layout: of the model.
            now: its weights and kernels.
            salt: of the prefixes.
            rates: decide what is worth loading back.
            device: where the rows beside the model are.

        Raises:
            LockedError: another process has it open.
            GeometryError: it is of another model's layout.
            StoreError: it cannot be read or written, or a newer release wrote it.
            ValueError: a tier has room for less than it needs.
        """
        geometry, step = layout.geometry, layout.geometry.scheduler_block_size
        least = {"device_tokens": step, "host_tokens": HOST_BLOCKS * step, "disk_bytes": 1}
        for name, allowed in least.items():
            if getattr(self, name) < allowed:
                value = getattr(self, name)
                raise ValueError(f"folder: {name} = {value}: {allowed} or more is allowed")
        layout_name = sha256((fingerprint(geometry) + layout.signature).encode()).hexdigest()
        identity = StoreIdentity(f"{geometry.name} {layout_name[:16]}", "0", maker_of(now))
        with ExitStack() as undo:
            path = Path(self.path)
            store = Store.open(path, identity=identity, capacity_bytes=UNBOUNDED_BYTES)
            undo.callback(store.close)
            runs = RunsTable(store.path / "runs.db")
            undo.callback(runs.close)
            disk = DiskRows(store, self.disk_bytes, runs)
            undo.callback(disk.chains.close)
            allocator = Allocator(
                Settings(
                    geometry=geometry,
                    num_blocks=_sizes(layout, self.device_tokens),
                    storable=frozenset(group.state for group in geometry.groups),
                    host_blocks=_sizes(layout, self.host_tokens),
                    host=HostRows(runs),
                    disk=disk,
                    device=torch.device(str(device)),
                )
            )
            restored = restore(allocator)
            runs.sweep({digest for node in restored.nodes for digest in node.digests})
            cache = Cache(
                allocator,
                policy=Policy(rates),
                retention=Retention(Keep.FULL),
                in_flight_tokens=step,
            )
            below = Below(allocator, disk, runs, now)
            undo.pop_all()
            return ByBlock(layout, cache, salt, below)


def _sizes(layout: Layout, tokens: int) -> dict[str, int]:
    """Return how many blocks of each group hold some tokens."""
    return {group.name: blocks(tokens, group.block_size) for group in layout.geometry.groups}
