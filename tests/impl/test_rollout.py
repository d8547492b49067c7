"""Reuse rises by rule, and one difference takes it back."""

from __future__ import annotations

import logging

import pytest

from fivestate.impl.rollout import Decision, Ramp, Rollout, Use
from fivestate.spec.language import ModelError

KEYS = [f"prefix {n}".encode() for n in range(4_000)]


def reused(rollout: Rollout) -> set[bytes]:
    return {key for key in KEYS if rollout.decide(key).use is Use.REUSE}


def climb(rollout: Rollout) -> None:
    for _ in range(rollout.owed):
        rollout.agreed()


def test_the_shadow_uses_nothing_and_compares_a_sample() -> None:
    rollout = Rollout(Ramp(sample=0.25))
    decisions = [rollout.decide(key) for key in KEYS]
    assert {decision.use for decision in decisions} == {Use.SHADOW}
    compared = sum(decision.compare for decision in decisions)
    assert 0.2 < compared / len(KEYS) < 0.3  # 4,000 keys: ±5 points are seven deviations


def test_agreement_raises_the_share_step_by_step_and_keeps_who_was_in() -> None:
    rollout = Rollout(Ramp(shares=(0, 0.1, 0.5, 1), agreements=7))
    inside: set[bytes] = set()
    for share in (0.1, 0.5, 1.0):
        for _ in range(6):
            rollout.agreed()
        assert rollout.share < share
        rollout.agreed()
        assert rollout.share == share
        now = reused(rollout)
        assert inside < now
        assert abs(len(now) / len(KEYS) - share) < 0.05  # six deviations and more
        inside = now
    assert inside == set(KEYS)
    assert rollout.owed == 0


def test_one_difference_takes_it_back_and_makes_the_way_longer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rollout = Rollout(Ramp(shares=(0, 1), agreements=5))
    climb(rollout)
    assert reused(rollout)
    with caplog.at_level(logging.ERROR):
        rollout.differed(KEYS[0], "WINDOW row 7")
    assert not reused(rollout)
    assert rollout.owed == 10
    assert "WINDOW row 7" in caplog.text


def test_agreements_have_to_come_in_a_row() -> None:
    rollout = Rollout(Ramp(shares=(0, 1), agreements=5, setback=1))
    for _ in range(4):
        rollout.agreed()
    rollout.differed(KEYS[0], "entry 3")
    for _ in range(4):
        rollout.agreed()
    assert rollout.share == 0
    rollout.agreed()
    assert rollout.share == 1


def test_after_too_many_differences_only_a_person_starts_it_again() -> None:
    rollout = Rollout(Ramp(shares=(0, 1), agreements=1, differences=2, setback=1))
    rollout.differed(KEYS[0], "row")
    climb(rollout)
    assert rollout.share == 1
    rollout.differed(KEYS[0], "row")
    assert rollout.halted
    for _ in range(100):
        rollout.agreed()
    assert rollout.share == 0
    rollout.restart()
    climb(rollout)
    assert rollout.share == 1


def test_a_prefix_gets_one_answer() -> None:
    rollout = Rollout(Ramp(shares=(0, 0.5), agreements=1))
    climb(rollout)
    for key in KEYS[:100]:
        answers = {rollout.decide(key) for _ in range(3)}
        assert len(answers) == 1
        assert isinstance(answers.pop(), Decision)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shares", ()),
        ("shares", (0.1, 1.0)),
        ("shares", (0.0, 0.5, 0.5)),
        ("shares", (0.0, 2.0)),
        ("sample", 0.0),
        ("sample", 1.5),
        ("agreements", 0),
        ("agreements", True),
        ("setback", 0),
        ("differences", -1),
    ],
)
def test_a_ramp_that_cannot_work_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ModelError, match=field):
        Ramp(**{field: value})  # type: ignore[arg-type] # the wrong value is the point


@pytest.mark.parametrize("key", [b"", "text", None])
def test_a_key_that_is_no_digest_is_refused(key: object) -> None:
    with pytest.raises(ValueError, match="key"):
        Rollout().decide(key)  # type: ignore[arg-type] # the wrong type is the point
