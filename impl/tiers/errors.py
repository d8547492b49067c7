"""What a tier answers when it cannot do what it was asked; nothing has changed then."""

from __future__ import annotations

from pathlib import Path


class StoreError(Exception):
    """A tier refuses or fails; but for `Corrupt`, what it holds is as it was before the call."""


class Missing(StoreError, KeyError):  # noqa: N818 -- an answer, not an error: a clean miss
    """The tier has no object of this key."""

    def __init__(self, key: object, reason: str = "there is none") -> None:
        super().__init__(f"object {key!r}: {reason}")
        self.key = key

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show it quoted


class Corrupt(StoreError, ValueError):  # noqa: N818 -- an answer, not an error: it does not check
    """What the tier holds of this key does not check; it has been dropped and is never served."""

    def __init__(self, key: object, reason: str) -> None:
        super().__init__(f"object {key!r} does not check: {reason}; it has been dropped")
        self.key, self.reason = key, reason


class TooLargeError(StoreError):
    """The object is larger than the whole tier."""

    def __init__(self, key: object, size_bytes: int, capacity_bytes: int) -> None:
        super().__init__(
            f"object {key!r}: {size_bytes:,} bytes are more than capacity_bytes = "
            f"{capacity_bytes:,}"
        )


class FullError(StoreError):
    """There is no room, and what could be evicted is being read."""

    def __init__(self, key: object, size_bytes: int, held_bytes: int, capacity_bytes: int) -> None:
        super().__init__(
            f"object {key!r}: no room for {size_bytes:,} bytes: of capacity_bytes = "
            f"{capacity_bytes:,}, loads read {held_bytes:,}"
        )


class HeldError(StoreError):
    """The object is being read by a load, so it is not dropped."""

    def __init__(self, key: object, readers: int) -> None:
        super().__init__(f"object {key!r} is not dropped: loads that read it = {readers}")


class ClosedError(StoreError):
    """The tier has been closed."""

    def __init__(self, what: object) -> None:
        super().__init__(f"{what} is closed")


class DiskError(StoreError):
    """The operating system refused an operation: no space, no permission, a broken disk."""

    def __init__(self, operation: str, path: Path, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        super().__init__(f"cannot {operation} {path}: {reason}")


class LockedError(StoreError):
    """Another process, or another `Store` of this one, has the folder open."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is in use by process {holder}; one store at a time may open it")


class GeometryError(StoreError):
    """The folder holds cells of another model geometry."""

    def __init__(self, path: Path, theirs: str, ours: str) -> None:
        super().__init__(f"{path} is of geometry {theirs!r}, not {ours!r}; use another folder")


class VersionError(StoreError):
    """A newer release wrote the folder."""

    def __init__(self, path: Path, theirs: int, ours: int) -> None:
        super().__init__(
            f"{path} has format {theirs}, and this release reads {ours}: open it with the release "
            f"that wrote it, or use another folder"
        )


class ManifestError(StoreError):
    """The manifest cannot be read, so nothing in the folder can be vouched for."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: the manifest cannot be used ({reason}); Store.rebuild makes it again from "
            f"the objects' own headers, or delete the folder"
        )
