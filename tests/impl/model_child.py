"""A process beside the test's own: it keeps rows in a folder until it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.impl.model_examples import model, prompt, rng_of

from fivestate.impl.models.folder import Folder
from fivestate.impl.models.prefix_cache import PrefixCache
from fivestate.impl.models.replay import run

TOKENS = 70
SAFE, MORE = 2, 3
"""Conversations that are settled before the process says so, and that it commits behind them."""


def text_of(number: int) -> list[int]:
    """Return the prompt of a conversation: with another half when it is odd."""
    return [*prompt(rng_of(90 + number // 2), 40), *prompt(rng_of(number), TOKENS - 40)]


def folder_of(root: Path, name: str) -> Folder:
    """Return the folder of one model: it has room for less than is kept, on both first tiers."""
    return Folder(path=root / name, device_tokens=160, host_tokens=64)


def converse(prefixes: PrefixCache, number: int) -> None:
    """Compute and commit a conversation, in chunks."""
    text = text_of(number)
    lease = prefixes.lease(text)
    for at in range(lease.resume, TOKENS, 25):
        run(prefixes.model, lease.cache, text[at : at + 25])
    prefixes.commit(lease, text)


def keep(root: Path, names: list[str]) -> None:
    """Keep conversations of some models; say when the first are safe; wait to be killed."""
    opened = [PrefixCache(model(name), store=folder_of(root, name)) for name in names]
    for prefixes in opened:
        for number in range(SAFE):
            converse(prefixes, number)
        prefixes.settle()
    for number in range(SAFE, SAFE + MORE):
        for prefixes in opened:
            converse(prefixes, number)
        os.write(1, b"safe\n")  # what is being committed now is still on its way down
    sys.stdin.read()


def killed_while_it_keeps(root: Path, names: list[str]) -> None:
    """Run ``keep`` in a process of its own, and kill it once something is safe."""
    command = [sys.executable, "-m", "tests.impl.model_child", str(root), *names]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline()
        child.kill()
    assert said == b"safe\n"


if __name__ == "__main__":
    keep(Path(sys.argv[1]), sys.argv[2:])
