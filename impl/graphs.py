"""Graph runner: a step of fixed shape, replayed where the allocator allows it, else run eagerly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from fivestate.impl.allocator import Allocator, Captured
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import Phase

Buffers = Mapping[str, torch.Tensor]
"""The tensors that a step reads its arguments from and writes its results to."""


@dataclass(frozen=True)
class Buffer:
    """One fixed buffer of a step.

    Attributes:
        tensor: where its values are; its address never changes.
        padding: what rows hold that a step does not use: -1 for a slot that is not written, 0 for
            a block id, which is the null block.
    """

    tensor: torch.Tensor
    padding: int = -1


class GraphRunner:
    """A step that is captured once for each prefix and replayed on it.

    On a GPU a step is a CUDA graph. On a CPU nothing is recorded: a replay runs the same function
    over the same buffers, under the same conditions, so that what an engine does about graphs can
    be tested without one.

    Args:
        allocator: what says whether a replay is allowed.
        step: the step; it uses the buffers and the pools, and what it allocates is its own.
        buffers: by name, the fixed buffers.
    """

    def __init__(
        self,
        allocator: Allocator,
        step: Callable[[Buffers], None],
        buffers: Mapping[str, Buffer],
    ) -> None:
        self._allocator, self._step = allocator, step
        self._buffers = dict(buffers)
        self._tensors = {name: buffer.tensor for name, buffer in self._buffers.items()}
        self._addresses = {name: tensor.data_ptr() for name, tensor in self._tensors.items()}
        self._graphs: dict[Captured, torch.cuda.CUDAGraph | None] = {}
        self._on_gpu = torch.device(allocator.settings.device).type == "cuda"

    def capture(self, request: Request) -> Captured:
        """Capture the step for the prefix on which a request runs, on padding alone.

        What padding writes goes to the null blocks, so they are cleaned behind it.

        Raises:
            Refused: the allocator does not allow it now (A-71).
        """
        captured = self._allocator.capture(request, request.target)
        self.fill()
        self._graphs[captured] = self._record() if self._on_gpu else None
        if not self._on_gpu:
            self._step(self._tensors)
        self._allocator.scrub()
        return captured

    def _record(self) -> torch.cuda.CUDAGraph:
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch declares no type for it
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self._step(self._tensors)  # whatever is initialised lazily is, before it is recorded
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step(self._tensors)
        return graph

    def begin(self, request: Request) -> bool:
        """Start a leased request on its prefix: by replay if everything stands, else eagerly.

        Returns:
            Whether it replays.

        Raises:
            Refused: the request has not leased its prefix.
        """
        if request.target.graph in self._graphs:
            try:
                self._allocator.replay(request, request.target)
            except Refused as refused:
                if refused.guard == "leased":
                    raise
            else:
                return True
        self._allocator.run(request)
        return False

    def fill(self, **values: torch.Tensor) -> None:
        """Put values into the fixed buffers, and padding into the rows that they leave.

        Args:
            values: by name of the buffer, its first rows.

        Raises:
            ValueError: a buffer is unknown or moved, or values do not fit; nothing is put.
        """
        for name, value in values.items():
            tensor = self._tensors.get(name)
            if tensor is None:
                known = ", ".join(self._tensors)
                raise ValueError(f"there is no buffer {name!r}; known: {known}")
            if value.dtype != tensor.dtype or value.device != tensor.device:
                message = f"buffer {name}: {value.dtype} on {value.device}"
                raise ValueError(f"{message}: {tensor.dtype} on {tensor.device} is allowed")
            if len(value) > len(tensor) or value.shape[1:] != tensor.shape[1:]:
                message = f"buffer {name}: shape {tuple(value.shape)}"
                raise ValueError(f"{message}: at most {tuple(tensor.shape)} is allowed")
        for name, tensor in self._tensors.items():
            if tensor.data_ptr() != self._addresses[name]:
                raise ValueError(f"buffer {name} has moved: a captured step would not see it")
        for name, buffer in self._buffers.items():
            rows = values.get(name, buffer.tensor[:0])
            buffer.tensor[: len(rows)] = rows
            buffer.tensor[len(rows) :] = buffer.padding

    def step(self, request: Request, **values: torch.Tensor) -> None:
        """Take one step of a request that runs.

        Raises:
            ValueError: the request does not run, or values do not fit; no step is taken.
        """
        if request.phase not in (Phase.RUNNING, Phase.REPLAYING):
            raise ValueError(f"{request!r} is {request.phase.name}: it takes no step")
        self.fill(**values)
        node = request.target
        graph = self._graphs.get(node.graph) if isinstance(node.graph, Captured) else None
        if request.phase is Phase.REPLAYING and graph is not None:
            graph.replay()
        else:
            self._step(self._tensors)

    def invalidate(self, request: Request) -> None:
        """Give up the captured step of a request's prefix; its cells may go again.

        Raises:
            Refused: there is none, or it is being replayed (A-74).
        """
        node = request.target
        graph = node.graph
        self._allocator.invalidate(node)
        if isinstance(graph, Captured):
            self._graphs.pop(graph, None)
