"""The command line: what it prints, where, and with which exit code."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from fivestate.checker.cli import app, files
from fivestate.spec.language import ModelError
from fivestate.spec.models import HOLDS, MODELS

COMMAND = [sys.executable, "-c", "from fivestate.checker.cli import main; main()"]
LONG = ("check", "--model", "all-groups", "--set", "request=4")
"""A search that takes longer than anybody waits."""

Answer = tuple[int, str, str]


@pytest.fixture(name="run")
def _run(capfd: pytest.CaptureFixture[str]) -> Any:
    """Run a command in this process: its exit code, its output and its errors."""

    def run(*arguments: str) -> Answer:
        code = app.run(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return run


def spawned(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, *arguments],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options},
    )


def test_the_installed_command_is_this_one() -> None:
    command = Path(sys.executable).with_name("fivestate")
    done = subprocess.run([command, "--version"], capture_output=True, check=True, text=True)
    assert re.fullmatch(r"fivestate \d+\.\d+\.\d+\n", done.stdout)


SCHEME_A = [
    ("I-2", "declared_ranges", "range"),
    *((claim.clause, claim.name, str(claim.kind)) for claim in MODELS["scheme-a"].claims),
]
"""What is judged of the smallest model: the built-in property first, then its own in order."""


def test_proved_is_0(run: Any) -> None:
    code, out, err = run("check", "--model", "scheme-a")
    assert (code, err) == (0, "")
    model, closing = out.splitlines()
    assert re.match(r"scheme-a +PROVED +18 distinct states +60 transitions +depth +4 ", model)
    assert closing.startswith(f"ok: 1 model PROVED, {len(SCHEME_A)} properties, 18 states, ")


def test_refuted_is_1_and_tells_the_story(run: Any) -> None:
    code, out, err = run("check", "--model", "hash-only")
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("hash-only         REFUTED ")
    assert "I-0 sound is violated after 5 steps (r=r1, p=p0, g=WINDOW)" in lines
    numbered = [line for line in lines if re.match(r"  \d\. A-\d+ ", line)]
    assert len(numbered) == 5
    assert "I-0 says: what runs reads only right bytes." in lines
    assert "  run = Run(MODELS['hash-only'])" in lines
    assert lines[-1].startswith("REFUTED: 1 of 1 model, ")


@pytest.mark.parametrize("engine", ["python", "native"])
@pytest.mark.parametrize("limit", ["--max-states=10", "--max-seconds=0", "--max-memory=1"])
def test_cut_short_is_2_and_says_why(run: Any, limit: str, engine: str) -> None:
    name = "all-groups" if "memory" in limit else "homogeneous"
    code, out, err = run("check", "--model", name, limit, "--engine", engine)
    assert (code, err) == (2, "")
    model, closing = out.splitlines()
    assert model.startswith(f"{name:<18}UNDETERMINED ")
    assert "  stopped: limit of " in model
    assert closing.startswith("UNDETERMINED: 1 of 1 model, ")
    assert "PROVED" not in out


def test_refuted_before_the_cut_is_1(run: Any) -> None:
    code, out, _ = run("check", "--model", "hash-only", "--max-states=150")
    assert code == 1
    assert "stopped: limit of 150 states" in out
    assert "I-0 sound is violated after 5 steps" in out


def test_the_worst_verdict_decides(run: Any) -> None:
    models = ("--model", "scheme-a", "--model", "hash-only", "--model", "homogeneous")
    code, out, _ = run("check", *models)
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()[:3]] == [
        "scheme-a",
        "hash-only",
        "homogeneous",
    ]
    assert run("check", *models[:2], *models[4:], "--max-states=100")[0] == 2


def test_a_model_named_twice_is_checked_once(run: Any) -> None:
    _, out, _ = run("check", "--model", "scheme-a", "--model", "scheme-a")
    assert out.count("scheme-a ") == 1


MISTAKES = {
    ("nonsense",): "No such command 'nonsense'",
    ("check", "--bogus"): "No such option: --bogus",
    ("check", "extra"): "unexpected extra argument",
    ("check", "--model"): "'--model' requires an argument",
    ("check", "--model", "homogenous"): "no model 'homogenous'; did you mean 'homogeneous'?",
    ("check", "--set", "request=3"): "--set needs a --model to change",
    ("check", "-m", "hybrid", "-m", "hash-only", "--set", "request=3"): "--set changes one model",
    ("check", "-m", "hybrid", "--set", "reqest=3"): "no setting 'reqest'; did you mean 'request'?",
    ("check", "-m", "hybrid", "--set", "request"): "'request' is no setting: write name=value",
    ("check", "-m", "hybrid", "--set", "request=99"): "request = 99 is out of range 1..8",
    ("check", "-m", "hybrid", "--set", "request=0"): "request = 0 is out of range 1..8",
    ("check", "-m", "hybrid", "--set", f"request={'9' * 5000}"): "a whole number is wanted",
    ("check", "-m", "sequence", "--set", "tokens=65"): "tokens = 65 is out of range 1..64",
    ("check", "-m", "hybrid", "--set", "group=WINDOW"): "",
    ("check", "-m", "hybrid", "--engine", "warp"): "no engine 'warp'; known: auto, ",
    ("check", "--max-states", "0"): "'--max-states'",
    ("check", "--max-states", "many"): "'--max-states'",
    ("check", "--max-seconds", "-1"): "'--max-seconds'",
    ("check", "--max-seconds", "nan"): "'--max-seconds'",
    ("check", "--junit", "/there/is/none/report.xml"): "there is no folder /there/is/none",
    ("check", "--junit", "/"): "cannot write /: it is a folder",
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=lambda given: " ".join(given)[:40])
def test_a_mistake_is_64_and_one_line(run: Any, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert code == 64
    assert out == ""
    assert err.startswith("fivestate: ")
    assert err.count("\n") == 1
    assert MISTAKES[arguments] in err


def test_without_a_command_the_help_is_shown_and_that_is_64(run: Any) -> None:
    code, out, err = run()
    assert (code, out) == (64, "")
    assert err.startswith("Usage: fivestate ")
    assert err == run("--help")[1]


@pytest.mark.parametrize("arguments", [("--help",), ("check", "--help"), ("check", "--list")])
def test_asking_is_no_mistake(run: Any, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert out


def test_every_model_is_listed(run: Any) -> None:
    _, out, _ = run("check", "--list")
    named = [line.split()[0] for line in out.splitlines() if not line.startswith(" ")]
    assert named == list(MODELS)


def test_every_property_is_shown_when_asked_for(run: Any) -> None:
    _, out, _ = run("check", "--model", "scheme-a", "--verbose")
    clauses = [line.split()[:4] for line in out.splitlines() if line.startswith("  ")]
    assert clauses == [[*claim, "PROVED"] for claim in SCHEME_A]


MODEL_KEYS = {
    *("name", "verdict", "distinct", "transitions", "depth", "seconds", "engine", "properties"),
    *("settings", "stopped"),  # what was changed, why it stopped
}
PROPERTY_KEYS = {"id", "name", "kind", "verdict"}


def test_json_is_all_that_is_printed_and_has_the_promised_keys(run: Any) -> None:
    code, out, err = run("check", "--json", "--model", "scheme-a", "--model", "hash-only")
    assert (code, err) == (1, "")
    report = json.loads(out)
    assert set(report) == {"models"}
    proved, refuted = report["models"]
    assert (set(proved), set(refuted)) == (MODEL_KEYS, MODEL_KEYS)
    assert (proved["name"], proved["verdict"]) == ("scheme-a", "PROVED")
    assert (proved["distinct"], proved["transitions"], proved["depth"]) == (18, 60, 4)
    assert [proved[key] for key in ("settings", "stopped")] == [[], ""]
    assert isinstance(proved["seconds"], float)
    assert proved["properties"] == [
        {"id": clause, "name": name, "kind": kind, "verdict": "PROVED"}
        for clause, name, kind in SCHEME_A
    ]
    for judged in refuted["properties"]:
        told = {"story"} if judged["verdict"] == "REFUTED" else set[str]()
        assert set(judged) == PROPERTY_KEYS | told
    (sound,) = (judged for judged in refuted["properties"] if judged["name"] == "sound")
    assert sound["story"]["steps"][-1] == "run(r1)"


def test_json_says_what_was_changed_and_why_it_stopped(run: Any) -> None:
    given = ("check", "--json", "--model", "homogeneous", "--max-states", "10")
    code, out, _ = run(*given, "--set", "request=3", "--set", "aborts=false")
    assert code == 2
    (model,) = json.loads(out)["models"]
    assert model["settings"] == ["request=3", "aborts=false"]
    assert (model["verdict"], model["stopped"]) == ("UNDETERMINED", "limit of 10 states")
    assert {judged["verdict"] for judged in model["properties"]} <= {"UNDETERMINED", "PROVED"}
    invariants = [judged for judged in model["properties"] if judged["kind"] == "invariant"]
    assert {judged["verdict"] for judged in invariants} == {"UNDETERMINED"}


def suites(path: Path) -> list[ET.Element]:
    return ET.parse(path).getroot().findall("testsuite")  # noqa: S314 -- we have just written it


def test_junit_shows_refuted_as_failure_and_undetermined_as_error(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    given = ("check", "--junit", str(path))
    assert run(*given, "--model", "scheme-a", "--model", "hash-only")[0] == 1
    proved, refuted = suites(path)
    assert [proved.get(key) for key in ("name", "tests", "failures", "errors")] == [
        *("scheme-a", str(len(SCHEME_A)), "0", "0"),
    ]
    failures = refuted.findall("testcase/failure")
    assert refuted.get("failures") == str(len(failures)) == "3"
    assert (refuted.get("errors"), len(refuted.findall("testcase/error"))) == ("0", 0)
    assert refuted.get("tests") == str(len(refuted.findall("testcase")))
    (sound,) = refuted.findall("testcase[@name='I-0 sound']/failure")
    assert sound.get("message") == "What runs reads only right bytes."
    assert (sound.text or "").splitlines()[-1] == "run(r1)"

    assert run(*given, "--model", "homogeneous", "--max-states", "1")[0] == 2
    (cut,) = suites(path)
    errors = cut.findall("testcase/error")
    assert cut.get("errors") == str(len(errors)) == cut.get("tests")
    assert {error.get("message") for error in errors} == {"UNDETERMINED: limit of 1 states"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("junit", ["there/is/none.xml", "."])
def test_an_unwritable_file_is_told_before_the_search(
    run: Any,
    tmp_path: Path,
    junit: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    code, out, err = run(*LONG, "--junit", junit)
    assert (code, out) == (64, "")
    assert err.startswith(f"fivestate: cannot write {junit}: ")
    assert time.monotonic() - began < 20
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.xml"
    files.write_whole(path, "old")

    def full(handle: int, *_: Any, **__: Any) -> Any:
        os.close(handle)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", full)
        with pytest.raises(ModelError, match=r"cannot write .*: No space left on device"):
            files.write_whole(path, "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("report.xml", "old")]
    files.write_whole(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask()


def mask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    real, link = tmp_path / "real.xml", tmp_path / "link.xml"
    real.touch()
    link.symlink_to(real)
    files.write_whole(link, "text")
    assert link.is_symlink()
    assert real.read_text() == "text"
    files.refuse_unwritable(Path(os.devnull))
    files.write_whole(Path(os.devnull), "text")
    assert Path(os.devnull).is_char_device()


SAYS_WHEN = """
import contextlib, importlib, sys
from fivestate.checker.cli import main

