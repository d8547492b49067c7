"""A process beside the test's own: it puts, it holds a folder, or it is killed again and again."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from tests.impl.tier_workload import IDENTITY, Marks, Promise, Step, look, run, value, version_of

from fivestate.impl.tiers import Store
from fivestate.impl.tiers.errors import DiskError

KEYS = [f"prefix{n}/WINDOW" for n in range(8)]
CAPACITY_BYTES = 400_000
ROWS = 10_000


class Pipe(Marks):
    """Files that tell another process how far a run is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def mark(self, step: Step, *, done: bool) -> None:
        """Write a line, which is there for the reader whatever happens to this process."""
        line = json.dumps({"step": vars(step), "done": done})
        os.write(self._descriptor, line.encode() + b"\n")


def put(root: Path) -> None:
    """Put one object and say so."""
    with Store.open(root, identity=IDENTITY, capacity_bytes=CAPACITY_BYTES) as store:
        store.put(KEYS[0], value(1))
        os.write(1, b"acknowledged\n")


def hold(root: Path) -> None:
    """Keep the folder open until standard input ends."""
    with Store.open(root, identity=IDENTITY, capacity_bytes=CAPACITY_BYTES):
        os.write(1, b"open\n")
        sys.stdin.read()


def fill(root: Path) -> None:
    """Fill a small disk that is mounted here, then let it be read only."""
    acknowledged = []
    with Store.open(root, identity=IDENTITY, capacity_bytes=1 << 30) as store:
        reason = ""
        for version in range(1, 1000):
            try:
                store.put(f"k{version}", value(version, ROWS))
            except DiskError as error:
                reason = str(error)
                break
            acknowledged.append(version)
        assert "No space left" in reason, reason
        full = [version_of(store.get(f"k{version}")) for version in acknowledged]
        assert full == acknowledged
        store.drop("k1")
        store.put("k1", value(1, ROWS))
    assert len(acknowledged) > 3
    _remount(root, "ro")
    with (
        pytest.raises(DiskError, match="Read-only file system"),
        Store.open(root, identity=IDENTITY, capacity_bytes=1 << 30),
    ):
        pass
    _remount(root, "rw")
    with Store.open(root, identity=IDENTITY, capacity_bytes=1 << 30) as store:
        assert [version_of(store.get(f"k{version}")) for version in acknowledged] == acknowledged
    sys.stdout.write("full\n")


def _remount(root: Path, mode: str) -> None:
    command = ["mount", "-o", f"remount,{mode}", str(root)]  # a mount of this process's own space
    subprocess.run(command, check=True)


def kill(root: Path, times: str, seed: str) -> None:
    """Kill a process that uses the folder, reopen it, and fail if anything is not as promised."""
    choose = random.Random(int(seed))  # noqa: S311 -- not for secrets
    promise = Promise()
    for generation in range(int(times)):
        events, writer = os.pipe()
        child = os.fork()
        if not child:
            work(root, writer, generation)
        os.close(writer)
        with os.fdopen(events, "rb") as lines:
            for _ in range(choose.randrange(1, 60)):
                hear(promise, lines.readline())
            time.sleep(choose.random() * 0.01)
            os.kill(child, signal.SIGKILL)
            for line in lines:
                hear(promise, line)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == -signal.SIGKILL, f"the process ended by itself: {status}"
        versions, found = look(root, promise, KEYS)
        assert not found, f"after kill {generation + 1}: {found}"
        promise = Promise(versions)
    sys.stdout.write(f"{times} killed\n")


def work(root: Path, writer: int, generation: int) -> NoReturn:
    """Use the folder until killed."""
    choose = random.Random(generation)  # noqa: S311 -- not for secrets

    def steps() -> Iterator[Step]:
        for version in itertools.count(1000 * generation + 1):
            what = choose.choices(["put", "get", "drop", "reopen"], [20, 4, 3, 1])[0]
            yield Step(what, choose.choice(KEYS), version)

    try:
        run(root, steps(), Pipe(writer), CAPACITY_BYTES, rows=ROWS)
    finally:
        os._exit(1)  # whatever went wrong, this is not to go on as its parent does


def hear(promise: Promise, line: bytes) -> None:
    """Take in what the process has said."""
    said = json.loads(line)
    if said["done"]:
        promise.end(Step(**said["step"]))
    else:
        promise.begin(Step(**said["step"]))


COMMANDS: dict[str, Callable[..., None]] = {"put": put, "hold": hold, "fill": fill, "kill": kill}

if __name__ == "__main__":
    torch.set_num_threads(1)  # a process that forks should have no other threads
    COMMANDS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
