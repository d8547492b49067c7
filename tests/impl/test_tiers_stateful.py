"""A store against a dictionary: whatever is done in whatever order, both say the same."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.impl.tier_workload import IDENTITY, value, version_of

from fivestate.impl.tiers import Corrupt, Missing, Store
from fivestate.impl.tiers.errors import TooLargeError

KEYS = st.sampled_from("abcdef")
ROWS = st.sampled_from([1, 50, 400])
CAPACITY_BYTES = 4000


class StoreAgainstDict(RuleBasedStateMachine):
    """What is promised is a dictionary, oldest use first, that loses its oldest when it is full."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.identity = IDENTITY
        self.versions: dict[str, int] = {}
        self.layouts: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        self.damaged: set[str] = set()
        self.evicted: list[str] = []
        self.version = 0
        self.open()

    def open(self) -> None:
        """Open the folder."""
        self.store = Store.open(
            self.path,
            identity=self.identity,
            capacity_bytes=CAPACITY_BYTES,
            on_evicted=self.evicted.append,
        )

    def teardown(self) -> None:
        """Leave nothing behind."""
        self.store.close()
        self.folder.cleanup()

    def forget(self, key: str) -> None:
        """It is gone."""
        self.versions.pop(key, None)
        self.damaged.discard(key)

    @rule(key=KEYS, rows=ROWS)
    def put(self, key: str, rows: int) -> None:
        """What goes for it is the oldest, and no more than has to."""
        self.version += 1
        self.evicted.clear()
        self.store.put(key, value(self.version, rows))
        self.forget(key)
        oldest = list(self.versions)[: len(self.evicted)]
        assert self.evicted == oldest
        used = self.store.stats().used_bytes
        assert not oldest or used + self.sizes[oldest[-1]] > CAPACITY_BYTES
        for other in oldest:
            self.forget(other)
        self.versions[key] = self.version
        self.sizes[key] = used - sum(self.sizes[other] for other in self.versions if other != key)
        self.layouts[key] = self.identity.layout

    @rule(key=KEYS)
    def put_what_is_too_large(self, key: str) -> None:
        """It is refused, and nothing else happens."""
        with pytest.raises(TooLargeError):
            self.store.put(key, value(1, rows=2000))

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        """It is what was put, or a clear answer."""
        if key not in self.versions:
            with pytest.raises(Missing):
                self.store.get(key)
        elif key in self.damaged:
            with pytest.raises(Corrupt):
                self.store.get(key)
            self.forget(key)
        else:
            assert version_of(self.store.get(key)) == self.versions[key]
            self.versions[key] = self.versions.pop(key)

    @rule(key=KEYS)
    def drop(self, key: str) -> None:
        """It is gone, and was perhaps before."""
        self.store.drop(key)
        self.forget(key)

    @precondition(lambda self: self.versions.keys() - self.damaged)
    @rule(data=st.data())
    def damage(self, data: st.DataObject) -> None:
        """Some byte of a file changes."""
        key = data.draw(st.sampled_from(sorted(self.versions.keys() - self.damaged)))
        path = self.store._folder.file(self.store._holdings.entry(key))
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        self.damaged.add(key)

    @rule()
    def reopen(self) -> None:
        """The process ends and another one starts."""
        self.store.close()
        self.open()
        stats = self.store.stats()
        assert (stats.without_file, stats.orphans, stats.temporary) == (0, 0, 0)

    @rule(layout=st.sampled_from("12"))
    def change_layout(self, layout: str) -> None:
        """Other kernels."""
        self.store.change_layout(layout)
        self.identity = replace(self.identity, layout=layout)

    @rule(while_open=st.booleans())
    def change_weights(self, *, while_open: bool) -> None:
        """Other weights, now or while the store was closed."""
        self.identity = replace(self.identity, weights=self.identity.weights + 1)
        if while_open:
            self.store.change_weights(self.identity.weights)
        else:
            self.reopen()
        self.versions.clear()
        self.damaged.clear()

    @invariant()
    def keys_and_sizes_agree(self) -> None:
        """Keys in the order of use, sizes and files are as they should be."""
        assert self.store.keys() == list(self.versions)
        old = {key for key in self.versions if self.layouts[key] != self.identity.layout}
        assert {key for key in self.versions if self.store.is_old(key)} == old
        used = self.store.stats().used_bytes
        assert used <= CAPACITY_BYTES
        sizes = [path.stat().st_size for path in (self.path / "objects").iterdir()]
        assert (len(sizes), sum(sizes)) == (len(self.versions), used)


TestStoreAgainstDict = StoreAgainstDict.TestCase
TestStoreAgainstDict.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
