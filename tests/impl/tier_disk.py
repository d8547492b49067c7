"""A disk that loses power: what may be left of a folder at each moment of a run.

`Recorder` notes every operation on object files, and before and after every commit what the
manifest's database and its log hold. `crash_states` then enumerates folders a crash may leave:

* **Object files.** What is in a file is safe once the file is synced. Before that its length and
  its bytes are open: nothing, half, all of it, the length with zeros in all or half, a wrong bit.
* **Names.** A created, renamed or removed name is safe once its folder is synced. Before that any
  part of what was done may be missing, in any order where the operations are few, or else all
  from some point on, or any single one. A rename happens or does not: that much POSIX promises.
  A file's own sync does not save its name, although Linux file systems do more than that.
* **The manifest.** What a crash may leave of it within a commit stands in `tier_sqlite.py`.

A folder's state is a mapping from relative paths to contents. One that comes again counts again
only where more has been promised by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path

import pytest
from tests.impl.tier_sqlite import DATABASE, LOG, State, torn_commits
from tests.impl.tier_workload import Marks, Step

from fivestate.impl.tiers.manifest import Manifest


@dataclass(frozen=True)
class Event:
    """One thing that was done to the folder.

    Attributes:
        kind: what; for files the name of the method of `Files`.
        path: relative to the folder; of a rename, the old one.
        other: of a rename, the new one.
        content: of a write, the bytes.
        before, after: of a commit, the database and its log.
        step: of a mark, the step of the workload that begins, or has been acknowledged.
        done: of a mark, which of the two.
    """

    kind: str
    path: str = ""
    other: str = ""
    content: bytes = b""
    before: State = field(default_factory=dict)
    after: State = field(default_factory=dict)
    step: Step | None = None
    done: bool = False


class Recorder(Marks):
    """Files that note what was done, under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[Event] = []
        self._open: dict[int, str] = {}

    def mark(self, step: Step, *, done: bool) -> None:
        """Note how far the workload is."""
        self.events.append(Event("mark", step=step, done=done))

    def create(self, path: Path) -> int:
        """Note that a file was created."""
        descriptor = super().create(path)
        self._open[descriptor] = self._name(path)
        self._note("create", path)
        return descriptor

    def write(self, descriptor: int, pieces: Sequence[memoryview]) -> None:
        """Note what was written."""
        super().write(descriptor, pieces)
        written = b"".join(pieces)
        self.events.append(Event("write", self._open[descriptor], content=written))

    def sync(self, descriptor: int) -> None:
        """Note a sync, which no test needs to wait for."""
        self.events.append(Event("sync", self._open[descriptor]))

    def rename(self, old: Path, new: Path) -> None:
        """Note a new name; a manifest comes with it, which SQLite wrote and synced."""
        super().rename(old, new)
        whole = new.read_bytes() if new.name == DATABASE else b""
        self.events.append(Event("rename", self._name(old), self._name(new), whole))

    def unlink(self, path: Path) -> None:
        """Note that a name was removed."""
        super().unlink(path)
        self._note("unlink", path)

    def sync_directory(self, path: Path) -> None:
        """Note a sync, which no test needs to wait for."""
        if path.is_relative_to(self.root):
            self._note("sync_directory", path)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def _note(self, kind: str, path: Path) -> None:
        self.events.append(Event(kind, self._name(path)))

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Note every commit to the manifest, and its closing, from now on."""
        for name in ("commit", "close"):
            patch.setattr(Manifest, name, self._watched(getattr(Manifest, name)))

    def _watched(self, method: Callable[..., None]) -> Callable[..., None]:
        def run(manifest: Manifest, **arguments: object) -> None:
            before = picture(self.root)
            method(manifest, **arguments)
            self.events.append(Event("commit", before=before, after=picture(self.root)))

        return run


class NoSync(Recorder):
    """A recorder of a store that never syncs a file: what the enumeration must find."""

    def sync(self, descriptor: int) -> None:
        """Do nothing."""


class NoDirectorySync(Recorder):
    """A recorder of a store that never syncs a folder: what the enumeration must find."""

    def sync_directory(self, path: Path) -> None:
        """Do nothing."""


def picture(root: Path) -> State:
    """Return the manifest's database and its log as they are."""
    return {name: (root / name).read_bytes() for name in (DATABASE, LOG) if (root / name).exists()}


