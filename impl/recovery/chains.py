"""Chains: where in its hash chain each object on disk belongs, so that a restart finds it again.

One row an object, in SQLite beside the store. A row is durable before its object is put, and is
removed after it: a crash leaves a row without an object, which says nothing, and never an object
that nobody could place. A row that does not check is no place, and its object is dropped: a wrong
layout would let old bytes pass for fit.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from fivestate.impl.tiers import StoreError
from fivestate.impl.tiers.database import crc, opened
from fivestate.impl.tiers.errors import DiskError
from fivestate.spec.vocabulary import CacheState

VERSION = 1
"""Format of the table; a newer one is refused."""

_TABLE = """
    CREATE TABLE IF NOT EXISTS place (
        name TEXT PRIMARY KEY,
        state TEXT NOT NULL,
        layout INTEGER NOT NULL,
        start_tokens INTEGER NOT NULL,
        parent BLOB NOT NULL,
        digests TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        crc INTEGER NOT NULL
    ) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cell of an object was in its hash chain when it was written.

    Attributes:
        state: the cell's state.
        layout: the epoch of the kernels that wrote it.
        start_tokens: the first token of its segment.
        parent: digest of the chain before the segment; empty where nothing is before it.
        digests: of the chain up to the end of each scheduler block of the segment.
        size_bytes: what the cell's pages take.
    """

    state: CacheState
    layout: int
    start_tokens: int
    parent: bytes
    digests: tuple[bytes, ...]
    size_bytes: int


class Chains:
    """The places of a store's objects; any thread may call it.

    Args:
        path: its file, which is made if there is none.

    Attributes:
        session: which opening of the file this is: names that begin with it are new.

    Raises:
        VersionError: a newer release wrote it.
        DiskError: it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        try:
            self._connection = opened(path, VERSION)
            self.session = self._open()
        except sqlite3.Error as error:
            raise DiskError("open", path, error) from error

    def _open(self) -> int:
        run = self._connection.execute
        run(_TABLE)
        run("CREATE TABLE IF NOT EXISTS opened (times INTEGER NOT NULL)")
        run(f"PRAGMA user_version = {VERSION}")
        (times,) = run("SELECT count(*) FROM opened").fetchone()
        if not times:
            run("INSERT INTO opened VALUES (0)")
        run("UPDATE opened SET times = times + 1")
        (session,) = run("SELECT times FROM opened").fetchone()
        return int(session)

    def keep(self, name: str, place: Place) -> None:
        """Note the place of an object that is about to be put; durable on return.

        Raises:
            DiskError: it cannot be written.
        """
        digests = json.dumps([digest.hex() for digest in place.digests])
        start, size = place.start_tokens, place.size_bytes
        row = name, place.state.name, place.layout, start, place.parent, digests, size
        self._run("INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, crc(row)))

    def forget(self, name: str) -> None:
        """Remove the place of an object; one that stays by mistake says nothing.

        What cannot be removed now is swept at the next opening.
        """
        with suppress(StoreError):
            self._run("DELETE FROM place WHERE name = ?", (name,))

    def places(self, objects: Container[str]) -> dict[str, Place]:
        """Return the places of objects that are there, and sweep the others and what is damaged.

        Raises:
            DiskError: they cannot be read.
        """
        columns = "name, state, layout, start_tokens, parent, digests, size_bytes, crc"
        found: dict[str, Place] = {}
        for *row, check in self._run(f"SELECT {columns} FROM place", ()):  # noqa: S608 -- our own columns
            name, state, layout, start, parent, digests, size = row
            if name in objects and check == crc(row):
                made = tuple(bytes.fromhex(digest) for digest in json.loads(digests))
                found[name] = Place(CacheState[state], layout, start, parent, made, size)
            else:
                self.forget(name)
        return found

    def close(self) -> None:
        """Close the file."""
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    def _run(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        try:
            with self._lock:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise DiskError("write", self._path, error) from error
