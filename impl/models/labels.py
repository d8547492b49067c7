"""Labels: copies off the device that name the run of their rows, which is compared at every load.

The same tokens computed in other chunks have other bits under the same key. So a copy says which
run made it, and one that says another than its block is no copy. That holds for an index as well:
it is of the generation of its entries if both name one run.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

import torch
from torch import Tensor

from fivestate.impl.allocator import Pages, Settings
from fivestate.impl.chain import CopyKey
from fivestate.impl.models.provenance import Node
from fivestate.impl.recovery import Copies, DiskCopies, HostCopies
from fivestate.impl.recovery.chains import Place
from fivestate.impl.recovery.copies import Rows, pages_of
from fivestate.impl.tiers import Store
from fivestate.impl.tiers.digest import Vouched
from fivestate.impl.tiers.errors import Corrupt
from fivestate.impl.tiers.recency import Key as Name

LABEL = "run"
"""What the label is called among the groups of a copy: shape (1, bytes), dtype uint8."""

Runs = MutableMapping[bytes, Node]
"""Of each block that is known, by digest, how it was made."""


class _Labelled(Copies[Name]):
    """Copies that have a label in each tier; who reads pages does not see it."""

    runs: Runs

    @contextmanager
    def vouched(self, key: CopyKey) -> Iterator[Vouched | Pages]:
        """Give the bytes with their label, checked, and of the run that is known.

        Raises:
            KeyError: there is no such copy.
            ValueError: they do not check, or are of another run than their block.
        """
        with super().vouched(key) as found:
            label, known = pages_of(found).get(LABEL), self.runs.get(key.digest)
            if label is None or known is None or not torch.equal(label, label_of(known.run)):
                raise Corrupt(key, "it is of another run than its block")
            yield found

    @contextmanager
    def reading(self, key: CopyKey) -> Iterator[Pages]:
        """Give the bytes as ``vouched`` does, without their label."""
        with super().reading(key) as pages:
            yield {name: page for name, page in pages.items() if name != LABEL}

    def _labelled(self, key: CopyKey, given: Pages | Vouched) -> Pages | Vouched:
        """Add the label where a tier has not; a cell that is stored keeps its run till it is."""
        known = self.runs.get(key.digest)
        if known is None:
            raise Corrupt(key, "nobody knows how it was made")
        if LABEL in pages_of(given):
            return given
        return {**pages_of(given), LABEL: label_of(known.run)}


class HostRows(_Labelled[int], HostCopies):
    """Copies in host memory."""

    def __init__(self, runs: Runs) -> None:
        super().__init__()
        self.runs = runs

    def put(self, key: CopyKey, pages: Pages | Vouched) -> None:
        """Keep a copy of these bytes."""
        super().put(key, self._labelled(key, pages))


class DiskRows(_Labelled[str], DiskCopies):
    """Copies on disk; an object's name has its run too, so that a restart need not read it."""

    def __init__(self, store: Store, capacity_bytes: int, runs: Runs) -> None:
        super().__init__(store, capacity_bytes)
        self.runs = runs

    def put(self, key: CopyKey, pages: Pages | Vouched, place: Place | None = None) -> None:
        """Keep a copy of these bytes; when it returns, they are there to stay."""
        super().put(key, self._labelled(key, pages), place)

    def found(self) -> dict[str, Place]:
        """Return what an earlier process left, but for rows of runs that nobody knows any more."""
        known = {node.run for node in self.runs.values()}
        places = super().found()
        for name in [name for name in places if name.rpartition("/")[2] not in known]:
            del places[name]
            self.reject(name)
        return places

    def attach(self, key: CopyKey, name: str, rows: Rows, size_bytes: int) -> None:
        """Let a key be a copy of some blocks of an object that an earlier process left."""
        super().attach(key, name, {**rows, LABEL: (0, 1)}, size_bytes)

    def _name(self, key: CopyKey, number: int) -> str:
        return f"{super()._name(key, number)}/{self.runs[key.digest].run}"


def runs_of(settings: Settings) -> Runs | None:
    """Return what is known of how rows were made, if all copies off the device are labelled."""
    host, disk = settings.host, settings.disk
    if not isinstance(host, HostRows):
        return None
    same = disk is None or (isinstance(disk, DiskRows) and disk.runs is host.runs)
    return host.runs if same else None


def label_of(run: str) -> Tensor:
    """Return the label of a run: shape (1, bytes), dtype uint8."""
    return torch.tensor([list(run.encode())], dtype=torch.uint8)
