"""``fivestate bench recovery``: what it takes to have a prefix back, and what each tier does.

The disk is the one under the system's folder for temporary files; each figure stands beside the
same one of what is the least that could be done, in the same run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from fivestate.impl.allocator import Allocator, Settings
from fivestate.impl.chain import Node
from fivestate.impl.recovery import policies
from fivestate.impl.recovery.copies import HostCopies
from fivestate.impl.recovery.disk import DiskCopies
from fivestate.impl.recovery.worker import Worker
from fivestate.impl.tiers import Budget, Store, StoreIdentity
from fivestate.impl.tiers import bench as tiers
from fivestate.spec.need import blocks
from fivestate.spec.reuse import Geometry, Rates
from fivestate.spec.reuse.files import preset
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, Device

Said = Mapping[str, object]
"""A row, or a note: what the command line prints."""

Tell = Callable[[str], None]

GEOMETRY = "dsv4-flash"
GIGABYTE = 10**9
PERIODS = 8
"""Windows that the periodic policy keeps of a prompt."""


def bench(*, quick: bool, tell: Tell) -> Iterator[Said]:
    """Measure, and yield each row as soon as it is known.

    Args:
        quick: small sizes and few rounds.
        tell: called with what is being measured now.
    """
    total_bytes = (16 << 20) if quick else tiers.TOTAL_BYTES
    rates: dict[str, int] = {}
    for row in tiers.run(total_bytes=total_bytes, tell=tell):
        better = "more" if row.unit == "GB/s" else "less"
        yield _row(row.what, row.figure, row.unit, row.peer, row.peer_figure, better)
        for tier, field in (("host", "host_bytes_per_second"), ("cold", "disk_bytes_per_second")):
            if row.unit == "GB/s" and tier in row.what and "16,384" in row.what:
                rates[field] = int(row.figure * GIGABYTE)
    tell("a recovery")
    yield from recovery(1_024 if quick else 4_096, rounds=5 if quick else 40)
    tell("policies")
    yield from policy(Rates(**rates), prompt_tokens=4_096 if quick else 32_768)
    yield {
        "note": f"policies: {GEOMETRY}, everything on disk; time by these speeds: {Rates(**rates)}"
    }
    if find_spec("transformers") is None:
        yield {"note": "without transformers: no first token, and no shadow"}
        return
    yield from _models(quick=quick, tell=tell)


def recovery(tokens: int, rounds: int) -> Iterator[Said]:
    """Measure from admission to the last byte, beside the store's own reads of the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        allocator = _allocator(preset(GEOMETRY), tokens, Path(folder))
        disk = allocator.settings.disk
        if not isinstance(disk, DiskCopies):
            raise TypeError("the disk is one of DiskCopies")
        with Worker(allocator, budget=Budget(workers=2)) as worker:
            node = _stored(allocator, worker, tokens)
            keys = [cell.disk.key for cell in node.cells.values() if cell.disk is not None]
            ours, peer = list[float](), list[float]()
            for _ in range(rounds):
                _gone(allocator, node)
                ours.append(_seconds(lambda: _recovered(worker, node)))
                peer.append(_seconds(lambda: [disk.get(key) for key in keys]))
        disk.close()
    for percent in (50, 99):
        what = f"recovery of {tokens:,} tokens from disk, warm, p{percent}"
        figure, other = _percentile(ours, percent), _percentile(peer, percent)
        yield _row(what, figure, "ms", "the store's reads alone, in turn", other, "less")


def policy(rates: Rates, prompt_tokens: int) -> Iterator[Said]:
    """Yield what each policy for windows costs, beside the one that keeps everything."""
    found = policies.costs(
        preset(GEOMETRY),
        rates,
        prompt_tokens=prompt_tokens,
        period_tokens=prompt_tokens // PERIODS,
        forks=16,
    )
    every = list(found)
    full = every[0]
    for cost in every:
        name = f"windows {cost.name}{'' if cost.exact else ' (approximate)'}"
        kilobytes = [each.stored_bytes / 1_000 for each in (cost, full)]
        again = cost.replayed_tokens + cost.recomputed_tokens
        milliseconds = [1_000 * each.seconds[0] for each in (cost, full)]
        yield _row(f"{name}: for 1,000 tokens", kilobytes[0], "kB", "full", kilobytes[1], "less")
        yield _row(
            f"{name}: computed for a fork", again, "tokens", "no cache", cost.fork_tokens, "less"
        )
        yield _row(
            f"{name}: time to a fork, p50", milliseconds[0], "ms", "full", milliseconds[1], "less"
        )


