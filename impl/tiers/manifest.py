"""The manifest: which objects a folder has acknowledged, in SQLite.

Write-ahead log with synchronous=FULL: a transaction that has returned survives a loss of power.
In exclusive mode SQLite needs no shared memory beside its file and its log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self

from fivestate.impl.tiers.database import crc, transaction
from fivestate.impl.tiers.errors import DiskError, ManifestError, VersionError
from fivestate.impl.tiers.object_file import FORMAT, Label

APPLICATION = 0x46_69_53_74
"""What says in SQLite's header that a file is one of these."""

CHECKPOINT_PAGES = 1000
"""Pages after which the log is written back: it keeps the log, and so an opening, short."""

_FOLDER = "CREATE TABLE folder (geometry TEXT NOT NULL)"
_OBJECT = """
    CREATE TABLE object (
        key TEXT PRIMARY KEY,
        sequence INTEGER NOT NULL,
        size_bytes INTEGER NOT NULL,
        seal TEXT NOT NULL,
        layout TEXT NOT NULL,
        weights INTEGER NOT NULL,
        used INTEGER NOT NULL,
        crc INTEGER NOT NULL
    ) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the manifest says of one object.

    Attributes:
        key: key of the object.
        sequence: number of the put that wrote it; with the key it gives the file's name.
        size_bytes: length of the file, its header included.
        seal: digest of the header, which has the digests of all else.
        layout, weights: the identity it was written under.
        used: number of its last use; only the order of these numbers means anything.
    """

    key: str
    sequence: int
    size_bytes: int
    seal: str
    layout: str
    weights: int
    used: int

    @classmethod
    def of(cls, label: Label, size_bytes: int, seal: str) -> Self:
        """Return the entry of an object that has just been put."""
        number = label.sequence
        return cls(label.key, number, size_bytes, seal, label.layout, label.weights, number)

    def label(self, geometry: str) -> Label:
        """Return what the header of its file says."""
        return Label(self.key, self.sequence, geometry, self.layout, self.weights)


_SELECT = "SELECT * FROM object ORDER BY used"
_INSERT = "INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class Manifest:
    """An open manifest.

    Not safe against threads by itself: its store calls it under a lock of its own.

    Args:
        path: its file.

    Attributes:
        geometry: fingerprint of the geometry of all its objects.

    Raises:
        VersionError: a newer release wrote it.
        ManifestError: there is none, it is damaged, or it is not one of ours.
        DiskError: the system refuses to read or write it.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise ManifestError(path, "there is none")
        self._path = path
        with _translated("open", path):
            self._connection = _connect(path)
        try:
            with _translated("open", path):
                self.geometry = self._check()
                _keep_log(self._connection)
        except BaseException:
            self._connection.close()
            raise

    @staticmethod
    def create(path: Path, geometry: str, entries: Iterable[Entry] = ()) -> None:
        """Write a whole manifest where there is none; it has a name of its own until it is synced.

        Raises:
            DiskError: the system refuses to write it.
        """
        with _translated("make", path), closing(_connect(path)) as connection:
            _keep_log(connection)
            with transaction(connection):
                connection.execute(_FOLDER)
                connection.execute(_OBJECT)
                connection.execute("INSERT INTO folder VALUES (?)", (geometry,))
                connection.executemany(_INSERT, map(_row, entries))
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")

    def entries(self) -> list[Entry]:
        """Return all entries, the least recently used first.

        Raises:
            ManifestError: they cannot be read, or are not what was written.
        """
        with _translated("read", self._path):
            found = self._connection.execute(_SELECT).fetchall()
        for *row, check in found:
            if check != crc(row):
                raise ManifestError(self._path, f"a row does not check: {row!r}")
        return [Entry(*row) for *row, _ in found]

    def commit(
        self,
        *,
        add: Iterable[Entry] = (),
        remove: Iterable[str] = (),
    ) -> None:
        """Remove entries, then add or replace some: all of it durable on return, or none of it.

        Raises:
            DiskError: it cannot be written; nothing has changed.
        """
        run = self._connection.executemany
        with _translated("write", self._path), transaction(self._connection):
            run("DELETE FROM object WHERE key = ?", [(key,) for key in remove])
            run(_INSERT, map(_row, add))

    def close(self) -> None:
        """Write the log back and close."""
        with suppress(sqlite3.Error):  # what is in the log is as durable as what is written back
            self._connection.close()

    def _check(self) -> str:
        """Return the geometry of a manifest that is ours and whole."""
        damage = _ask(self._connection, "PRAGMA quick_check(1)")
        if damage != "ok":
            raise ManifestError(self._path, " ".join(str(damage).split()))
        if _ask(self._connection, "PRAGMA application_id") != APPLICATION:
            raise ManifestError(self._path, "it is not one of this program's")
        version = _ask(self._connection, "PRAGMA user_version")
        if version > FORMAT:
            raise VersionError(self._path.parent, version, FORMAT)
        geometry = _ask(self._connection, "SELECT geometry FROM folder")
        if not isinstance(geometry, str):
            raise ManifestError(self._path, f"its geometry is {geometry!r}")
        return geometry


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    return connection


def _keep_log(connection: sqlite3.Connection) -> None:
    """Turn the durable write-ahead log on."""
    mode = _ask(connection, "PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise sqlite3.OperationalError(f"no write-ahead log here: journal_mode is {mode!r}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")


def _row(entry: Entry) -> tuple[object, ...]:
    row = astuple(entry)
    return (*row, crc(row))


def _ask(connection: sqlite3.Connection, question: str) -> Any:
    row = connection.execute(question).fetchone()
    return row[0] if row else None


@contextmanager
def _translated(verb: str, path: Path) -> Iterator[None]:
    """Say what SQLite finds in the words of a tier: damage, or a refusal of the system."""
    try:
        yield
    except UnicodeDecodeError as error:  # in what SQLite quotes of the database
        raise ManifestError(path, str(error)) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}:
            raise ManifestError(path, str(error)) from error
        raise DiskError(verb, path, error) from error
