"""Compiled code that outlives a process, kept where nothing stale can be found.

An entry's name is the digest of everything the code depends on, so a changed specification asks
for another entry. An entry starts with the digest of the rest: one that was damaged is as good as
none. Entries are written aside and renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

DIRECTORY = "FIVESTATE_CACHE_DIR"
"""The environment variable that says where compiled code is kept."""

MAX_ENTRIES = 256
_SUFFIX = ".object"
_NAME = ".name"


def directory() -> Path:
    """Return where compiled code is kept: one place for each user."""
    chosen = os.environ.get(DIRECTORY)
    if chosen:
        return Path(chosen)
    around = os.environ.get("XDG_CACHE_HOME")
    return (Path(around) if around else Path.home() / ".cache") / "fivestate"


def load(key: str) -> bytes | None:
    """Return the entry, or nothing if there is none or it is damaged."""
    try:
        content = (directory() / (key + _SUFFIX)).read_bytes()
    except (OSError, RuntimeError):  # no such entry, no right to read it, no home
        return None
    size = hashlib.sha256().digest_size
    digest, code = content[:size], content[size:]
    return code if hashlib.sha256(code).digest() == digest else None


def save(key: str, code: bytes) -> str:
    """Write the entry and return why that is not possible, or nothing."""
    try:
        folder = directory()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(folder / (key + _SUFFIX), hashlib.sha256(code).digest() + code)
        _drop_oldest(folder, _SUFFIX)
    except (OSError, RuntimeError) as error:
        return f"compiled code is not kept: {error}"
    return ""


def load_name(key: str) -> str | None:
    """Return the name of an entry that was kept under ``key``, or nothing."""
    try:
        name = (directory() / (key + _NAME)).read_text(encoding="ascii")
    except (OSError, RuntimeError, UnicodeDecodeError):
        return None
    size = 2 * hashlib.sha256().digest_size
    return name if len(name) == size and set(name) <= set("0123456789abcdef") else None


def save_name(key: str, name: str) -> None:
    """Keep the name of an entry under ``key``, if that is possible."""
    with suppress(OSError, RuntimeError):
        _write(directory() / (key + _NAME), name.encode())
        _drop_oldest(directory(), _NAME)


def _write(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _drop_oldest(folder: Path, suffix: str) -> None:
    entries = sorted(folder.glob(f"*{suffix}"), key=lambda path: path.stat().st_mtime)
    for path in entries[:-MAX_ENTRIES]:
        path.unlink(missing_ok=True)
