"""The TLA+ we write means what the specification means: read back, it counts the same."""

from pathlib import Path

import pytest
from tests.machines.circle import circle
from tests.machines.peterson import PETERSON
from tests.machines.transaction_commit import transaction
from tests.machines.two_phase import two_phase
from tests.tla_reader import Module

from fivestate.checker.counts import load, measure
from fivestate.checker.export import tla
from fivestate.checker.export.names import camel
from fivestate.spec.language import Model
from fivestate.spec.models import FAILS, MODELS

COMMITTED = load(Path(__file__).with_name("counts.json"))
READ_STATES = 500
"""Larger models are left out: the reader is slow."""

SMALL = [name for name, counts in COMMITTED.items() if counts.distinct <= READ_STATES]
OTHERS = [circle(), two_phase(3), transaction(3), PETERSON]
READ = [*(MODELS[name] for name in SMALL if name in MODELS), *OTHERS]


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_every_module_is_well_formed(model: Model) -> None:
    Module(*tla.export(model))


@pytest.mark.parametrize("model", READ, ids=lambda model: model.name)
def test_a_module_read_back_counts_the_same(model: Model) -> None:
    found, expected = Module(*tla.export(model)).search(), measure([model])[model.name]
    assert found.distinct == expected.distinct
    assert found.transitions == expected.transitions
    assert found.depth == expected.depth
    assert found.firings == {camel(name): n for name, n in expected.firings.items() if n}
    assert bool(found.violated) == (model in FAILS)
    assert len(found.refuted) == len(Module(*tla.export(model)).witnesses)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ('    /\\ manager = "OPEN"  \\* undecided\n', ""),
        ("heard' = [heard EXCEPT ![m] = TRUE]", "heard' = [heard EXCEPT ![m] = FALSE]"),
        ("    \\/ \\E m \\in Member : GiveUp(m)\n", ""),
    ],
)
def test_a_fault_in_a_module_is_found(line: str, instead: str) -> None:
    module, configuration = tla.export(two_phase(2))
    assert line in module
    found = Module(module.replace(line, instead), configuration).search()
    expected = measure([two_phase(2)])["two-phase-2"]
    assert (found.distinct, found.transitions) != (expected.distinct, expected.transitions)
