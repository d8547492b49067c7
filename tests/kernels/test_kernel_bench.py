"""The bench of the kernels: without a GPU it says so; its cases compute what their peers do."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.kernels.ways import needs_interpreter, running

from fivestate.kernels import bench as module
from fivestate.kernels.bench import bench, measured
from fivestate.kernels.bench.cases import PAGES_BYTES, ROW_BYTES, Case, cases

RESULTS = Path(module.__file__).parents[1] / "RESULTS.md"
SCRIPT = Path(__file__).parents[1] / "gpu" / "run.sh"
BASH = shutil.which("bash")
KEYS = {"what", "figure", "unit", "peer", "peer_figure", "better"}


def tiny() -> list[Case]:
    with running("reference") as device:
        return list(cases(device, 200_000, 128, 3_072))


def test_without_a_gpu_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    said = list(bench(quick=False, tell=print))
    assert said == [{"note": "no GPU is here: nothing is compared; see kernels/RESULTS.md"}]


class Gpu:
    """Stands for the parts of torch.cuda that measure: every call takes two milliseconds."""

    def __init__(self, patch: pytest.MonkeyPatch, *, captures: bool) -> None:
        self.captures, self.replayed = captures, 0
        patch.setattr(torch.cuda, "is_available", lambda: True)
        patch.setattr(torch.cuda, "get_device_name", lambda: "a card")
        patch.setattr(torch.cuda, "synchronize", lambda: None)
        patch.setattr(torch.cuda, "CUDAGraph", lambda: self)
        patch.setattr(torch.cuda, "graph", lambda _: self)
        patch.setattr(module, "_event", lambda: self)

    def __enter__(self) -> None:
        if not self.captures:
            raise RuntimeError("operation not permitted when stream is capturing")

    def __exit__(self, *_: object) -> None:
        """End."""

    def record(self) -> None:
        """Take the time."""

    def synchronize(self) -> None:
        """Wait."""

    def elapsed_time(self, end: object) -> float:
        """Return milliseconds."""
        del end
        return 2.0

    def replay(self) -> None:
        """Count."""
        self.replayed += 1


@pytest.mark.parametrize("captures", [True, False])
def test_on_a_gpu_every_case_has_its_rows(
    monkeypatch: pytest.MonkeyPatch,
    captures: bool,  # noqa: FBT001 -- a case
) -> None:
    gpu = Gpu(monkeypatch, captures=captures)
    copied = Case("gather", lambda: None, 4_000_000, {"index_select": lambda: None})
    computed = Case("route", lambda: None, 0, {"topk": lambda: None})
    monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(module, "QUICK_BYTES", 1_000_000)
    monkeypatch.setattr(module, "FLUSH_BYTES", 1_000)
    monkeypatch.setattr(module, "cases", lambda *_: iter([copied, computed]))
    told: list[str] = []
    said = list(bench(quick=True, tell=told.append))
    assert told == ["copy_", "gather", "route"]
    assert [
        (each["what"], each["figure"], each["unit"], each["peer_figure"])
        for each in said
        if "what" in each
    ] == [("gather", 2.0, "GB/s", 1.0), ("gather", 2.0, "ms", 2.0), ("route", 2.0, "ms", 2.0)]
    assert [each["note"].partition(",")[0] for each in said if "note" in each] == [
        "a card",
        "FIVESTATE_DEBUG=1: times include checks that wait for the device",
        "peers were compiled for 0 s: some were not",
    ]
    assert (gpu.replayed > 0) == captures


def test_every_case_computes_what_its_peer_does() -> None:
    names = set()
    with running("reference"):
        for case in tiny():
            ours, peers = case.run(), [peer() for peer in case.peers.values()]
            assert case.right(), case.name
            names.add(case.name.partition(",")[0])
            if isinstance(peers[0], torch.Tensor):
                check_close(case, ours, peers[0])
    every = {"gather", "scatter", "window", "digest", "fold", "route", "attend", "classify_batch"}
    assert names == every


def check_close(case: Case, ours: Any, expected: torch.Tensor) -> None:
    """Compare floats: bf16 has 8 bits, and the peer rounds at other places."""
    match case.name.partition(",")[0]:
        case "route":
            assert torch.isin(ours, expected).float().mean() > 0.9
        case "attend":
            torch.testing.assert_close(ours, expected, atol=0.02, rtol=0.02)
        case "fold":
            assert isinstance(case.run, partial)
            entries = case.run.args[6].flatten(0, 1)[64:]
            entries = entries[: len(case.run.args[4])]
            last = entries[len(entries) - len(expected) :]  # of overlapping groups, not entry 0
            torch.testing.assert_close(last, expected, atol=0.02, rtol=0.02)


def test_pages_are_those_of_the_geometry() -> None:
    from fivestate.spec.reuse.files import load_geometry  # noqa: PLC0415 -- only here

    found = {group.page_size_bytes for group in load_geometry("dsv4-flash").groups}
    assert found == set(PAGES_BYTES)
    assert all(size % ROW_BYTES == 0 for size in PAGES_BYTES)


def test_rows_have_the_share_of_the_bandwidth_and_the_time_beside_torch() -> None:
    times = {"ours": 2.0, "torch": 3.0}
    calls = []

    def ours() -> None:
        calls.append("ours")

    def in_torch() -> None:
        calls.append("torch")

    case = Case("gather", ours, 4_000_000, {"index_select": in_torch})
    rows = list(
        measured(case, 4.0, lambda run: times["ours" if run is ours else "torch"], -math.inf)
    )
    assert calls == ["ours", "torch"]
    assert all(set(row) == KEYS for row in rows)
    assert [(row["figure"], row["peer_figure"], row["unit"]) for row in rows] == [
        (2.0, 4.0, "GB/s"),
        (2.0, 3.0, "ms"),
    ]


def test_peers_are_compiled_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda run: run)
    case = Case("gather", lambda: None, 0, {"index_select": lambda: None})
    for until, peers in ((time.monotonic() + 60, 2), (time.monotonic() - 1, 1)):
        rows = list(measured(case, 1.0, lambda _: 1.0, until))
        assert [row["peer"] for row in rows] == ["index_select", "index_select, compiled"][:peers]


def test_a_peer_that_does_not_compile_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(run: object) -> object:
        raise RuntimeError(f"no graph\nof {run}")

    monkeypatch.setattr(torch, "compile", refuse)
    case = Case("gather", lambda: None, 0, {"index_select": lambda: None})
    rows = list(measured(case, 1.0, lambda _: 1.0, math.inf))
    assert rows[1:] == [{"note": "gather: index_select does not compile: no graph"}]


def test_a_case_that_computes_something_else_is_refuted_and_not_timed() -> None:
    case = Case("gather", lambda: None, 8, {"index_select": lambda: None}, lambda: False)

    def never(run: object) -> float:
        raise AssertionError(run)

    with pytest.raises(module.WrongError, match="bytes differ from those of index_select"):
        list(measured(case, 1.0, never, 0.0))


def test_a_case_that_fails_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    Gpu(monkeypatch, captures=True)
    wrong = Case("gather", lambda: None, 0, {"index_select": lambda: None}, lambda: False)
    broken = Case("scatter", lambda: 1 // 0, 0, {"index_copy_": lambda: None})
    right = Case("route", lambda: None, 0, {"topk": lambda: None})
    monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(module, "QUICK_BYTES", 1_000)
    monkeypatch.setattr(module, "FLUSH_BYTES", 1_000)
    monkeypatch.setattr(module, "cases", lambda *_: iter([wrong, broken, right]))
    said = list(bench(quick=True, tell=lambda _: None))
    assert [each["what"] for each in said if "what" in each] == ["route"]
    assert said[-1] == {
        "refuted": "gather: WrongError: bytes differ from those of index_select; "
        "scatter: ZeroDivisionError: integer division or modulo by zero"
    }


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@needs_interpreter
def test_the_script_for_a_gpu_ends_at_once_without_one() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [str(BASH), str(SCRIPT)]
    done = subprocess.run(
        command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert os.access(SCRIPT, os.X_OK)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no GPU is here, or no torch that sees it\n"


def test_the_results_say_how_they_are_made() -> None:
    text = RESULTS.read_text("utf-8")
    assert "tests/gpu/run.sh" in text
    assert "85 %" in text
