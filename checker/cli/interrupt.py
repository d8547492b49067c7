"""Ctrl-C: the first stops a search and keeps what it has covered, the second leaves at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C sets; a second Ctrl-C raises ``KeyboardInterrupt``."""
    interrupted = threading.Event()

    def handle(signum: int, frame: FrameType | None) -> None:
        del signum, frame
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
