"""The allocator does what the specification says: edge by edge, over the slices.

In CI some edges of every slice, and every edge of the small hybrid model. With ``FIVESTATE_FULL=1``
more than a million, among them every edge of the slices that say so.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pytest
from tests.impl.alone import alone, starts, told
from tests.impl.tour import Disagreement, Report, Tour

from fivestate.impl.allocator import Allocator, Doubt
from fivestate.impl.chain import Cell
from fivestate.impl.pools import Blocks, Owner
from fivestate.spec.allocator import ALLOCATOR, NEXT
from fivestate.spec.models import HOMOGENEOUS, HYBRID, MODELS, SLICES

FULL = os.environ.get("FIVESTATE_FULL") == "1"
EVERY_EDGE = 1 << 62

COMPLETE = (HOMOGENEOUS, HYBRID, *(MODELS[name] for name in ("one-slot", "sharing-tight") if FULL))
"""The models of which every edge is taken.

In the homogeneous one a hash hit is a hit. The allocator looks at every cell and agrees: there, it
makes no difference.
"""

EDGES = 50_000 if FULL else 4_000
"""How many edges are taken of each other slice."""

PROMISED = 1_000_000 if FULL else 100_000

COUNTS = json.loads((Path(__file__).parents[1] / "counts.json").read_text("utf-8"))


@cache
def toured(name: str) -> Report:
    """Tour a model, from a few states that are worth starting from."""
    model = MODELS[name]
    tour = Tour(model)
    for story in starts(model):
        start = told(tour.graph, story)
        if start is not None:
            tour.follow(start[1])
    return tour.cover(EVERY_EDGE if model in COMPLETE else EDGES)


@pytest.mark.parametrize("name", [model.name for model in SLICES if model not in COMPLETE])
def test_a_tour_agrees_on_every_edge_and_refusal(name: str) -> None:
    report = toured(name)
    assert report.complete or report.edges == EDGES


@pytest.mark.parametrize("name", [model.name for model in COMPLETE])
def test_every_edge_of_a_small_model_is_taken(name: str) -> None:
    report = toured(name)
    assert report.complete
    assert (report.states, report.edges) == (COUNTS[name]["distinct"], COUNTS[name]["transitions"])
    assert dict(report.fired) == {a: n for a, n in COUNTS[name]["firings"].items() if n}


def test_the_tours_take_as_many_edges_as_promised(capsys: pytest.CaptureFixture[str]) -> None:
    reports = [toured(name) for name in {model.name for model in (*COMPLETE, *SLICES)}]
    edges, states = sum(r.edges for r in reports), sum(r.states for r in reports)
    refusals = sum(sum(r.refused.values()) for r in reports)
    with capsys.disabled():
        print(f"\n{edges:,} distinct edges, {states:,} states, {refusals:,} refusals agree")  # noqa: T201 -- the number is what was promised
    assert edges >= PROMISED


def test_every_action_is_taken_and_refused_by_each_of_its_guards() -> None:
    reports = [toured(model.name) for model in SLICES]
    fired = {name for report in reports for name in report.fired}
    refused = {guard for report in reports for guard in report.refused} | set(alone())
    assert fired == {source.name for source in NEXT}
    assert refused == {(a.name, guard.name) for a in ALLOCATOR.actions for guard in a.guards}


class Forgetful(Allocator):
    """An allocator that forgets that something of a prefix was lost."""

    def _take_frame(self, cell: Cell) -> None:
        super()._take_frame(cell)
        cell.node.losses -= 1


class Leaky(Allocator):
    """An allocator that frees what a transfer may still touch, and calls it withheld."""

    def _withhold(self, cell: Cell) -> Doubt:
        doubt = super()._withhold(cell)
        for group, blocks in doubt.blocks.items():
            self.pools[group].give(blocks, Owner.DOOMED)
        return doubt


class Hasty(Allocator):
    """An allocator that takes for complete what is only begun."""

    def _start_writing(self, cell: Cell) -> dict[str, Blocks]:
        blocks = super()._start_writing(cell)
        self.made(cell.node, cell.state)
        return blocks


@pytest.mark.parametrize("faulty", [Forgetful, Leaky, Hasty])
def test_a_faulty_effect_is_found(faulty: type[Allocator]) -> None:
    with pytest.raises(Disagreement):
        Tour(HYBRID, faulty).cover(EVERY_EDGE)
