"""``fivestate bench kernels``: milliseconds, and what share of the copy bandwidth they are.

Found by the entry point ``kernels`` of the group ``fivestate.benches``. Each figure has its peer
from the same run: the bandwidth of ``copy_`` over a gigabyte, what one would write in torch, and
that compiled. Bytes are compared before anything is timed. Without a GPU nothing is compared: the
speed of an interpreter says nothing about a kernel's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from fivestate.kernels.bench.cases import Case, Run, cases
from fivestate.kernels.device.launch import INSTALLED, debugging

DEVICE = "cuda"
FULL_BYTES, QUICK_BYTES = 1_000_000_000, 16_000_000
ROUNDS, QUICK_ROUNDS = 20, 3
FLUSH_BYTES = 256 << 20
"""Read before each round: an H200 has 50 MB of cache, others up to 126."""
REQUESTS = 4_096
CONTEXT_TOKENS = 131_072
COMPILE_SECONDS = 110.0
"""Peers are compiled for so long at most; what comes later has its plain peer only."""

Tell = Callable[[str], None]
Said = Mapping[str, Any]


class WrongError(Exception):
    """What is measured computes something else than its peer."""


def bench(*, quick: bool, tell: Tell) -> Iterator[Said]:
    """Yield rows and notes as ``fivestate.checker.bench.elsewhere`` wants them."""
    if not torch.cuda.is_available() or not INSTALLED:
        missing = "no GPU is here" if INSTALLED else "Triton is not installed"
        yield {"note": f"{missing}: nothing is compared; see kernels/RESULTS.md"}
        return
    yield {"note": f"{torch.cuda.get_device_name()}, torch {torch.__version__}"}
    if debugging():
        yield {"note": "FIVESTATE_DEBUG=1: times include checks that wait for the device"}
    rounds = QUICK_ROUNDS if quick else ROUNDS
    total_bytes = QUICK_BYTES if quick else FULL_BYTES
    device = torch.device(DEVICE)
    tell("copy_")
    bandwidth = _copy_bandwidth(device, total_bytes, rounds)
    seconds = 0.0 if quick else COMPILE_SECONDS
    until = time.monotonic() + seconds
    wrong = []
    for case in cases(device, total_bytes, REQUESTS, CONTEXT_TOKENS):
        tell(case.name)
        try:
            yield from measured(case, bandwidth, lambda run: milliseconds(run, rounds), until)
        except Exception as error:  # noqa: BLE001 -- one case may not hide the others
            said = str(error).strip().partition("\n")[0]
            wrong.append(f"{case.name}: {type(error).__name__}: {said}")
    if time.monotonic() > until:
        yield {"note": f"peers were compiled for {seconds:g} s: some were not"}
    if wrong:  # last, because it ends the bench
        yield {"refuted": "; ".join(wrong)}


def measured(
    case: Case, bandwidth: float, timed: Callable[[Run], float], until: float
) -> Iterator[Said]:
    """Yield the rows of one case, whose results are compared before anything is timed.

    Args:
        case: what is measured.
        bandwidth: of a plain copy, in GB/s, reads and writes together.
        timed: returns the milliseconds of a call.
        until: the time, of the monotonic clock, from which on nothing is compiled.

    Raises:
        WrongError: it computes something else than its first peer.
    """
    case.run()
    for peer in case.peers.values():
        peer()
    if not case.right():
        raise WrongError(f"bytes differ from those of {next(iter(case.peers))}")
    ours = timed(case.run)
    if case.moved_bytes:
        figure = case.moved_bytes / ours / 1e6
        yield _row(case.name, figure, "GB/s", "copy_ of a gigabyte", bandwidth, better="more")
    for name, peer in case.peers.items():
        yield _row(case.name, ours, "ms", name, timed(peer), better="less")
        if case.compiled and time.monotonic() < until:
            try:
                compiled = timed(torch.compile(peer))
            except Exception as error:  # noqa: BLE001 -- whatever it is, it is the peer's
                said = str(error).strip().partition("\n")[0]
                yield {"note": f"{case.name}: {name} does not compile: {said}"}
            else:
                yield _row(case.name, ours, "ms", f"{name}, compiled", compiled, better="less")


def _copy_bandwidth(device: torch.device, total_bytes: int, rounds: int) -> float:
    """Return what a plain copy reads and writes together, in GB/s."""
    source = torch.zeros(total_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * total_bytes / milliseconds(lambda: target.copy_(source), rounds) / 1e6


def milliseconds(run: Run, rounds: int) -> float:
    """Return the median time of a call on the GPU, replayed as a graph where that is possible.

    A graph leaves out what Python costs, for us and for the peer.
    """
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    replay = _captured(run)
    replay()
    others = torch.ones(FLUSH_BYTES // 4, device=DEVICE)
    found = []
    for _ in range(rounds):
        others.amax()  # reads more than the cache holds, so that the call finds nothing there
        start, end = (_event() for _ in range(2))
        start.record()
        replay()
        end.record()
        end.synchronize()
        found.append(float(start.elapsed_time(end)))
    return sorted(found)[len(found) // 2]


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's own


def _captured(run: Run) -> Run:
    """Return what replays a call; the call itself, if it waits for the device and cannot be."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            run()
    except RuntimeError:
        torch.cuda.synchronize()
        return run
    return graph.replay


def _row(
    what: str, figure: float, unit: str, peer: str, peer_figure: float, *, better: str
) -> dict[str, Any]:
    return {
        "what": what,
        "figure": figure,
        "unit": unit,
        "peer": peer,
        "peer_figure": peer_figure,
        "better": better,
    }
