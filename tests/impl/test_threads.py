"""Eight threads over one allocator: every frame has one owner, and nobody reads wrong bytes."""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest
from tests.impl.crowd import Crowd, Slow

FULL = os.environ.get("FIVESTATE_FULL") == "1"
SECONDS = 60.0 if FULL else 4.0


def test_a_crowd_finds_nothing_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    crowd = Crowd()
    crowd.run(SECONDS)
    assert not crowd.wrong
    crowd.allocator.check()
    happened = [
        *("lease", "admit", "resume", "store_begin", "drop", "evict", "withheld", "compared"),
        *("reclassify", "lease refused by fresh", "admit refused by room"),
    ]
    assert [name for name in happened if not crowd.done[name]] == []
    with capsys.disabled():
        told = ", ".join(f"{crowd.done[name]:,} {name}" for name in happened)
        print(f"\n{sum(crowd.done.values()):,} steps in {SECONDS:g} s: {told}")  # noqa: T201 -- a run's size


class Trusting(Slow):
    """An allocator in which a verdict stands for ever."""

    def _require(self, action: str, guard: str, truth: bool, /, **given: object) -> None:  # noqa: FBT001 -- as the hook
        if (action, guard) != ("lease", "fresh"):
            super()._require(action, guard, truth, **given)


class Unlocked(Slow):
    """An allocator without its lock."""

    def __init__(self, settings: object) -> None:
        super().__init__(settings)  # type: ignore[arg-type]  # as it is called
        self._lock = nullcontext()  # type: ignore[assignment]  # that is the fault


@pytest.mark.parametrize("faulty", [Trusting, Unlocked])
def test_the_same_crowd_finds_a_missing_check_or_lock(faulty: type[Slow]) -> None:
    crowd = Crowd(faulty)
    crowd.run(60.0)
    assert crowd.wrong
