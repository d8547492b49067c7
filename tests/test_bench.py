"""The benches: what they compare, in which form they say so, and what they do without a peer.

No test asks how long anything took: on somebody else's machine that is anybody's guess.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.need_spin import needs_spin

from fivestate.checker.bench import check, child, classify, elsewhere, growth, ours, pan, timing
from fivestate.checker.bench.rows import Row, line, to_json
from fivestate.checker.bench.two_phase import two_phase
from fivestate.checker.cli import app, bench
from fivestate.checker.cli.interrupt import leaving_at_once
from fivestate.checker.engines import native, python
from fivestate.checker.exploration import Limits
from fivestate.checker.export import promela, spin
from fivestate.spec.language import ModelError
from fivestate.spec.reuse.files import load_geometry

TINY = check.Sizes("scheme-a", "scheme-a", 3, rounds=1, short_rounds=1)
KEYS = ["what", "figure", "unit", "peer", "peer_figure", "ratio"]
PUBLISHED = {3: 288, 6: 50_816}
"""Distinct states of two-phase commit, as tlaplus/Examples gives them."""

HAND_WRITTEN = Path(check.__file__).with_name("two_phase.pml")


Answer = tuple[int, str, str]


@pytest.fixture(name="run")
def _run(capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command in this process: its exit code, its output and its errors."""

    def run(*arguments: str) -> Answer:
        code = app.run(["bench", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def silent(now: str) -> None:
    """Tell nobody."""
    del now


@pytest.fixture(name="tiny")
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command measure next to nothing."""
    monkeypatch.setattr(check, "QUICK", TINY)
    points = {"two-phase commit": ("two-phase-2", "two-phase-3"), "allocator": ("scheme-a",)}
    monkeypatch.setattr(growth, "QUICK", points)
    monkeypatch.setattr(growth, "_ROUNDS", 1)


@pytest.fixture(name="alone")
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let there be no Spin and no C compiler."""
    monkeypatch.setenv("PATH", str(tmp_path))


def rows_of(text: str) -> list[dict[str, Any]]:
    table = json.loads(text)
    assert list(table) == ["rows", "notes"]
    rows: list[dict[str, Any]] = table["rows"]
    for row in rows:
        assert list(row) == KEYS
        assert min(row["figure"], row["peer_figure"], row["ratio"]) > 0
    return rows


def test_above_1_ours_is_better() -> None:
    faster = Row.more("searched", 600.0, "states/s", "Spin", 200.0)
    smaller = Row.less("taken", 20.0, "bytes/state", "Spin", 60.0)
    assert faster.ratio == smaller.ratio == 3.0
    assert Row.less("compiled", 8.0, "s", "Spin", 2.0).ratio == 0.25
    assert " ".join(line(faster).split()) == "searched 600 states/s Spin 200 3.00x"
    assert rows_of(to_json([faster, smaller], [])) == [
        dict(zip(KEYS, ("searched", 600.0, "states/s", "Spin", 200.0, 3.0), strict=True)),
        dict(zip(KEYS, ("taken", 20.0, "bytes/state", "Spin", 60.0, 3.0), strict=True)),
    ]


def test_turns_alternate_and_the_best_of_each_clock_is_kept() -> None:
    said: list[str] = []
    ones = iter([timing.Timed(3, 1), timing.Timed(2, 5)])
    others = iter([timing.Timed(9, 9), timing.Timed(8, 8)])
    runs = {"one": lambda: next(ones), "other": lambda: next(others)}
    best = timing.best_of(2, runs, said.append)
    assert best == {"one": timing.Timed(2, 1), "other": timing.Timed(8, 8)}
    assert [now.rpartition(" ")[2] for now in said] == ["one", "other", "one", "other"]


@pytest.mark.parametrize("parties", PUBLISHED)
def test_our_two_phase_commit_has_the_published_size(parties: int) -> None:
    assert ours.native(native.prepare(two_phase(parties), 1)).distinct == PUBLISHED[parties]


@needs_spin
@pytest.mark.parametrize("order", pan.ORDERS)
def test_two_phase_commit_written_by_hand_for_spin_is_ours(tmp_path: Path, order: str) -> None:
    searched = python.explore(two_phase(3), Limits(), threading.Event(), edges=False)
    text = HAND_WRITTEN.read_text("utf-8")
    verifier = pan.build(text, tmp_path / "pan", order, PUBLISHED[3], ("N=3",))
    found = pan.run(verifier).search
    assert found.distinct == searched.distinct == PUBLISHED[3]
    assert found.transitions == searched.transitions


@needs_spin
def test_the_property_written_by_hand_for_spin_has_teeth(tmp_path: Path) -> None:
    right = "abort -> stand[_pid] = aborted"
    text = HAND_WRITTEN.read_text("utf-8")
    assert right in text
    wrong = text.replace(right, "abort || commit -> stand[_pid] = aborted")
    verifier = pan.build(wrong, tmp_path / "pan", "depth first", PUBLISHED[3], ("N=3",))
    with pytest.raises(spin.ViolatedError):
        pan.run(verifier)


def test_more_parties_than_a_sort_has_atoms() -> None:
    assert len(two_phase(9).cells) == 9 * 3 + 3


def test_a_search_that_counts_otherwise_is_no_row() -> None:
    found = ours.native(native.prepare(two_phase(2), 1))
    ours.must_agree(found, "Spin", found.distinct, found.transitions)
    with pytest.raises(ours.BenchError, match="Spin 34 and 95"):
        ours.must_agree(found, "Spin", 34, 95)


@pytest.mark.parametrize("search", [lambda m: ours.native(native.prepare(m, 1)), ours.oracle])
def test_a_model_that_fails_is_not_timed(search: Any) -> None:
    with pytest.raises(ours.BenchError, match=r"refutes .* of hash-only"):
        search(ours.model_named("hash-only"))


def test_a_model_that_nobody_has_is_refused() -> None:
    with pytest.raises(ModelError, match="no model 'two-phase-x'"):
        ours.model_named("two-phase-x")


def test_a_process_of_its_own_counts_and_weighs() -> None:
    found = child.ask("search", "two-phase-3", 1)
    assert found["distinct"] == PUBLISHED[3]
    assert found["bytes_per_state"] > 14
    assert child.ask("search", "two-phase-7", 1)["grown_bytes"] > 0 or sys.platform != "linux"


def test_a_process_that_fails_is_told_in_one_line() -> None:
    with pytest.raises(ours.BenchError, match=r"search of nobody failed: .*no model 'nobody'$"):
        child.ask("search", "nobody", 1)


def test_the_first_compilation_is_one_and_the_second_is_not(tmp_path: Path) -> None:
    assert not child.ask("compile", "two-phase-2", 1, tmp_path)["cached"]
    assert child.ask("compile", "two-phase-2", 1, tmp_path)["cached"]


@needs_spin
def test_check_compares_with_python_and_with_spin() -> None:
    rows = list(check.rows(TINY, 2, silent))
    peers = {row.peer.split(",")[0].removesuffix(" depth first") for row in rows}
    peers = {peer.removesuffix(" breadth first") for peer in peers}
    assert {"python", "Spin", "Spin and gcc", "what we allow ourselves"} <= peers
    ways = [row.what.partition(": ")[2] for row in rows if row.what.startswith("two-phase-3, ")]
    assert ways == ["2 threads, wall", "1 thread, wall", "1 thread, CPU"]
    for row in rows:
        better = row.unit.endswith("/s") == (row.figure > row.peer_figure)
        assert better == (row.ratio > 1) or row.figure == row.peer_figure


@needs_spin
def test_a_count_of_spin_that_is_not_ours_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tiny: None, run: Any
) -> None:
    del tiny
    wrong = HAND_WRITTEN.read_text("utf-8").replace("#define N 8", "#define N 3")
    monkeypatch.setattr(promela, "export", lambda *_, **__: wrong)
    code, out, err = run("check", "--quick", "--json")
    assert (code, out) == (1, "")
    assert "the native engine counts 18 distinct states" in err
    assert len(err.splitlines()) == 1


def test_without_spin_the_rest_is_compared(tiny: None, alone: None, run: Any) -> None:
    del tiny, alone
    code, out, err = run("check", "--quick", "--json")
    assert (code, err) == (0, "")
    rows = rows_of(out)
    assert not any("Spin" in row["peer"] for row in rows)
    assert {row["unit"] for row in rows} == {"states/s", "s", "bytes/state"}
    told = [note for note in json.loads(out)["notes"] if "Spin is left out" in note]
    assert told == ["spin and gcc not installed: Spin is left out, the rest is compared"]


def test_a_table_is_for_people(tiny: None, alone: None, run: Any) -> None:
    del tiny, alone
    code, out, err = run("check", "--quick")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["what", "figure", "peer", "its", "figure", "ratio"]
    assert [row[-1] for row in lines if row.startswith("scheme-a: 1 thread")] == ["x", "x"]
    assert lines[-1].startswith("note: ")


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_growth_is_drawn(
    tiny: None,
    alone: None,
    tmp_path: Path,
    run: Any,
) -> None:
    del tiny, alone
    code, out, err = run("check", "--quick", "--json", "--plot", str(tmp_path))
    assert (code, err) == (0, "")
    assert [row["peer"] for row in rows_of(out) if row["unit"] == "transitions/s"] == [
        "two-phase-2, 153"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["growth.png", "growth.svg"]
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "growth.svg").read_text("utf-8")
    assert all(name in svg for name in ("two-phase-3", "scheme-a", "transitions", "MB"))


def test_without_matplotlib_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Any
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    message = "fivestate: --plot needs matplotlib: pip install 'fivestate[bench]'\n"
    assert run("check", "--quick", "--plot", str(tmp_path)) == (64, "", message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("classify", "--plot", "."), "bench classify draws nothing"),
        (("check", "--plot", "no-such-folder"), "cannot draw into no-such-folder"),
        (("prove",), "'prove' is not one of check, classify"),
        ((), "bench: what is to be measured? One of check, classify"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    run: Any,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    code, out, err = run(*arguments)
    assert (code, out) == (64, "")
    assert message in err
    assert len(err.splitlines()) == 1


ROW = {"what": "copied", "unit": "GB/s", "peer": "copy_", "better": "more"}


def another(*, quick: bool, tell: Any) -> Iterator[dict[str, Any]]:
    """Measure something in another folder."""
    tell("a page")
    yield {**ROW, "figure": 30.0, "peer_figure": 40.0}
    yield {"note": f"quick: {quick}"}
    yield {**ROW, "figure": 2.0, "peer_figure": 4.0, "unit": "ms", "better": "less"}


def empty(**_: Any) -> Iterator[dict[str, Any]]:
    """Have nothing to measure with."""
    yield {"note": "no GPU is here"}


def wrong(**_: Any) -> Iterator[dict[str, Any]]:
    """Find that what is measured is wrong."""
    yield {"refuted": "gather is not what its reference says"}


@pytest.fixture(name="others")
def _others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other folders have benches."""
    points = [
        EntryPoint(each.__name__, f"{__name__}:{each.__name__}", elsewhere.GROUP)
        for each in (another, empty, wrong)
    ]
    points.append(EntryPoint("absent", "no_such_module:bench", elsewhere.GROUP))
    monkeypatch.setattr(
        elsewhere, "entry_points", lambda group: points if group == elsewhere.GROUP else []
    )
    monkeypatch.setitem(sys.modules, __name__, sys.modules[another.__module__])


def test_benches_of_other_folders_are_found_by_entry_point(others: None, run: Any) -> None:
    del others
    code, out, err = run("another", "--json", "--quick")
    assert (code, err) == (0, "")
    assert [row["ratio"] for row in rows_of(out)] == [0.75, 2.0]
    assert json.loads(out)["notes"] == ["quick: True"]
    code, out, err = run("another")
    assert [line.split()[0] for line in out.splitlines()] == ["what", "copied", "copied", "note:"]


def test_a_bench_that_measures_nothing_says_why(others: None, run: Any) -> None:
    del others
    assert run("empty") == (0, "note: no GPU is here\n", "")
    assert run("empty", "--json") == (0, to_json([], ["no GPU is here"]), "")


def test_what_computes_something_wrong_is_refuted(others: None, run: Any) -> None:
    del others
    message = "fivestate: bench wrong: gather is not what its reference says\n"
    assert run("wrong", "--json") == (1, "", message)


def test_a_bench_that_cannot_be_loaded_says_what_to_install(others: None, run: Any) -> None:
    del others
    code, out, err = run("absent")
    assert (code, out) == (64, "")
    assert err.startswith("fivestate: bench absent cannot be loaded: No module named")
    assert err.endswith("pip install 'fivestate[engine]'\n")


def test_all_benches_are_listed(others: None, run: Any) -> None:
    del others
    names = ["check", "classify", "absent", "another", "empty", "wrong"]
    code, out, err = run("--list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == names
    assert list(json.loads(run("--list", "--json")[1])) == names


def test_classify_says_what_a_verdict_costs() -> None:
    shape = load_geometry(bench.GEOMETRY)
    rows = list(classify.rows(shape, silent, seconds=0.001))
    whats = [row.what for row in rows]
    assert whats[0] == whats[1] == f"131,072 tokens, {len(shape.voting)} groups"
    assert whats[2:5] == [
        f"{tokens} tokens, {len(shape.voting)} groups"
        for tokens in ("16,384", "131,072", "1,048,576")
    ]
    assert whats[-1] == "131,072 tokens, 1 group"
    assert {row.unit for row in rows} == {"verdicts/s"}
    assert rows_of(to_json(rows, classify.notes(shape)))


def test_an_interruption_ends_it_in_one_line() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from fivestate.checker.cli import main; main()", "bench", "check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("what ")
        time.sleep(0.5)  # into a search, or into compiling for one
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert (running.returncode, err) == (2, "fivestate: interrupted\n")


def test_an_interruption_that_was_lost_is_noticed_later() -> None:
    before = signal.getsignal(signal.SIGINT)
    with leaving_at_once() as look:
        look()
        with contextlib.suppress(KeyboardInterrupt):  # as a finalizer does
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            look()
    assert signal.getsignal(signal.SIGINT) is before
