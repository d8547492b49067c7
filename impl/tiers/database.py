"""SQLite beside the objects: what the manifest and the tables of others do in the same way."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fivestate.impl.tiers.errors import VersionError


def opened(path: Path, version: int) -> sqlite3.Connection:
    """Open a file whose rows are durable when a statement returns, or make it.

    Raises:
        VersionError: a newer release wrote it.
        sqlite3.Error: it cannot be opened, or is none.
    """
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > version:
        raise VersionError(path, found, version)
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Take all statements within together, or none of them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def crc(row: Iterable[object]) -> int:
    """Return what SQLite, which checks its log and not its pages, does not keep of a row."""
    return zlib.crc32(repr(tuple(row)).encode(errors="surrogatepass"))
