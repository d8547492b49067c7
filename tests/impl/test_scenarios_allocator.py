"""Faults reported in public, told to the allocator: the runs of the machine, over real memory.

Where a scenario takes the right machine through its steps, an allocator goes with it: behind each
step it is in the same state, and what the machine refuses it refuses by the same guard. Verdicts
are read from the file and compared with the allocator's.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests import test_scenarios_machine as machine
from tests.impl.twin import Twin
from tests.scenarios import runs

from fivestate.spec.allocator import ALLOCATOR
from fivestate.spec.language import Model, Refused, Run
from fivestate.spec.models import HOMOGENEOUS

WITHOUT = {
    "B28": "the machine of one sequence",
    "B77": "the machine of one sequence",
}
"""Scenarios that are not about the allocator, and what they are about."""


class Played(Run):
    """A run of the machine with an allocator beside it, which is asked for values."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.twin = Twin(model)

    def take(self, action: str, *arguments: str) -> None:
        """Take a step on both; if the machine refuses it, the allocator has to as well."""
        step = self.step(action, *arguments)
        number, refusal = self.twin.numbers[step.label], self.refusal(step)
        if refusal is None:
            self.twin.take(number)
        else:
            found = self.twin.refusal(number)
            assert found is not None
            assert (found.clause, found.guard) == (refusal.clause, refusal.guard)
            assert self.twin.state() == self.state
        super().take(action, *arguments)
        assert self.twin.state() == self.state
        self.twin.allocator.check()

    def value(self, cell: str) -> str:
        """Return the value of a cell as the allocator has it."""
        (at,) = (at for at, info in enumerate(self.model.cells) if info.name == cell)
        return self.model.show(self.model.cells[at].type, self.twin.state()[at])


def is_right(model: Model) -> bool:
    """Say whether it is a model of the allocator whose hits may be used."""
    looks = not model.constant("hash_only", ()) or model is HOMOGENEOUS
    return model.machine is ALLOCATOR and looks


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Let an allocator go along wherever the right machine is taken through steps."""
    told: Counter[str] = Counter()

    def right(model: Model, *steps: str) -> Run:
        if not is_right(model):
            return runs.right(model, *steps)
        run = Played(model)
        for step in steps:
            runs.take(run, step)
            told["taken"] += 1
        return run

    def refusal(model: Model, *steps: str) -> str:
        if not is_right(model):
            return runs.refusal(model, *steps)
        run = right(model, *steps[:-1])
        try:
            runs.take(run, steps[-1])
        except Refused as refused:
            told["refused"] += 1
            return refused.guard
        return ""

    monkeypatch.setattr(machine, "right", right)
    monkeypatch.setattr(machine, "refusal", refusal)
    return told


@pytest.mark.parametrize("scenario", machine.RUN)
def test_the_allocator_refuses_or_tells_what_the_file_says(
    scenario: str,
    played: Counter[str],
) -> None:
    machine.RUN[scenario](machine.SCENARIOS[scenario])
    assert (played["taken"] > 0) == (scenario not in WITHOUT)
