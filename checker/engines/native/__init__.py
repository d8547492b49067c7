"""The ``native`` engine: the model compiled to machine code, on every core."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from fivestate.checker.engines.native.crew import Crew
from fivestate.checker.engines.native.program import Program, prepare
from fivestate.checker.engines.native.search import NAME, Search

if TYPE_CHECKING:
    import threading

    from fivestate.checker.exploration import Exploration, Limits, Progress
    from fivestate.spec.language.model import Model

MAX_WORKERS = 8

__all__ = ["NAME", "Program", "explore", "prepare", "workers"]


def workers() -> int:
    """Return how many workers search: the cores this process may use, as a power of two."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return 1 << (min(cores or 1, MAX_WORKERS).bit_length() - 1)


def explore(
    model: Model,
    limits: Limits,
    interrupted: threading.Event,
    *,
    edges: bool,
    progress: Progress | None = None,
) -> Exploration:
    """Explore ``model`` breadth first; states are numbered as the ``python`` engine does.

    Raises:
        ModelError: the model does not fit native code; see ``prepare``.
    """
    started = time.perf_counter()
    program = prepare(model, workers())
    searched = time.perf_counter()
    with Crew(program.workers) as crew:
        search = Search(program, crew, edges=edges)
        stopped = search.run(limits, interrupted, progress, started)
        return search.result(stopped, time.perf_counter() - searched)
