"""A prefix hit may be used in a homogeneous model, and not in a hybrid one: both in one command."""

import subprocess
import sys

import pytest

from fivestate.checker.engines.python import explore
from fivestate.checker.judge import Report, check
from fivestate.checker.story import Story
from fivestate.checker.verdicts import Verdict
from fivestate.spec.language import Kind, Run
from fivestate.spec.models import MODELS

HASH_ONLY = MODELS["hash-only"]


def story_of(report: Report, name: str) -> Story:
    (judgement,) = (j for j in report.judgements if j.name == name)
    assert judgement.verdict is Verdict.REFUTED
    assert judgement.story is not None
    return judgement.story


def phases(report: Report) -> set[str]:
    """Return every phase that a request gets into in the story of some witness."""
    told = [j.story for j in report.judgements if j.kind is Kind.WITNESS and j.story is not None]
    changes = [change for story in told for line in story.lines for change in line.changes]
    return {change.after for change in changes if change.cell.startswith("phase[")}


def test_a_hash_hit_may_be_used_in_a_homogeneous_model() -> None:
    model = MODELS["homogeneous"]
    assert model.settings["hash_only"] is True
    report = check(model, explore)
    assert report.verdict is Verdict.PROVED
    proved = {j.name: j.verdict for j in report.judgements}
    assert proved["sound"] is Verdict.PROVED
    assert proved["as_scheme_a"] is Verdict.PROVED
    assert {"HIT", "LEASED", "RUNNING"} <= phases(report)  # hits do occur, and are used


def test_it_may_not_in_a_hybrid_model_and_five_steps_show_why() -> None:
    report = check(HASH_ONLY, explore)
    assert report.verdict is Verdict.REFUTED
    assert report.refuted[0].name == "sound"  # the one that is told
    told = story_of(report, "sound")
    assert [line.step for line in told.lines] == [
        "slide(r0)",  # r0 has moved past the prefix and lets go of its window,
        "evict(p0, WINDOW)",  # so the window may be evicted;
        "arrive(r1, p0)",  # the hash of the prefix is still there: r1 is told HIT,
        "lease(r1)",  # takes it,
        "run(r1)",  # and reads a window that is gone
    ]
    assert told.detail == "r=r1, p=p0, g=WINDOW"
    changes = [(c.cell, c.before, c.after) for line in told.lines for c in line.changes]
    assert ("device[p0, WINDOW]", "READY", "ABSENT") in changes
    assert ("phase[r1]", "IDLE", "HIT") in changes
    assert ("phase[r1]", "LEASED", "RUNNING") in changes
    assert "known[p0]" not in {cell for cell, _, _ in changes}


def test_no_refutation_of_the_hybrid_model_needs_more_than_six_lines() -> None:
    report = check(HASH_ONLY, explore)
    told = [j.story for j in report.refuted]
    assert all(story is not None and story.length <= 6 for story in told)


def test_the_same_geometry_with_every_cell_looked_at_is_proved() -> None:
    careful = HASH_ONLY.set("hash_only=false")
    assert careful.initial == HASH_ONLY.initial
    report = check(careful, explore)
    assert report.refuted == ()
    assert report.verdict is Verdict.PROVED
    assert {"HIT", "PARTIAL", "LEASED", "RUNNING"} <= phases(report)
    run = Run(careful)
    for name, *arguments in (("slide", "r0"), ("evict", "p0", "WINDOW"), ("arrive", "r1", "p0")):
        run.take(name, *arguments)
    assert run.value("phase[r1]") == "PARTIAL"


def test_the_named_start_is_reached_from_the_first_state() -> None:
    assert HASH_ONLY.initial != HASH_ONLY.first
    run = Run(HASH_ONLY, HASH_ONLY.first)
    for name, *arguments in HASH_ONLY.start:
        assert run.refusal(run.step(name, *arguments)) is None
        run.take(name, *arguments)
    assert run.state == HASH_ONLY.initial
    assert run.value("known[p0]") == "True"
    assert run.value("phase[r0]") == "RUNNING"
    assert HASH_ONLY.start_says == "p0 is published, and r0, which computed it, still runs"


def replay(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_every_refutation_is_replayed_by_the_python_it_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = check(HASH_ONLY, explore)
    assert len(report.refuted) > 1
    for judgement in report.refuted:
        told = story_of(report, judgement.name)
        assert replay(told.replay) == "False\n", judgement.name
        lines = told.replay.splitlines()
        assert sum(line.startswith("run.take(") for line in lines) == told.length
        exec("\n".join([*lines[:-2], lines[-1]]), {})  # noqa: S102 -- all but the last step
        assert capsys.readouterr().out == "True\n", judgement.name  # so the last step breaks it


def test_a_replay_says_what_was_set() -> None:
    code = story_of(check(HASH_ONLY.set("prefix=2"), explore), "sound").replay
    assert "run = Run(MODELS['hash-only'].set('prefix=2'))" in code.splitlines()
    assert replay(code) == "False\n"
