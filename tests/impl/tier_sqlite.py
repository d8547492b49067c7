"""What a crash may leave of SQLite's database and log, between two pictures of them.

SQLite's own operations do not pass through `Files`, so they are modelled by what its file format
promises; their order is seen in `test_tiers_processes.py`, with strace. A commit appends frames to
the log and syncs it before it returns; a checkpoint writes pages back only after that, and the log
begins again, from its first byte, only after the pages are synced. Between the picture before and
the picture after a commit lie: the log's header alone, every number of new frames, the last of them
cut in half, all but one, every other one; then, with the whole log there, the same of the pages
that are written back. A manifest that is being made has another name, and an opening removes it
whatever is in it, so its inside is not enumerated.
What is trusted, and not tested, is that the disk keeps what SQLite has synced, and that SQLite's
checksums tell an old frame from a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

State = dict[str, bytes]
"""What a folder holds: contents by relative path."""

DATABASE, LOG = "manifest.db", "manifest.db-wal"
LOG_HEADER_BYTES, FRAME_BYTES, PAGE_BYTES = 32, 24 + 4096, 4096


def torn_commits(before: State, after: State) -> Iterator[State]:
    """Yield what may be left of the manifest by a crash within a commit, or within its closing."""
    if before == after:
        return
    yield before
    old, new = before.get(LOG, b""), after.get(LOG, b"")
    if LOG in after:
        for log in between(old, new, list(frames(len(new)))):
            yield before | {LOG: log}
    else:
        new = old  # it is removed last, when all is written back
        yield {DATABASE: after[DATABASE], LOG: b""}
    pages = [(at, at + PAGE_BYTES) for at in range(0, len(after[DATABASE]), PAGE_BYTES)]
    for database in between(before[DATABASE], after[DATABASE], pages):
        yield {DATABASE: database, LOG: new}


def between(old: bytes, new: bytes, units: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Yield what a file may be while some of its units change, which the disk takes in any order.

    The first few, the last of these cut in half; all but one; every other one.
    """
    changed = [(start, end) for start, end in units if old[start:end] != new[start:end]]
    chosen = [changed[:count] for count in range(1, len(changed) + 1)]
    halves = [[*some[:-1], (some[-1][0], sum(some[-1]) // 2)] for some in chosen]
    missing = [[unit for unit in changed if unit is not one] for one in changed[1:]]
    for some in [*chosen, *halves, *missing, changed[::2], changed[1::2]]:
        content = bytearray(old)
        for start, end in some:
            content.extend(bytes(max(0, end - len(content))))
            content[start:end] = new[start:end]
        yield bytes(content)


def frames(size_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield where a log's header and its frames are."""
    yield 0, LOG_HEADER_BYTES
    for start in range(LOG_HEADER_BYTES, size_bytes, FRAME_BYTES):
        yield start, start + FRAME_BYTES
