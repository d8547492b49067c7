"""How rows were made is kept with them: rows of another run are never used (D-13)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.impl.model_examples import WRONG, prompt, rng_of
from tests.impl.model_folder import (
    evicted,
    objects_of,
    opened,
    right,
    rows_of,
)
from tests.impl.model_oracle import oracle

from fivestate.impl.chain import Cell
from fivestate.impl.models import labels
from fivestate.impl.models.labels import DiskRows, HostRows
from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.provenance import Chunk, Node
from fivestate.impl.models.replay import run
from fivestate.impl.models.runs_table import RunsTable
from fivestate.impl.tiers.errors import (
    DiskError,
)
from fivestate.spec.reuse import Kind
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, CacheState

ONE, OTHER = (prompt(rng_of(seed), 70) for seed in (1, 2))


def fourth(prefixes: PrefixCache, text: list[int], state: CacheState) -> tuple[Cell, str]:
    """Return a cell of a text's fourth block, and the run of that block."""
    rows = rows_of(prefixes)
    digest = rows._prompt(tuple(text)).digests()[3]
    [node] = [node for node in rows._cache.allocator.nodes() if node.digests[-1] == digest]
    return node.cells[state], rows.runs[digest].run


def passed_off(prefixes: PrefixCache, state: CacheState, *, on_disk: bool) -> None:
    """Put another text's rows, with their own label, in the place of a copy of the first's."""
    allocator = rows_of(prefixes)._cache.allocator
    tier = allocator.settings.disk if on_disk else allocator.settings.host
    assert isinstance(tier, HostRows | DiskRows)
    (mine, _), (theirs, run) = (fourth(prefixes, text, state) for text in (ONE, OTHER))
    key, other = (cell.disk if on_disk else cell.copy for cell in (mine, theirs))
    assert key is not None
    assert other is not None
    tier.put(key.key, {**tier.get(other.key), labels.LABEL: labels.label_of(run)})
    if on_disk:
        for node in allocator.nodes():
            allocator.drop(node, state)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("state", [INDEXER, COMPRESSED])
@pytest.mark.parametrize("checked", [True, False])
def test_an_index_or_entries_of_another_run_are_never_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: CacheState,
    *,
    on_disk: bool,
    checked: bool,
) -> None:
    """And without the comparison they would be, and the logits would be wrong."""
    with opened(tmp_path, device_tokens=512, host_tokens=512) as prefixes:
        right(prefixes, ONE)
        right(prefixes, OTHER)
        evicted(prefixes)
        passed_off(prefixes, state, on_disk=on_disk)
        if checked:
            lease = right(prefixes, ONE)
            assert (lease.verdict.kind, lease.resume) == (Kind.PARTIAL, 48)
            return
        with monkeypatch.context() as blind:
            blind.setattr(torch, "equal", lambda *_: True)
            lease, on = prefixes.lease(ONE), prefixes.model
        assert lease.resume == 64
        wanted, _ = oracle(on, lease.provenance.then(ONE[64:]))
        assert (run(on, lease.cache, ONE[64:]) - wanted[64:]).abs().max() > WRONG


@pytest.fixture
def table(tmp_path: Path) -> Iterator[RunsTable]:
    made = RunsTable(tmp_path / "runs.db")
    yield made
    made.close()


def test_how_rows_were_made_is_durable_before_any_copy_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise DiskError("write", tmp_path, OSError(28, "No space left on device"))

    text = prompt(rng_of(3), 70)
    prefixes = opened(tmp_path)
    monkeypatch.setattr(RunsTable, "flush", full)
    right(prefixes, text)
    prefixes.settle()
    assert not objects_of(tmp_path)
    assert "No space left on device" in caplog.text
    assert right(prefixes, text).resume == 64
    monkeypatch.undo()
    prefixes.close()


def test_a_table_of_runs_keeps_what_was_flushed_and_sweeps_what_is_not_there(
    tmp_path: Path, table: RunsTable
) -> None:
    chunks = Chunk(0, tuple(range(30))), Chunk(30, (1, 2))
    nodes = {bytes([n]) * 32: Node(b"", 16 * n, chunks[: n % 2 + 1], f"run {n}") for n in range(6)}
    table.update(nodes)
    assert len(RunsTable(tmp_path / "runs.db")) == 0
    table.flush()
    assert dict(RunsTable(tmp_path / "runs.db")) == nodes
    del table[bytes(32)]
    there = set(list(nodes)[2:5:2])
    table.sweep(there)
    again = RunsTable(tmp_path / "runs.db")
    assert dict(again) == {digest: nodes[digest] for digest in there}
    [left] = again._connection.execute("SELECT count(*) FROM chunk").fetchall()
    assert left == (1,)


def test_a_table_that_cannot_be_written_says_so_and_is_tried_again(
    tmp_path: Path, table: RunsTable
) -> None:
    table[b"1" * 32] = Node(b"", 16, (), "run")
    other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    other.execute("PRAGMA busy_timeout = 0")
    table._connection.execute("PRAGMA busy_timeout = 0")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DiskError, match=r"cannot write .*runs\.db: database is locked"):
        table.flush()
    with pytest.raises(DiskError, match="database is locked"):
        table.sweep({b"1" * 32})
    other.execute("ROLLBACK")
    table.flush()
    other.execute("INSERT INTO chunk VALUES (x'07', 0, x'5b5d')")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DiskError, match="database is locked"):
        table.sweep({b"1" * 32})
    other.execute("ROLLBACK")
    other.close()
    table.sweep({b"1" * 32})
    assert len(RunsTable(tmp_path / "runs.db")) == 1
