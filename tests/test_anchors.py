"""Machines that others have published with their counts, written in our language.

Our engines, exports and interpreter share their trees; only such a count comes from outside.
TLC's "states generated" are our transitions and one more, for the first state is generated too;
its depth counts states along a path, ours steps.
"""

import pytest
from tests.machines.peterson import PETERSON
from tests.machines.transaction_commit import transaction
from tests.machines.two_phase import two_phase
from tests.need_spin import needs_spin

from fivestate.checker.counts import Counts, measure
from fivestate.checker.export.crosscheck import spin_counts
from fivestate.spec.language import Model

PUBLISHED = {
    "two-phase-3": (two_phase(3), 288, 1_146, 11),
    "transaction-3": (transaction(3), 34, 94, 7),
    "peterson": (PETERSON, 42, 77, 11),
}


def as_tlc_counts(counts: Counts) -> tuple[int, int, int]:
    return counts.distinct, counts.transitions + 1, counts.depth + 1


def python_counts(model: Model) -> Counts:
    return measure([model], "python")[model.name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str) -> None:
    model, *published = PUBLISHED[name]
    assert as_tlc_counts(python_counts(model)) == tuple(published)


@needs_spin
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts_by_spin(name: str) -> None:
    model, *published = PUBLISHED[name]
    assert as_tlc_counts(spin_counts(model)) == tuple(published)
    assert spin_counts(model) == python_counts(model)


def test_two_phase_commit_with_six_participants() -> None:
    assert python_counts(two_phase(6)).distinct == 50_816


@needs_spin
def test_two_phase_commit_with_six_participants_by_spin() -> None:
    assert spin_counts(two_phase(6)).distinct == 50_816
