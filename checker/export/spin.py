"""Spin: somebody else's model checker, run on an exported model for a second count.

What the numbers of its verifier ``pan`` mean here, where the process has one control state and
each step is a ``d_step``: *states, stored* are the distinct states; *states, matched* are the
steps that led to a state already stored; *transitions* is their sum, and so one more than the
steps taken, for the first state is stored and no step led to it. Breadth first, *depth reached*
is the distance of the furthest state. With ``-DPEG`` it also says how often the statement on each
line of the model was taken. ``pan`` exits with 0 and says "errors: 0" when it has run
out of depth, memory or room for a state: a search is believed only if nothing of that was said.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

TRUNCATED = (
    "max search depth too small",
    "out of memory",
    "reached -DMEMLIM bound",
    "VECTORSZ too small",
    "states lost",
    "Search not completed",
)
"""What ``pan`` says when it has not seen everything."""

_TAKEN = re.compile(r"^ *(\d+)\ttrans +\d+ \S+?:(\d+)", re.MULTILINE)


class SpinError(Exception):
    """Spin gave no count that may be believed."""


class NotInstalledError(SpinError):
    """Spin, or the C compiler it needs, is not on this machine."""


class TruncatedError(SpinError):
    """The search stopped early."""


class ViolatedError(SpinError):
    """An assertion does not hold, so the search stopped there."""


@dataclass(frozen=True)
class Search:
    """A search that has seen everything and found no assertion violated.

    Attributes:
        distinct: how many distinct states there are.
        transitions: how many steps were taken, counted once from each state they start in.
        depth: how far the search went: breadth first, the distance of the furthest state.
        state_bytes: the size of one state in the verifier.
        memory_mb: what the verifier used, its hash table included.
        compile_seconds: how long Spin and the C compiler took.
        seconds: how long the search took, by its own clock, in hundredths.
        wall_seconds: how long the verifier ran.
        taken: where it was asked for, how often the step on each line of the model was taken.
    """

    distinct: int
    transitions: int
    depth: int
    state_bytes: int
    memory_mb: float
    compile_seconds: float
    seconds: float
    wall_seconds: float
    taken: dict[int, int]


@dataclass(frozen=True)
class Room:
    """What a search may use.

    Attributes:
        memory_mb: where it has to stop.
        depth: where a depth-first search has to stop; it pays for that many steps in advance.
        hash_bits: the hash table has this power of two of slots; the result never depends on it.
    """

    memory_mb: int = 8_192
    depth: int = 1_000_000
    hash_bits: int = 22


def search(
    promela: str,
    room: Room = Room(),
    *,
    breadth_first: bool = True,
    profile: bool = False,
) -> Search:
    """Compile a Promela model and search it to the end.

    Args:
        promela: the model.
        room: what it may use.
        breadth_first: search as we do; depth first is what Spin does by itself.
        profile: count how often each step is taken; compiles faster and runs slower.

    Raises:
        NotInstalledError: ``spin`` or ``gcc`` is missing.
        TruncatedError: a limit was met.
        ViolatedError: an assertion is violated.
        SpinError: the model was refused, or the answer is not understood.
    """
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise NotInstalledError(f"{tool} is not installed, so Spin cannot be asked")
    options = ["-DSAFETY", "-DNOREDUCE", f"-DMEMLIM={room.memory_mb}"]
    options += ["-DBFS"] * breadth_first + (["-DPEG", "-O1"] if profile else ["-O2"])
    with tempfile.TemporaryDirectory(prefix="fivestate-spin-") as folder:
        started = time.perf_counter()
        Path(folder, "model.pml").write_text(promela, "utf-8")
        _run(folder, "spin", *["-o3"] * profile, "-a", "model.pml")  # -o3: no statements merged
        _print_exactly(Path(folder, "pan.c"))
        _run(folder, "gcc", "-w", *options, "-o", "pan", "pan.c")
        compiled = time.perf_counter()
        said = _run(folder, "./pan", "-n", f"-w{room.hash_bits}", f"-m{room.depth}")
        ended = time.perf_counter()
    return parse(said, compile_seconds=compiled - started, wall_seconds=ended - compiled)


def parse(said: str, *, compile_seconds: float = 0.0, wall_seconds: float = 0.0) -> Search:
    """Read what the verifier printed.

    Raises:
        TruncatedError: a limit was met.
        ViolatedError: an assertion is violated.
        SpinError: the answer is not understood.
    """
    violated = re.search(r"pan:\d+: (assertion violated .*)", said)
    if violated:
        raise ViolatedError(violated[1])
    for sign in TRUNCATED:
        if sign in said:
            raise TruncatedError(f"Spin stopped before the end: {sign}")
    if "Full statespace search" not in said:
        raise SpinError(f"Spin did not search every state:\n{said}")
    errors = _number(r"errors: (\d+)", said)
    stored = _number(r"(\S+) states, stored", said)
    matched = _number(r"(\S+) states, matched", said)
    transitions = _number(r"(\S+) transitions \(= stored\+matched\)", said)
    if errors or stored + matched != transitions or stored < 1:
        raise SpinError(f"Spin's numbers do not add up:\n{said}")
    return Search(
        distinct=stored,
        transitions=transitions - 1,  # nothing leads to the first state
        depth=_number(r"depth reached (\d+)", said),
        state_bytes=_number(r"State-vector (\d+) byte", said),
        memory_mb=float(_find(r"(\S+)\ttotal actual memory usage", said)),
        compile_seconds=compile_seconds,
        seconds=float(_find(r"elapsed time (\S+) seconds", said)),
        wall_seconds=wall_seconds,
        taken={int(line): int(times) for times, line in _TAKEN.findall(said)},
    )


def _run(folder: str, *command: str) -> str:
    done = subprocess.run(  # noqa: S603 -- our own commands, in our own folder
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    said = done.stdout + done.stderr
    if done.returncode:
        raise SpinError(f"{command[0]} failed with {done.returncode}:\n{said.strip()}")
    return said


def _print_exactly(verifier: Path) -> None:
    """Make the verifier print whole counts: by itself it rounds them to eight digits."""
    source = verifier.read_text("utf-8")
    verifier.write_text(source.replace("%9.8g", "%9.0f"), "utf-8")


def _find(pattern: str, said: str) -> str:
    found = re.search(pattern, said)
    if found is None:
        raise SpinError(f"Spin's answer has no {pattern!r}:\n{said}")
    return found[1]


def _number(pattern: str, said: str) -> int:
    text = _find(pattern, said)
    if not text.isdigit():
        raise SpinError(f"Spin has rounded a count: {text}")
    return int(text)
