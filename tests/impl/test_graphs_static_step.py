"""A captured step that recovers inside, on the graph runner: D-30, with real buffers."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from tests.impl.twin import RUNS_ON_P0, Twin

from fivestate.impl.graphs import Buffer, Buffers, GraphRunner
from fivestate.impl.requests import Request
from fivestate.spec.models import MODELS

ROWS, LANES = 3, 2


class Engine:
    """A batch whose rows fold what they owe in fixed lanes, and then sum their entries.

    Entries are in a table of ``ROWS + 1`` rows, the last of which stands for the null block: a lane
    without work writes there. ``decides`` is the fault: what the first run, on padding, had to do
    is what every later one does.
    """

    def __init__(self, *, decides: bool = False) -> None:
        self.twin = Twin(MODELS["graph"])
        self.entries = torch.zeros((ROWS + 1, LANES), dtype=torch.int64)
        self.decides, self.runs_lanes = decides, True
        self.captured = False
        self.runner = GraphRunner(
            self.twin.allocator,
            self.step,
            {
                "work": Buffer(torch.zeros((ROWS, LANES), dtype=torch.int64), padding=-1),
                "live": Buffer(torch.zeros(ROWS, dtype=torch.int64), padding=0),
                "tokens": Buffer(torch.zeros(ROWS, dtype=torch.int64), padding=0),
            },
        )
        self.twin.tell(*RUNS_ON_P0)
        self.request = self.twin.requests[0]

    def step(self, buffers: Buffers) -> None:
        """Fold in every lane, then compute every row; what is padding goes to the last row."""
        work, live = buffers["work"], buffers["live"]
        if not self.captured:
            self.runs_lanes, self.captured = not self.decides or bool((work >= 0).any()), True
        if self.runs_lanes:
            rows = torch.arange(ROWS)[:, None].expand(-1, LANES)
            rows = torch.where(work >= 0, rows, ROWS)
            lanes = torch.arange(LANES).expand(ROWS, -1)
            self.entries[rows, lanes] = torch.where(work >= 0, work, 0)
        buffers["tokens"].copy_(self.entries[:ROWS].sum(1) * live)

    def replaying(self) -> Request:
        """Capture the step, and return a request that replays it."""
        self.runner.capture(self.request)
        self.twin.tell("finish(r0)", "arrive(r1, p0)", "lease(r1)")
        request = self.twin.requests[1]
        assert self.runner.begin(request)
        return request

    def stepped(self, request: Request, owed: tuple[int, ...]) -> list[int]:
        """Step the first ``len(owed)`` rows, each owing so many entries; return the tokens."""
        work = torch.tensor(
            [[i + 1 if i < n else -1 for i in range(LANES)] for n in owed], dtype=torch.int64
        )
        live = torch.ones(len(owed), dtype=torch.int64)
        self.runner.step(request, work=work.reshape(-1, LANES), live=live)
        tokens: list[int] = self.runner._tensors["tokens"].tolist()
        return tokens


def expected(owed: tuple[int, ...]) -> list[int]:
    """Return what each row sums: its entries 1 .. n; nothing where nobody is."""
    return [n * (n + 1) // 2 for n in owed] + [0] * (ROWS - len(owed))


DEBTS = [owed for rows in range(ROWS + 1) for owed in product(range(LANES + 1), repeat=rows)]


@pytest.mark.parametrize("owed", DEBTS, ids=str)
def test_a_replay_recovers_in_its_lanes_what_an_eager_step_does(owed: tuple[int, ...]) -> None:
    eager, graph = Engine(), Engine()
    assert eager.stepped(eager.request, owed) == expected(owed)
    assert graph.stepped(graph.replaying(), owed) == expected(owed)
    assert graph.entries[ROWS].tolist() == [0] * LANES


def test_lanes_decided_at_capture_are_never_run() -> None:
    engine = Engine(decides=True)
    assert engine.stepped(engine.replaying(), (1, 2)) != expected((1, 2))


def test_a_row_whose_request_has_left_is_padding_in_the_next_replay() -> None:
    engine = Engine()
    request = engine.replaying()
    engine.stepped(request, (2, 1))
    kept = engine.entries.clone()
    assert engine.stepped(request, (0,)) == [kept[0].sum().item(), 0, 0]
    assert engine.entries.equal(kept)