def _models(*, quick: bool, tell: Tell) -> Iterator[Said]:
    """Yield what needs transformers."""
    from fivestate.impl.models.bench import PROMPTS, first_token  # noqa: PLC0415 -- it is optional
    from fivestate.impl.recovery.bench_shadow import overhead  # noqa: PLC0415 -- as above

    tell("the first token")
    prompts = PROMPTS[:2] if quick else PROMPTS
    for at in first_token(prompts, rounds=1 if quick else 3):
        what = f"first token of {at.prompt_tokens:,}, {at.resumed_tokens:,} reused"
        ours, peer = 1_000 * at.reuse_seconds, 1_000 * at.recompute_seconds
        yield _row(what, ours, "ms", "all of it computed", peer, "less")
    yield {
        "note": "first token and shadow: a tiny DeepSeek-V4 on the CPU: only ratios mean a thing"
    }
    tell("the shadow")
    for shadow in overhead(rounds=2 if quick else 8):
        yield _row(
            shadow.what, shadow.milliseconds, "ms", shadow.peer, shadow.peer_milliseconds, "less"
        )


def _allocator(geometry: Geometry, tokens: int, folder: Path) -> Allocator:
    identity = StoreIdentity.of(geometry, layout="0", weights=0)
    store = Store.open(folder, identity=identity, capacity_bytes=1 << 40)
    return Allocator(
        Settings(
            geometry=geometry,
            num_blocks={g.name: blocks(tokens, g.block_size) for g in geometry.groups},
            storable=frozenset({COMPRESSED, WINDOW}),
            host=HostCopies(),
            disk=DiskCopies(store, 1 << 40),
        )
    )


def _stored(allocator: Allocator, worker: Worker, tokens: int) -> Node:
    """Return a prefix that is known, with its entries and its window on disk."""
    step = allocator.settings.geometry.scheduler_block_size
    digests = [number.to_bytes(32, "big") for number in range(1, tokens // step + 1)]
    node = allocator.grow(allocator.root, digests)
    request = allocator.new_request()
    allocator.arrive(request, node)
    allocator.admit(request, node)
    for state in (COMPRESSED, WINDOW, *set(node.cells) - {COMPRESSED, WINDOW}):
        for group, ids in allocator.make(node, state).items():
            allocator.pools[group].storage[allocator.pools[group].index(ids)] = 7
        allocator.made(node, state)
    allocator.publish(node)
    allocator.resume(request, node)
    allocator.run(request)
    allocator.finish(request)
    worker.persist()
    worker.idle()
    return node


def _gone(allocator: Allocator, node: Node) -> None:
    """Leave nothing of a prefix but what is on disk."""
    for state in sorted(node.cells, key=lambda each: each is COMPRESSED):
        if node.cells[state].device is Device.READY:
            allocator.evict(node, state)
        if node.cells[state].copy is not None:
            allocator.drop(node, state)


def _recovered(worker: Worker, node: Node) -> None:
    """Admit a request, wait for the bytes, and let it go; what was loaded stays."""
    allocator = worker.allocator
    request = allocator.new_request()
    allocator.arrive(request, node)
    allocator.admit(request, node)
    worker.recover(node)
    worker.wait(node)
    allocator.abort_recovery(request, node)


def _seconds(way: Callable[[], object]) -> float:
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def _percentile(seconds: list[float], percent: int) -> float:
    """Return the milliseconds within which so many per cent ended."""
    ordered = sorted(seconds)
    return 1_000 * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _row(  # noqa: PLR0913, PLR0917 -- a row has six columns
    what: str, figure: float, unit: str, peer: str, peer_figure: float, better: str
) -> Said:
    return {
        "what": what,
        "figure": figure,
        "unit": unit,
        "peer": peer,
        "peer_figure": peer_figure,
        "better": better,
    }
