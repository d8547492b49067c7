"""Ctrl-C: the first stops a search and keeps what it has covered, the second leaves at once.

What has nothing to keep leaves at the first.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
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

    with _handled_by(handle):
        yield interrupted


@contextmanager
def leaving_at_once() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C raise ``KeyboardInterrupt``, and give what raises it again if it was lost.

    Python drops an exception that is raised while an object is finalized or a callback runs, and
    with it the interruption; so whoever works for minutes calls what is given now and then.
    """
    interrupted = False

    def handle(signum: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        del signum, frame
        interrupted = True
        raise KeyboardInterrupt

    def look() -> None:
        if interrupted:
            raise KeyboardInterrupt

    with _handled_by(handle):
        yield look


@contextmanager
def _handled_by(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