@dataclass(eq=False)
class Inode:
    """A file: what is in it, and what of that is safe."""

    content: bytes = b""
    safe: bytes | None = None

    def possible(self) -> list[bytes]:
        """Return what may be in it after a crash."""
        whole = self.content
        if self.safe == whole:
            return [whole]
        half = whole[: len(whole) // 2]
        zeros = bytes(len(whole))
        flipped = whole[:-1] + bytes([whole[-1] ^ 1]) if whole else b""
        return [self.safe or b"", whole, half, zeros, half + zeros[len(half) :], flipped]


@dataclass(frozen=True, eq=False)
class Naming:
    """A change of names: `name` now means `inode`, or nothing, and `old` means nothing."""

    name: str
    inode: Inode | None
    old: str = ""

    @property
    def folder(self) -> str:
        """The folder whose sync makes it safe."""
        return str(Path(self.name).parent)


Names = dict[str, Inode]


def apply(names: Names, changes: Iterable[Naming]) -> Names:
    """Return the names after some changes, each of which may come without those before it."""
    result = dict(names)
    for change in changes:
        result.pop(change.old, None)
        result.pop(change.name, None)
        if change.inode is not None:
            result[change.name] = change.inode
    return result


@dataclass
class Disk:
    """What is on the disk for certain, and what has been done since."""

    names: Names = field(default_factory=dict)
    pending: list[Naming] = field(default_factory=list)
    database: State = field(default_factory=dict)

    def do(self, event: Event) -> None:
        """Take one event in."""
        now = apply(self.names, self.pending)
        match event.kind:
            case "create":
                self.pending.append(Naming(event.path, Inode()))
            case "write":
                now[event.path].content += event.content
            case "sync":
                now[event.path].safe = now[event.path].content
            case "rename":
                whole = Inode(event.content, event.content) if event.content else now[event.path]
                self.pending.append(Naming(event.other, whole, event.path))
            case "unlink" if event.path in now:
                self.pending.append(Naming(event.path, None))
            case "sync_directory":
                safe = [change for change in self.pending if change.folder == event.path]
                self.names = apply(self.names, safe)
                self.pending = [change for change in self.pending if change not in safe]
            case "commit":
                self.database = event.after
            case _:
                pass

    def states(self, databases: Iterable[State]) -> Iterator[State]:
        """Yield what a crash may leave, with each of some manifests."""
        for database, names in product(databases, list(self._possible_names())):
            for contents in product(*(inode.possible() for inode in names.values())):
                state = dict(zip(names, contents, strict=True))
                yield state | database if DATABASE in state else state

    def _possible_names(self) -> Iterator[Names]:
        count = len(self.pending)
        everything = range(count)
        if count <= 4:
            chosen = [set(some) for n in range(5) for some in combinations(everything, n)]
        else:
            chosen = [set(range(n)) for n in range(count + 1)]
            chosen += [set(everything) - {one} for one in everything]
        for some in chosen:
            yield apply(self.names, [change for n, change in enumerate(self.pending) if n in some])


def crash_states(
    events: Sequence[Event], start: State | None = None
) -> Iterator[tuple[int, State]]:
    """Yield each state that a crash may leave, with the number of events it comes after.

    A state that comes again is yielded again only if more marks lie before it. ``start`` is what
    the disk had, safely, before the first event.
    """
    disk = Disk({name: Inode(content, content) for name, content in (start or {}).items()})
    marks = 0
    seen: set[int] = set()
    for count, event in enumerate([Event("start"), *events]):
        torn = disk.states(torn_commits(event.before, event.after))
        found = [(count - 1, state) for state in torn]
        marks += event.kind == "mark"
        disk.do(event)
        found += [(count, state) for state in disk.states([disk.database])]
        for at, state in found:
            mark = hash((marks, frozenset(state.items())))
            if mark not in seen:
                seen.add(mark)
                yield at, state
