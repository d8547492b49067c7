"""A run of a store in which every answer is known beforehand, and what may be found after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from fivestate.impl.tiers import Missing, Store, StoreError, StoreIdentity
from fivestate.impl.tiers.files import Files

IDENTITY = StoreIdentity("toy", "1", 1)


def value(version: int, rows: int = 24) -> dict[str, Tensor]:
    """Return an object that is told from that of every other version by each of its elements."""
    return {
        "rows": torch.arange(rows, dtype=torch.int32) + 1000 * version,
        "scale": torch.full((3,), float(version), dtype=torch.bfloat16),
    }


def version_of(tensors: dict[str, Tensor]) -> int:
    """Return the version of an object, which must be whole."""
    version = int(tensors["rows"][0]) // 1000
    expected = value(version, len(tensors["rows"]))
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)
    return version


@dataclass
class Step:
    """One step of a run, and what it turned out to remove.

    Attributes:
        what: put, get, drop, layout, weights or reopen.
        key: of which object.
        version: of a put, what is put; of the others, the new layout or weights.
        gone: keys that it removes.
    """

    what: str
    key: str = ""
    version: int = 0
    gone: list[str] = field(default_factory=list)


@dataclass
class Promise:
    """What may be found after some steps, the last of which may not have ended.

    Attributes:
        settled: the version of each object there must be.
        weights: epoch of the weights.
        under_way: the step that may or may not have had its effect, or a part of it.
    """

    settled: dict[str, int] = field(default_factory=dict)
    weights: int = IDENTITY.weights
    under_way: Step | None = None

    def begin(self, step: Step) -> None:
        """A step begins."""
        self.under_way = step

    def end(self, step: Step) -> None:
        """The step has been acknowledged."""
        for key in step.gone:
            self.settled.pop(key, None)
        if step.what == "put":
            self.settled[step.key] = step.version
        if step.what == "weights":
            self.weights = step.version
        self.under_way = None

    def allowed(self, key: str) -> set[int | None]:
        """Return what may be found of a key."""
        found: set[int | None] = {self.settled.get(key)}
        if self.under_way is not None:
            dropped = self.under_way.what == "drop" and self.under_way.key == key
            if dropped or key in self.under_way.gone:
                found.add(None)
            if self.under_way.what == "put" and self.under_way.key == key:
                found.add(self.under_way.version)
        return found


class Marks(Files):
    """Files that can be told how far a run is."""

    def mark(self, step: Step, *, done: bool) -> None:
        """Note that a step begins, or has been acknowledged."""


def run(
    root: Path, steps: Iterable[Step], files: Marks, capacity_bytes: int, rows: int = 24
) -> None:
    """Do the steps, and mark each before and after."""
    identity = IDENTITY
    gone: list[str] = []

    def opened() -> Store:
        return Store.open(
            root,
            identity=identity,
            capacity_bytes=capacity_bytes,
            on_evicted=lambda key: gone.append(key),  # noqa: PLW0108 -- the list of that moment
            files=files,
        )

    store = opened()
    for step in steps:
        gone = step.gone
        files.mark(step, done=False)
        match step.what:
            case "put":
                store.put(step.key, value(step.version, rows))
            case "get" if step.key in store:
                assert version_of(store.get(step.key))
            case "drop" if step.key in store:
                gone.append(step.key)
                store.drop(step.key)
            case "layout":
                store.change_layout(str(step.version))
            case "weights":
                gone.extend(store.keys())
                identity = StoreIdentity(identity.geometry, identity.layout, step.version)
                store.change_weights(step.version)
            case "reopen":
                store.close()
                store = opened()
            case _:
                pass
        files.mark(step, done=True)
    store.close()


class NamesOnly(Files):
    """Files that do not let a store read what is in one while it opens."""

    opening = True

    def read(self, descriptor: int, offset: int, into: memoryview) -> int:
        """Read, but not before the store is open."""
        assert not self.opening, "an opening reads contents, so its time grows with them"
        return super().read(descriptor, offset, into)


def look(root: Path, promise: Promise, keys: Sequence[str]) -> tuple[dict[str, int], list[str]]:
    """Reopen a folder after a crash; return what it has, and what is not as it was promised."""
    files = NamesOnly()
    identity = StoreIdentity(IDENTITY.geometry, IDENTITY.layout, promise.weights)
    versions: dict[str, int] = {}
    wrong: list[str] = []
    try:
        store = Store.open(root, identity=identity, capacity_bytes=1 << 30, files=files)
    except StoreError as error:
        return versions, [f"it cannot be opened: {error}"]
    with store:
        files.opening = False
        for key in keys:
            try:
                versions[key] = version_of(store.get(key))
            except Missing:
                pass
            except (StoreError, AssertionError) as error:
                wrong.append(f"{key}: {error}")
                continue
            if versions.get(key) not in promise.allowed(key):
                wrong.append(f"{key}: {versions.get(key)} instead of {promise.allowed(key)}")
        used = store.stats().used_bytes
        kept = [path.stat().st_size for path in (root / "objects").iterdir()]
        if (len(kept), sum(kept)) != (len(store.keys()), used):
            wrong.append(f"{len(kept)} files of {sum(kept)} bytes; the manifest says {used}")
    return versions, wrong
