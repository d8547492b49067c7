"""Output files: whole or not at all, and refused before a search that would be in vain."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fivestate.spec.language.errors import ModelError


def refuse_unwritable(path: Path) -> None:
    """Check, before the work is done, that ``path`` can be written.

    Raises:
        ModelError: it cannot.
    """
    folder = path.parent
    if path.is_dir():
        raise ModelError(f"cannot write {path}: it is a folder")
    if _is_device(path):
        return
    if not folder.is_dir():
        raise ModelError(f"cannot write {path}: there is no folder {folder}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ModelError(f"cannot write {path}: {error.strerror or error}") from None


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` beside ``path`` and put it in place at once; into a device, directly.

    Raises:
        ModelError: it cannot be written; nothing is left behind.
    """
    handle, name = -1, ""
    try:
        if _is_device(path):
            path.write_text(text, encoding="utf-8")
            return
        path = path.resolve()  # behind a link is what is meant
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise ModelError(f"cannot write {path}: {error.strerror or error}") from None


def _is_device(path: Path) -> bool:
    """Say whether ``path`` is there and is no file, such as ``/dev/stdout``."""
    return path.exists() and not path.is_file() and not path.is_dir()
