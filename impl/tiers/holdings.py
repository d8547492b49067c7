"""Holdings: what a store has, in memory as in its manifest, in the order of its use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from fivestate.impl.tiers.errors import Missing, StoreError
from fivestate.impl.tiers.folder import Folder
from fivestate.impl.tiers.manifest import Entry
from fivestate.impl.tiers.recency import Recency


@dataclass(frozen=True, slots=True)
class Stats:
    """What a store holds, and what has happened since it was opened.

    Attributes:
        objects, used_bytes, capacity_bytes: what it holds, and may hold.
        puts, gets, missing, dropped, evicted: how often.
        written_bytes, read_bytes: whole files.
        corrupt: objects that did not check when they were read.
        without_file: objects whose file was gone.
        old_weights: objects dropped because other weights made them.
        temporary: files of puts that a crash had cut short.
        orphans: files that the manifest did not name.
        left_behind: files that could not be removed; the next opening tries again.
    """

    objects: int
    used_bytes: int
    capacity_bytes: int
    puts: int = 0
    gets: int = 0
    missing: int = 0
    dropped: int = 0
    evicted: int = 0
    written_bytes: int = 0
    read_bytes: int = 0
    corrupt: int = 0
    without_file: int = 0
    old_weights: int = 0
    temporary: int = 0
    orphans: int = 0
    left_behind: int = 0


class Holdings:
    """The objects of a folder.

    Not safe against threads by itself: its store calls it under a lock of its own. The manifest
    changes first and the files follow, so that no entry is ever without its file.

    Args:
        folder: the open folder.
        recency: where its objects are counted.
        weights: epoch of the weights; what others made is dropped at once.

    Attributes:
        recency: sizes, readers and the order of use.
        counts: what has happened, by the names in `Stats`.
    """

    def __init__(self, folder: Folder, recency: Recency[str], weights: int) -> None:
        self.recency = recency
        self.counts: Counter[str] = Counter()
        self._folder = folder
        self._entries: dict[str, Entry] = {}
        self._uses: dict[str, Entry] = {}  # not durable yet: they go with the next commit
        found = folder.manifest.entries()
        self._number = max((max(entry.sequence, entry.used) for entry in found), default=0)
        for entry in found:
            self._add(entry)
        self.drop_other_weights(weights)
        lost, swept = folder.sweep(self._entries.values())
        self.counts.update(swept)
        self.remove(lost, "without_file")
        self.remove([self._entries[key] for key in recency.excess()], "evicted")

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def next_number(self) -> int:
        """Return a number above all before it, over restarts too."""
        self._number += 1
        return self._number

    def entry(self, key: str) -> Entry:
        """Return what there is of a key.

        Raises:
            Missing: nothing.
        """
        if key not in self._entries:
            self.counts["missing"] += 1
            raise Missing(key)
        return self._entries[key]

    def use(self, entry: Entry) -> None:
        """Note that an object was read."""
        self.counts.update(gets=1, read_bytes=entry.size_bytes)
        if entry.key in self._entries:
            self.recency.touch(entry.key)
            used = replace(self._entries[entry.key], used=self.next_number())
            self._entries[entry.key] = self._uses[entry.key] = used

    def acknowledge(self, entry: Entry) -> list[str]:
        """Take an object up whose file is durable, and return the keys evicted for it.

        Raises:
            TooLargeError: it is larger than the capacity.
            FullError: what could be evicted is being read.
            DiskError: the manifest cannot be written.
        """
        evicted = self.recency.victims(entry.key, entry.size_bytes)
        uses = [used for key, used in self._uses.items() if key not in evicted]
        self._folder.manifest.commit(remove=evicted, add=[*uses, entry])
        self._uses.clear()
        gone = [entry.key, *evicted] if entry.key in self._entries else evicted
        for key in gone:
            self._let_go(self._entries[key])
        self._add(entry)
        self.counts.update(puts=1, written_bytes=entry.size_bytes, evicted=len(evicted))
        return evicted

    def remove(self, entries: Iterable[Entry], reason: str) -> None:
        """Remove objects, and count them under ``reason``.

        Raises:
            DiskError: the manifest cannot be written.
        """
        gone = list(entries)
        if gone:
            self._folder.manifest.commit(remove=[entry.key for entry in gone])
        for entry in gone:
            self._let_go(entry)
        self.counts[reason] += len(gone)

    def forget(self, entry: Entry, reason: str) -> None:
        """Remove what turned out to be of no use, whoever else reads it and whatever fails."""
        known = self._entries.get(entry.key)
        if known is None or known.sequence != entry.sequence:
            return
        with suppress(StoreError):  # where nothing can be written, the next reading finds it
            self._folder.manifest.commit(remove=[entry.key])
        self._let_go(entry)
        self.counts[reason] += 1

    def drop_other_weights(self, weights: int) -> None:
        """Remove what other weights made.

        Raises:
            HeldError: a load reads some of it.
            DiskError: the manifest cannot be written.
        """
        stale = [entry for entry in self._entries.values() if entry.weights != weights]
        for entry in stale:
            self.recency.require_unheld(entry.key)
        self.remove(stale, "old_weights")

    def stats(self) -> Stats:
        """Return what there is and what has happened."""
        recency = self.recency
        return Stats(len(self), recency.used_bytes, recency.capacity_bytes, **self.counts)

    def close(self) -> None:
        """Write the order of use down, and close the folder."""
        with suppress(StoreError):  # only the order of eviction is lost
            self._folder.manifest.commit(add=self._uses.values())
        self._folder.close()

    def _add(self, entry: Entry) -> None:
        self._entries[entry.key] = entry
        self.recency.add(entry.key, entry.size_bytes)

    def _let_go(self, entry: Entry) -> None:
        """Forget an entry that the manifest no longer has, and remove its file."""
        del self._entries[entry.key]
        self._uses.pop(entry.key, None)
        self.recency.remove(entry.key)
        self.counts["left_behind"] += not self._folder.remove(entry)
