"""What has to be measured in a process of its own: a first compilation, and the memory of a search.

Run as ``python -m fivestate.checker.bench.child compile|search MODEL WORKERS``; prints JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from fivestate.checker.bench import ours
from fivestate.checker.bench.timing import timed
from fivestate.checker.engines.native import cache, prepare

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def ask(job: str, model: str, workers: int, kept_in: Path | None = None) -> dict[str, float]:
    """Do a job in a new process and return its figures.

    Args:
        job: ``compile`` or ``search``.
        model: see ``ours.model_named``.
        workers: how many threads search.
        kept_in: where compiled code is kept, if not where it always is.

    Raises:
        BenchError: the process failed.
    """
    command = (sys.executable, "-m", __name__, job, model, str(workers))
    moved = {} if kept_in is None else {cache.DIRECTORY: str(kept_in)}
    done = subprocess.run(  # noqa: S603 -- this module, with a name and a number
        command,
        env=os.environ | moved,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise ours.BenchError(f"{job} of {model} failed: {''.join(last) or done.returncode}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def compiling(name: str, workers: int) -> dict[str, Any]:
    """Make a model ready to be searched: compiled, or linked if the code is at hand."""
    model = ours.model_named(name)
    with timed() as spent:
        program = prepare(model, workers)
    return {"wall": spent.wall, "cpu": spent.cpu, "cached": program.code.cached}


def searching(name: str, workers: int) -> dict[str, Any]:
    """Search a model, and note what the resident set grew by at its largest."""
    program = prepare(ours.model_named(name), workers)
    _forget_peak()
    before = _kilobytes("VmRSS")
    counted = ours.native(program)
    grown = _kilobytes("VmHWM") - before
    return {
        "distinct": counted.distinct,
        "transitions": counted.transitions,
        "wall": counted.spent.wall,
        "cpu": counted.spent.cpu,
        "bytes_per_state": counted.bytes_per_state,
        "grown_bytes": 1_024 * max(grown, 0),
    }


def _forget_peak() -> None:
    """Let the peak of the resident set start anew: compiling may have set one."""
    try:
        _FORGET.write_text("5", "ascii")
    except OSError:
        return  # then the peak so far is the least that is told


def _kilobytes(field: str) -> int:
    """Return a field of the process's status; 0 where the system has none."""
    try:
        status = _STATUS.read_text("ascii", errors="replace")
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return int(fields.get(field, "0").split()[0])


JOBS = {"compile": compiling, "search": searching}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever asked tells of an interruption
    wanted, subject, threads = sys.argv[1:]
    sys.stdout.write(json.dumps(JOBS[wanted](subject, int(threads))))
