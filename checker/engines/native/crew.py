"""Workers that do the same task, each its share, and meet at its end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Task = Callable[[int], None]


class Crew:
    """Threads that are started once; the caller's own thread is worker 0.

    Native calls let the other threads run, so tasks that consist of them use every core.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._orders: list[queue.SimpleQueue[Task | None]] = []
        self._done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for number in range(1, self.workers):
            orders: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
            thread = threading.Thread(target=self._work, args=(number, orders), daemon=True)
            self._orders.append(orders)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for orders in self._orders:
            orders.put(None)
        for thread in self._threads:  # what they work on must outlive them
            thread.join()

    def each(self, task: Task) -> None:
        """Run ``task(worker)`` for every worker and return when all have finished."""
        for orders in self._orders:
            orders.put(task)
        try:
            task(0)
        finally:
            failures = [self._done.get() for _ in self._orders]
        for failure in failures:
            if failure is not None:
                raise failure

    def _work(self, number: int, orders: queue.SimpleQueue[Task | None]) -> None:
        while (task := orders.get()) is not None:
            try:
                task(number)
            except BaseException as error:  # noqa: BLE001 -- raised again where each() waits
                self._done.put(error)
            else:
                self._done.put(None)
