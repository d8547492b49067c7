"""Captured steps: replayed where everything stands, run eagerly where not, with the same result."""

from __future__ import annotations

import pytest
import torch
from tests.impl.twin import RUNS_ON_P0, Twin

from fivestate.impl.graphs import Buffer, Buffers, GraphRunner
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.models import MODELS
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, Phase


class Stage:
    """A prefix in a cache with captured graphs, and a step that sums the pages it is given."""

    def __init__(self) -> None:
        self.twin = Twin(MODELS["graph"])
        self.allocator = self.twin.allocator
        self.node, self.requests = self.twin.prefixes[0], self.twin.requests
        self.storage = self.allocator.pools["c"].storage
        self.calls = 0
        self.runner = GraphRunner(
            self.allocator,
            self.sums,
            {
                "blocks": Buffer(torch.zeros(4, dtype=torch.int64), padding=0),
                "slots": Buffer(torch.zeros(4, dtype=torch.int64)),
                "sums": Buffer(torch.zeros(4, dtype=torch.int64), padding=0),
            },
        )
        self.tell = self.twin.tell
        self.tell(*RUNS_ON_P0)

    def sums(self, buffers: Buffers) -> None:
        """Sum the pages of some blocks; on padding alone, it writes to the null block."""
        self.calls += 1
        buffers["sums"].copy_(self.storage[buffers["blocks"]].long().sum(1))
        if (buffers["slots"] < 0).all():
            self.storage[buffers["blocks"]] = 1

    def again(self) -> Request:
        """Return a request that leases the prefix."""
        self.tell("finish(r0)", "arrive(r1, p0)", "lease(r1)")
        return self.requests[1]

    def stepped(self, request: Request) -> list[int]:
        """Take one step over the entries' block, and return the sums."""
        blocks = torch.from_numpy(self.node.cells[COMPRESSED].blocks["c"])
        self.runner.step(request, blocks=blocks, slots=blocks)
        sums: list[int] = self.runner._tensors["sums"].tolist()
        return sums


def test_a_replay_gives_what_the_step_gives_eagerly() -> None:
    stage = Stage()
    eager = stage.stepped(stage.requests[0])
    stage.calls = 0
    stage.runner.capture(stage.requests[0])
    request = stage.again()
    assert stage.runner.begin(request)
    assert request.phase is Phase.REPLAYING
    assert stage.stepped(request) == eager
    assert eager[0] > 0
    assert eager[1:] == [0, 0, 0]


def test_behind_a_capture_the_null_block_is_clean() -> None:
    stage = Stage()
    stage.runner.capture(stage.requests[0])
    assert stage.calls == 1  # the step ran on padding, and wrote to block 0
    assert not stage.allocator.null_dirty
    stage.allocator.check()


def test_with_a_dirty_null_block_a_step_runs_eagerly() -> None:
    stage = Stage()
    stage.runner.capture(stage.requests[0])
    request = stage.again()
    stage.allocator.null_dirty = True
    assert not stage.runner.begin(request)
    assert request.phase is Phase.RUNNING


def test_what_moved_since_it_was_captured_is_not_replayed() -> None:
    stage = Stage()
    stage.runner.capture(stage.requests[0])
    request = stage.again()
    stage.allocator.pools["c"].generation[stage.node.cells[COMPRESSED].blocks["c"]] += 1
    assert not stage.runner.begin(request)


def test_a_captured_cell_stays_until_the_graph_is_given_up() -> None:
    stage = Stage()
    stage.runner.capture(stage.requests[0])
    request = stage.again()
    stage.allocator.abort_leased(request)
    with pytest.raises(Refused, match="uncaptured"):
        stage.allocator.evict(stage.node, WINDOW)
    stage.tell("arrive(r1, p0)", "lease(r1)")
    stage.runner.invalidate(request)
    assert not stage.runner.begin(request)
    stage.allocator.finish(request)
    stage.allocator.evict(stage.node, WINDOW)
    stage.allocator.check()


def test_a_graph_is_not_given_up_under_a_replay() -> None:
    stage = Stage()
    stage.runner.capture(stage.requests[0])
    request = stage.again()
    stage.runner.begin(request)
    with pytest.raises(Refused, match="quiet"):
        stage.runner.invalidate(request)


def test_who_has_not_leased_does_not_begin() -> None:
    stage = Stage()
    stage.runner.capture(stage.requests[0])
    with pytest.raises(Refused, match="leased"):
        stage.runner.begin(stage.requests[0])
    stage.allocator.finish(stage.requests[0])
    stage.tell("arrive(r1, p0)")
    with pytest.raises(ValueError, match="takes no step"):
        stage.runner.step(stage.requests[1])


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"block": torch.zeros(1, dtype=torch.int64)}, "no buffer 'block'"),
        ({"blocks": torch.zeros(1)}, "torch.int64 on cpu is allowed"),
        ({"blocks": torch.zeros(1, dtype=torch.int64, device="meta")}, "on cpu is allowed"),
        ({"blocks": torch.zeros(5, dtype=torch.int64)}, r"at most \(4,\) is allowed"),
        ({"blocks": torch.zeros((1, 2), dtype=torch.int64)}, r"shape \(1, 2\)"),
    ],
)
def test_values_that_do_not_fit_change_no_buffer(
    values: dict[str, torch.Tensor], match: str
) -> None:
    stage = Stage()
    stage.runner.fill(sums=torch.arange(4))
    with pytest.raises(ValueError, match=match):
        stage.runner.step(stage.requests[0], **values)
    assert stage.runner._tensors["sums"].tolist() == [0, 1, 2, 3]


def test_a_buffer_that_moved_is_refused() -> None:
    stage = Stage()
    tensor = stage.runner._tensors["sums"]
    tensor.set_(torch.zeros(4, dtype=torch.int64).untyped_storage())
    with pytest.raises(ValueError, match="has moved"):
        stage.runner.fill()
