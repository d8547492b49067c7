"""A store's folder: its lock, its manifest, and its object files.

An object goes to a temporary file, which is synced, renamed, and its folder synced; only then may
the manifest take it up. So a crash leaves a file that the manifest does not name, or a name
without a file, and never half an object that anybody would look for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from fivestate.impl.tiers.digest import Vouched
from fivestate.impl.tiers.errors import DiskError, GeometryError, ManifestError
from fivestate.impl.tiers.files import Files
from fivestate.impl.tiers.lock import FolderLock
from fivestate.impl.tiers.manifest import Entry, Manifest
from fivestate.impl.tiers.object_file import (
    READ_AHEAD_BYTES,
    Encoded,
    Header,
    Unreadable,
    read_header,
    read_tensors,
)
from fivestate.impl.tiers.tensors import Tensors

_MANIFEST, _REBUILT, _REPLACED = "manifest.db", "manifest.rebuilt", "manifest.replaced"
_OBJECTS, _LOCK = "objects", "lock"
_SUFFIX, _TEMPORARY = ".safetensors", ".tmp"
_OURS = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}\.safetensors(\.tmp)?")


class Folder:
    """An open folder, locked against everybody else.

    Args:
        path: the folder, which is made if there is none.
        geometry: fingerprint that it must have.
        files: the operations on objects.

    Raises:
        LockedError: somebody else has it open.
        GeometryError: it is of another geometry.
        VersionError: a newer release wrote it.
        ManifestError: its manifest is damaged or gone.
        DiskError: the system refuses to read or write it.
    """

    def __init__(self, path: Path, geometry: str, files: Files) -> None:
        self.path, self.files = path, files
        self._objects = path / _OBJECTS
        with translated("make", self._objects):
            _make(self._objects, files)
        with ExitStack() as undo:
            self._lock = FolderLock(path / _LOCK)
            undo.callback(self._lock.release)
            if not (path / _MANIFEST).exists() and not self._has_objects():
                _install(path, geometry, [], files)
            self.manifest = Manifest(path / _MANIFEST)
            undo.callback(self.manifest.close)
            self._require_geometry(geometry)
            undo.pop_all()

    def sweep(self, entries: Iterable[Entry]) -> tuple[list[Entry], Counter[str]]:
        """Remove the files that no entry names, and return the entries that have none.

        It looks at names only, so its time does not grow with the bytes in the folder.

        Raises:
            DiskError: the folder cannot be listed.
        """
        with translated("list", self._objects):
            names = {name for name in self.files.names(self._objects) if _OURS.fullmatch(name)}
        files = {self.file(entry).name: entry for entry in entries}
        counts: Counter[str] = Counter()
        for name in sorted(names - files.keys()):
            counts["temporary" if name.endswith(_TEMPORARY) else "orphans"] += 1
            counts["left_behind"] += not self._remove(self._objects / name)
        return [entry for name, entry in files.items() if name not in names], counts

    def file(self, entry: Entry) -> Path:
        """Return where an object's file is; every put has a name of its own."""
        key = sha256(entry.key.encode()).hexdigest()[:32]
        return self._objects / f"{key}-{entry.sequence:016x}{_SUFFIX}"

    def write(self, entry: Entry, encoded: Encoded) -> None:
        """Write an object's file; on return it is durable, and nothing names it yet.

        Raises:
            DiskError: it cannot be written; nothing is left of it.
        """
        final = self.file(entry)
        temporary = final.with_name(final.name + _TEMPORARY)
        try:
            with translated("write", temporary):
                descriptor = self.files.create(temporary)
                try:
                    self.files.write(descriptor, encoded.pieces)
                    self.files.sync(descriptor)
                finally:
                    self.files.close(descriptor)
                self.files.rename(temporary, final)
                self.files.sync_directory(self._objects)
        except BaseException:
            self._remove(temporary)
            self._remove(final)
            raise

    def open(self, entry: Entry) -> int:
        """Open an object's file for reading and return its descriptor.

        Raises:
            FileNotFoundError: it is gone.
            DiskError: the system refuses.
        """
        path = self.file(entry)
        try:
            return self.files.open(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DiskError("open", path, error) from error

    def read(self, entry: Entry, descriptor: int, into: Tensors | None, pool: Executor) -> Vouched:
        """Read and check an object from its open file, and close that.

        Args:
            entry: what the manifest says of it.
            descriptor: what `open` has returned.
            into: tensors to read into; new ones by default.
            pool: threads that read and check side by side.

        Raises:
            Unreadable: it does not check, or is another object's.
            DiskError: the system cannot read it.
            ValueError: ``into`` does not fit it.
        """
        try:
            with translated("read", self.file(entry)):
                self.files.will_read(descriptor, 0, READ_AHEAD_BYTES)
                header = read_header(self.files, descriptor)
                expected = entry.label(self.manifest.geometry)
                if (header.label, header.seal) != (expected, entry.seal):
                    raise Unreadable(f"it is another object's file: {header.label}")
                return read_tensors(self.files, descriptor, header, into, pool)
        finally:
            self.files.close(descriptor)

    def remove(self, entry: Entry) -> bool:
        """Remove an object's file, and say whether that was possible."""
        return self._remove(self.file(entry))

    def close(self) -> None:
        """Close the manifest and give the lock back."""
        self.manifest.close()
        self._lock.release()

    def _has_objects(self) -> bool:
        with translated("list", self._objects):
            return any(_is_object(name) for name in self.files.names(self._objects))

    def _require_geometry(self, geometry: str) -> None:
        if self.manifest.geometry != geometry:
            raise GeometryError(self.path, self.manifest.geometry, geometry)

    def _remove(self, path: Path) -> bool:
        try:
            self.files.unlink(path)
        except OSError:
            return False
        return True


def rebuild(path: Path, files: Files) -> tuple[int, list[Path]]:
    """Make a folder's manifest again; `Store.rebuild` says what it returns and raises.

    A header is taken only if it agrees with its seal, and of two objects of one key the later;
    contents are checked when they are read, as ever. An object that was dropped just before a
    crash may come back: what it says is true all the same, because a key names one content.
    """
    lock = FolderLock(path / _LOCK)
    try:
        newest: dict[str, Header] = {}
        unreadable = []
        objects = path / _OBJECTS
        with translated("list", objects):
            names = sorted(name for name in files.names(objects) if _is_object(name))
        for name in names:
            header = _header(objects / name, files)
            if header is None:
                unreadable.append(objects / name)
                continue
            other = newest.setdefault(header.label.key, header)
            newest[header.label.key] = max(header, other, key=lambda each: each.label.sequence)
        geometries = {header.label.geometry for header in newest.values()}
        if len(geometries) > 1:
            message = f"its objects are of {len(geometries)} geometries"
            raise ManifestError(path / _MANIFEST, message)
        entries = [Entry.of(each.label, each.size_bytes, each.seal) for each in newest.values()]
        _install(path, min(geometries, default=None), entries, files)
    finally:
        lock.release()
    return len(newest), unreadable


def _header(path: Path, files: Files) -> Header | None:
    with translated("read", path):
        descriptor = files.open(path)
        try:
            return read_header(files, descriptor)
        except Unreadable:
            return None
        finally:
            files.close(descriptor)


def _install(path: Path, geometry: str | None, entries: list[Entry], files: Files) -> None:
    """Put a new manifest in the place of the one there is, if any; without a geometry, none.

    Between the old one and the new one there is none, which an opening refuses where there are
    objects: an old manifest without its log would look whole, and newer objects like orphans.
    """
    rebuilt, current = path / _REBUILT, path / _MANIFEST
    with translated("replace", current):
        _discard(rebuilt, files)
        if geometry is not None:
            Manifest.create(rebuilt, geometry, entries)
        if current.exists():
            files.rename(current, path / _REPLACED)
        _discard(current, files)
        files.sync_directory(path)
        if geometry is not None:
            files.rename(rebuilt, current)
            files.sync_directory(path)


def _discard(manifest: Path, files: Files) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        files.unlink(manifest.with_name(manifest.name + suffix))


def _is_object(name: str) -> bool:
    return _OURS.fullmatch(name) is not None and not name.endswith(_TEMPORARY)


def _make(path: Path, files: Files) -> None:
    """Make a folder and those above it, durably."""
    if not path.is_dir():
        _make(path.parent, files)
        with suppress(FileExistsError):
            path.mkdir()
        if not path.is_dir():
            raise NotADirectoryError(20, "it is not a folder")
        files.sync_directory(path.parent)


@contextmanager
def translated(verb: str, path: Path) -> Iterator[None]:
    """Turn what the system says into a `DiskError` that names what was being done."""
    try:
        yield
    except OSError as error:
        raise DiskError(verb, path, error) from error
