"""``fivestate prove``: what it says, how it ends, and the page it keeps true."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.cli.app import run
from fivestate.checker.prove import table
from fivestate.checker.prove.catalog import THEOREMS, named
from fivestate.checker.prove.solve import Answer, Asking, Interrupted, watched
from fivestate.checker.prove.theorem import Result
from fivestate.checker.verdicts import Verdict
from fivestate.spec.language.errors import ModelError

RUN = "import sys; from fivestate.checker.cli.app import run; sys.exit(run(sys.argv[1:]))"
PROVE = [sys.executable, "-c", RUN, "prove"]


@cache
def everything() -> tuple[dict[str, Any], float]:
    """Prove the default set once, as a user does; return also how long the cores were busy."""
    before = os.times().children_user
    done = fivestate("--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), os.times().children_user - before


def fivestate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROVE, *arguments],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


def test_the_default_set_is_proved_to_the_last() -> None:
    said, seconds = everything()
    assert len(said["theorems"]) >= 20
    assert {each["verdict"] for each in said["theorems"]} == {"PROVED"}
    assert {"clause", "name", "verdict", "seconds", "scope"} <= set(said["theorems"][0])
    assert [each["name"] for each in said["theorems"]] == [t.name for t in named([])]
    assert seconds / min(2, os.cpu_count() or 1) < 60  # two ask at once, where two can


def test_the_page_says_what_is_proved() -> None:
    said, _ = everything()
    results = [Result(t["name"], Verdict(t["verdict"]), t["seconds"]) for t in said["theorems"]]
    page = table.path().read_text("utf-8")
    assert table.same(page, table.render(page, results)), "fivestate prove --all --write"


def test_pages_are_compared_without_the_seconds() -> None:
    row = "| H-1 | `a` | says | PROVED | all | 0.12 |\n"
    assert table.same(row, row.replace("0.12", "13.40"))
    assert not table.same(row, row.replace("PROVED", "REFUTED"))


def test_a_page_without_its_markers_is_refused() -> None:
    with pytest.raises(ModelError, match="it needs theorems, clauses, lemmas, each once"):
        table.render("no markers", [])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--theorem", "soundd"], "no theorem 'soundd'; did you mean 'sound'? known: "),
        (["--geometry", "gpt-oss"], "no geometry 'gpt-oss'; did you mean 'gpt-oss-120b'?"),
        (["--geometry", "gone.toml"], "cannot read gone.toml: No such file or directory"),
        (["--timeout", "0"], "Invalid value for '--timeout': "),
        (["--timeout", "soon"], "Invalid value for '--timeout': "),
        (["--jobs", "0"], "Invalid value for '--jobs': "),
        (["--write", "-t", "sound"], "prove --write proves everything: give no --theorem"),
        (["sound"], "Got unexpected extra argument"),
    ],
)
def test_a_mistake_is_one_line_and_exits_with_64(
    arguments: list[str],
    says: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["prove", *arguments]) == 64
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"fivestate: {says}")
    assert len(err.splitlines()) == 1


def test_the_list_has_every_theorem_with_its_scope(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["prove", "--list"]) == 0
    out = capfd.readouterr().out
    for theorem in THEOREMS.values():
        assert f"{theorem.clause:<5} {theorem.name}\n" in out
    assert "any finite number of prefixes and requests" in out


def test_one_theorem_of_one_geometry(capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["-t", "no_smaller_step_is_whole", "-g", "toy", "--jobs", "1"]
    assert run(["prove", *asked]) == 0
    out = capfd.readouterr().out
    assert "H-1   no_smaller_step_is_whole  PROVED" in out
    assert "ok: 1 theorem PROVED" in out


def test_a_counterexample_that_is_asked_for_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["prove", "-t", "least_length_is_not_usable", "--jobs", "1"]) == 0
    out = capfd.readouterr().out
    assert "H-3 least_length_is_not_usable: shown" in out
    assert "longest of one = " in out


def test_why_a_hash_hit_is_not_enough_is_told_by_a_state_that_is_met(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["prove", "-t", "a_hash_hit_is_not_enough"]) == 0
    out = capfd.readouterr().out
    assert "I-3 leased_is_ready is not kept (r=r" in out
    assert "model hash-only gets into that state, after" in out


HARD = """says = "sizes that z3 does not settle"
source = "a test"

[group.full]
state = "COMPRESSED"
block_size = {size}
ratio = {ratio}

[group.tail]
state = "TAIL"
block_size = 7
ratio = {ratio}
lookback = 1048573
"""


def test_a_geometry_that_takes_too_long_is_undetermined_with_the_limit(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "hard.toml"
    ratio = 1048583
    file.write_text(HARD.format(size=ratio * 1009, ratio=ratio), "utf-8")
    asked = ["-t", "hit_blocks_hold_what_a_hit_needs", "-g", str(file), "--timeout", "0.001"]
    assert run(["prove", *asked, "--jobs", "1"]) == 2
    out = capfd.readouterr().out
    assert "hard, tail: no answer in 0.001 s" in out
    assert "UNDETERMINED: 1 of 1 theorem" in out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_is_heard_while_z3_thinks(jobs: str) -> None:
    process = subprocess.Popen(
        [*PROVE, "--jobs", jobs, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    started = time.perf_counter()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 2, err
    verdicts = {each["name"]: each["verdict"] for each in json.loads(out)["theorems"]}
    assert verdicts["sound"] == "UNDETERMINED"
    assert time.perf_counter() - started < 20


def test_z3_is_interrupted_only_while_it_thinks() -> None:
    """It does not bear it elsewhere: it once answered ``push canceled``, and that was told."""
    asking = Asking(60)
    steps = 0

    def work() -> Answer:
        nonlocal steps
        solver = asking.solver()
        while not asking.interrupted.is_set():
            solver.push()
            solver.add(z3.Int("x") == steps)
            assert asking.ask(solver) in {Answer.YES, Answer.UNKNOWN}
            solver.pop()
            steps += 1
        return asking.ask(solver)

    for _ in range(20):
        asking.interrupted.clear()
        threading.Timer(0.02, asking.interrupted.set).start()
        with suppress(Interrupted):
            assert watched(work, asking) is Answer.UNKNOWN
    assert steps
