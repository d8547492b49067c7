"""Spin's verifier, built once and run many times: what ``export.spin`` does in one go, timed."""

from __future__ import annotations

import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fivestate.checker.bench.timing import Timed
from fivestate.checker.export import spin

OPTIONS = ("-O2", "-DSAFETY", "-DNOREDUCE")
ORDERS = {"depth first": (), "breadth first": ("-DBFS",)}
"""Spin's two searches, and how each is compiled."""

_MEMORY_MB = 16_384
_DEPTH = 100_000


@dataclass(frozen=True)
class Verifier:
    """A compiled verifier.

    Attributes:
        command: how it is run.
        folder: where.
        compiled: how long Spin and the C compiler took.
    """

    command: tuple[str, ...]
    folder: Path
    compiled: Timed


@dataclass(frozen=True)
class Verified:
    """What a verifier counted, and how long it ran."""

    search: spin.Search
    spent: Timed


def missing() -> str:
    """Return why Spin cannot be asked, or nothing."""
    tools = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
    return f"{' and '.join(tools)} not installed" if tools else ""


def build(
    promela: str, folder: Path, order: str, distinct: int, defined: tuple[str, ...] = ()
) -> Verifier:
    """Compile a Promela model in a folder of its own.

    Args:
        promela: the model.
        folder: where; it is made.
        order: one of ``ORDERS``.
        distinct: how many states will be found; the hash table gets two to four slots for each.
        defined: what the model leaves open, such as ``N=8``.

    Raises:
        SpinError: the model was refused.
    """
    folder.mkdir()
    (folder / "model.pml").write_text(promela, "utf-8")
    switches = (*OPTIONS, f"-DMEMLIM={_MEMORY_MB}", *ORDERS[order])

    def compile_all() -> None:
        _run(folder, "spin", *(f"-D{name}" for name in defined), "-a", "model.pml")
        source = folder / "pan.c"
        source.write_text(source.read_text("utf-8").replace("%9.8g", "%9.0f"), "utf-8")
        _run(folder, "gcc", "-w", *switches, "-o", "pan", "pan.c")

    compiled = _timed(compile_all)
    slots = distinct.bit_length() + 1
    command = ("./pan", "-n", f"-w{max(slots, 10)}", f"-m{_DEPTH}")
    return Verifier(command, folder, compiled)


def run(verifier: Verifier) -> Verified:
    """Search to the end.

    Raises:
        SpinError: the search stopped early, or a property does not hold.
    """
    said: list[str] = []
    spent = _timed(lambda: said.append(_run(verifier.folder, *verifier.command)))
    return Verified(spin.parse(said[0]), spent)


def _timed(work: Callable[[], None]) -> Timed:
    """Return how long the processes that ``work`` waits for took."""
    wall, cpu = time.perf_counter(), _children()
    work()
    return Timed(time.perf_counter() - wall, _children() - cpu)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(  # noqa: S603 -- our own commands, in our own folder
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    said = done.stdout + done.stderr
    if done.returncode:
        raise spin.SpinError(f"{command[0]} failed with {done.returncode}: {said.strip()}")
    return said
