"""Runs on disk: how the rows of each block were made, kept beside the rows themselves.

A prefix is a chain of blocks, and a run's digest is a chain over its chunks: so whoever reads a
block here and one before it knows that they belong together, and each copy names its run. A row is
durable before the first copy of its block is written, as in ``recovery.chains``: a crash leaves at
most a row that says nothing.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Container, Iterator, MutableMapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from fivestate.impl.models.provenance import Chunk, Node
from fivestate.impl.tiers.database import opened, transaction
from fivestate.impl.tiers.errors import DiskError, StoreError

LOG = logging.getLogger("fivestate.models")

VERSION = 1
"""Format of the tables; a newer one is refused."""

_DIGEST_BYTES = 32

_TABLES = """
    CREATE TABLE IF NOT EXISTS chunk (
        digest BLOB PRIMARY KEY, start_tokens INTEGER NOT NULL, tokens BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS block (
        digest BLOB PRIMARY KEY, parent BLOB NOT NULL, end_tokens INTEGER NOT NULL,
        chunks BLOB NOT NULL, run BLOB NOT NULL, seal BLOB NOT NULL
    ) WITHOUT ROWID
"""


class RunsTable(MutableMapping[bytes, Node]):
    """A mapping from a block's digest to how it was made, as durable as the last ``flush``.

    What has been damaged is as good as not there: its block is computed again.

    Args:
        path: its file, which is made if there is none.

    Raises:
        VersionError: a newer release wrote it.
        StoreError: it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._nodes: dict[bytes, Node] = {}
        self._changed: dict[bytes, None] = {}
        try:
            self._connection = opened(path, VERSION)
            self._open()
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"cannot open {path}: {error}; delete that file: then all that was stored beside "
                "it is computed again"
            ) from error

    def _open(self) -> None:
        run = self._connection.execute
        self._connection.executescript(_TABLES)
        run(f"PRAGMA user_version = {VERSION}")
        chunks = {
            digest: chunk
            for digest, start, tokens in run("SELECT * FROM chunk")
            if (chunk := _chunk(start, tokens)) is not None and chunk.digest == digest
        }
        bad = 0
        for *fields, seal in run("SELECT * FROM block").fetchall():
            digest, parent, end, named, made = fields
            own = [chunks.get(each) for each in _parts(named)]
            whole = tuple(chunk for chunk in own if chunk is not None)
            if seal == _seal(fields) and len(whole) == len(own):
                self._nodes[digest] = Node(parent, end, whole, made.decode())
            else:
                bad += 1
        if bad:
            LOG.warning("%s: %d blocks do not check: they are computed again", self._path, bad)

    def __getitem__(self, digest: bytes) -> Node:
        return self._nodes[digest]

    def __setitem__(self, digest: bytes, node: Node) -> None:
        self._nodes[digest] = node
        self._changed[digest] = None

    def __delitem__(self, digest: bytes) -> None:
        del self._nodes[digest]
        self._changed[digest] = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def flush(self) -> None:
        """Write what has changed; durable on return.

        Raises:
            DiskError: it cannot be written; it is tried again the next time.
        """
        if not self._changed:
            return
        try:
            with transaction(self._connection):
                for digest in self._changed:
                    self._write(digest, self._nodes.get(digest))
        except sqlite3.Error as error:
            raise DiskError("write", self._path, error) from error
        self._changed.clear()

    def _write(self, digest: bytes, node: Node | None) -> None:
        if node is None:
            self._connection.execute("DELETE FROM block WHERE digest = ?", (digest,))
            return
        for chunk in node.chunks:
            row = chunk.digest, chunk.start, json.dumps(chunk.tokens).encode()
            self._connection.execute("INSERT OR REPLACE INTO chunk VALUES (?, ?, ?)", row)
        named = b"".join(chunk.digest for chunk in node.chunks)
        fields = digest, node.parent, node.end, named, node.run.encode()
        insert = "INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?, ?, ?)"
        self._connection.execute(insert, (*fields, _seal(fields)))

    def sweep(self, there: Container[bytes]) -> None:
        """Forget the blocks of which nothing is there, and the chunks that made no other.

        Raises:
            DiskError: it cannot be written.
        """
        for digest in [digest for digest in self._nodes if digest not in there]:
            del self[digest]
        self.flush()
        used = {chunk.digest for node in self._nodes.values() for chunk in node.chunks}
        try:
            run = self._connection.execute
            rows = run("SELECT digest FROM block").fetchall()
            lost = [row for row in rows if row[0] not in self._nodes]
            self._connection.executemany("DELETE FROM block WHERE digest = ?", lost)
            unused = [row for row in run("SELECT digest FROM chunk") if row[0] not in used]
            self._connection.executemany("DELETE FROM chunk WHERE digest = ?", unused)
        except sqlite3.Error as error:
            raise DiskError("write", self._path, error) from error

    def close(self) -> None:
        """Write what has changed, and close the file."""
        self.flush()
        with suppress(sqlite3.Error):
            self._connection.close()


def _chunk(start: int, tokens: bytes) -> Chunk | None:
    """Return a chunk as it was written, if it can be read."""
    try:
        return Chunk(start, tuple(json.loads(tokens)))
    except (ValueError, TypeError):
        return None


def _parts(named: bytes) -> list[bytes]:
    return [named[at : at + _DIGEST_BYTES] for at in range(0, len(named), _DIGEST_BYTES)]


def _seal(fields: Sequence[object]) -> bytes:
    """256 bits over a row, its key included."""
    return blake2b(repr(tuple(fields)).encode(), digest_size=_DIGEST_BYTES).digest()