@contextlib.contextmanager
def progress(model):
    yield lambda found, explored: print(explored, file=sys.stderr, flush=True)

importlib.import_module("fivestate.checker.cli.check")._progress = progress
main()
"""
"""The command, and a line on the error stream whenever the search looks up."""


def test_ctrl_c_reports_what_was_covered() -> None:
    command = [sys.executable, "-c", SAYS_WHEN, *LONG, "--engine", "python", "--json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "0\n"
        explored = int(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert all(line.isdigit() for line in err.splitlines())
    (model,) = json.loads(out)["models"]
    assert (model["verdict"], model["stopped"]) == ("UNDETERMINED", "interrupted")
    assert model["distinct"] > explored > 0
    undecided = [judged for judged in model["properties"] if judged["kind"] != "witness"]
    assert {judged["verdict"] for judged in undecided} == {"UNDETERMINED"}


def test_a_second_ctrl_c_leaves_at_once(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("fivestate.checker.judge.check", twice)
    before = signal.getsignal(signal.SIGINT)
    assert run("check", "--model", "scheme-a") == (2, "", "fivestate: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--model", "scheme-a"),
        ("check", "--model", "scheme-a", "--json"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_full_device_is_one_line_and_a_closed_pipe_none(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = spawned(*arguments, stdout=full)
        _, err = process.communicate(timeout=60)
    assert err == "fivestate: cannot write the output: No space left on device\n"
    assert process.returncode == 64

    reader, writer = os.pipe()
    os.close(reader)
    process = spawned(*arguments, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (2, "")  # not 0, nor 1: nobody has read a verdict


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_terminal_without_chinese_is_no_reason_to_fail(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    arguments = ("check", "--model", "homogeneous", "--verbose")
    process = spawned(*arguments, env=environment, encoding=encoding)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert ("准入上限" in out) is (encoding == "utf-8")


@pytest.mark.parametrize("arguments", [("check", "-v", "-m", "hash-only"), ("--help",), ("nope",)])
def test_only_a_terminal_gets_colours(run: Any, arguments: tuple[str, ...]) -> None:
    _, out, err = run(*arguments)
    assert "\x1b" not in out + err
    assert out + err


def test_all_that_must_hold_is_checked_by_default(
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert {"homogeneous", "hybrid", "scheme-a"} <= {model.name for model in HOLDS}
    assert "hash-only" not in {model.name for model in HOLDS}
    few = (MODELS["scheme-a"], MODELS["homogeneous"])
    monkeypatch.setattr("fivestate.spec.models.HOLDS", few)
    code, out, err = run("check")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[:2]] == [model.name for model in few]
    assert out.splitlines()[-1] == "now see one fail: fivestate check --model hash-only"
