"""Loading back: how long it takes from each tier, beside the disk's own speed in the same run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch

from fivestate.impl.tiers.host import HostTier
from fivestate.impl.tiers.identity import StoreIdentity
from fivestate.impl.tiers.store import Store
from fivestate.impl.tiers.tensors import Tensors, memory
from fivestate.spec.reuse import Geometry
from fivestate.spec.reuse.files import preset
from fivestate.spec.vocabulary import COMPRESSED, WINDOW, CacheState

TOTAL_BYTES = 256 << 20
"""What is loaded of each kind of cell: enough for a p99, and no more than memory has."""

_CHUNK_BYTES = 8 << 20
_MOST_OBJECTS = 400
_FEWEST_OBJECTS = 8


@dataclass(frozen=True)
class Row:
    """One figure, and the same of what it is measured against.

    Attributes:
        what: which cell, from where, and which figure of it.
        figure: ours.
        unit: of both figures.
        peer: what ours is measured against, in the same run.
        peer_figure: the peer's.
        ratio: how many times better ours is; below 1 the peer is better.
    """

    what: str
    figure: float
    unit: str
    peer: str
    peer_figure: float
    ratio: float


@dataclass(frozen=True)
class Sample:
    """How long each of some reads took."""

    seconds: list[float]
    size_bytes: int

    def percentile(self, percent: int) -> float:
        """Return the milliseconds within which so many per cent of the reads ended."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]

    @property
    def speed(self) -> float:
        """Gigabytes a second, over all reads."""
        return self.size_bytes * len(self.seconds) / sum(self.seconds) / 1e9


def run(
    folder: Path | None = None,
    *,
    geometry: str = "dsv4-flash",
    total_bytes: int = TOTAL_BYTES,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Measure loads of a model's cells from host memory and from disk, warm and cold.

    A cold read is one whose pages the system was asked to drop. In a folder that is in memory that
    has no effect, and the figures called cold are then warm.

    Args:
        folder: where the disk to measure is; the system's folder for temporary files by default.
        geometry: name of the preset whose cells are loaded.
        total_bytes: what is loaded of each kind of cell.
        tell: called with what is being measured now.
    """
    rows: list[Row] = []
    for name, cell in cells(preset(geometry)):
        with tempfile.TemporaryDirectory(dir=folder) as path:
            tell(name)
            rows += _measure(name, cell, Path(path), total_bytes)
    return rows


def cells(geometry: Geometry) -> Iterator[tuple[str, Tensors]]:
    """Yield cells by what they are: entries of short and of long segments, and a window."""
    step = geometry.scheduler_block_size
    for tokens in (step, 16 * step, 64 * step):
        yield f"entries of {tokens:,} tokens", cell(geometry, COMPRESSED, tokens)
    yield "window", cell(geometry, WINDOW, geometry.widest_window)


def cell(geometry: Geometry, state: CacheState, tokens: int) -> Tensors:
    """Return a cell's pages, filled with noise: by group, shape (blocks, bytes), dtype uint8."""
    return {
        group.name: torch.randint(
            0, 256, (-(-tokens // group.block_size), group.layers * group.page_size_bytes)
        ).to(torch.uint8)
        for group in geometry.voting
        if group.state is state
    }


def _measure(name: str, cell: Tensors, path: Path, total_bytes: int) -> list[Row]:
    size = sum(tensor.nbytes for tensor in cell.values())
    count = max(_FEWEST_OBJECTS, min(_MOST_OBJECTS, total_bytes // size))
    keys = [str(number) for number in range(count)]
    into = {group: torch.zeros_like(tensor) for group, tensor in cell.items()}
    rows = _from_host(f"{name} from host", cell, into, keys)
    identity = StoreIdentity("measured", "1", 1)
    with Store.open(path / "store", identity=identity, capacity_bytes=1 << 40) as store:
        for key in keys:
            store.put(key, cell)
        plain = path / "plain"
        _write(plain, cell, count)
        files = [plain, *(path / "store" / "objects").iterdir()]
        for kind, prepare in (("cold", _forget), ("warm", _remember)):
            prepare(files)
            ours = _sample(size, keys, lambda key: store.get(key, into=into))
            prepare(files)
            peer = _sequential(plain, size)
            rows += _rows(f"{name} from disk, {kind}", ours, "one file, in sequence", peer)
    return rows


def _from_host(what: str, cell: Tensors, into: Tensors, keys: list[str]) -> list[Row]:
    size = sum(tensor.nbytes for tensor in cell.values())
    host = HostTier[str](len(keys) * size)
    for key in keys:
        host.put(key, cell)
    ours = _sample(size, keys, lambda key: host.get(key, into=into))
    with ExitStack() as stack:
        held = {key: stack.enter_context(host.reading(key)) for key in keys}
        peer = _sample(size, keys, lambda key: [into[g].copy_(t) for g, t in held[key].items()])
    return _rows(what, ours, "copied, not checked", peer)


def _sample(size_bytes: int, keys: list[str], read: Callable[[str], object]) -> Sample:
    seconds = []
    for key in keys:
        start = time.perf_counter()
        read(key)
        seconds.append(time.perf_counter() - start)
    return Sample(seconds, size_bytes)


def _rows(what: str, ours: Sample, peer: str, theirs: Sample) -> list[Row]:
    rows = []
    for percent in (50, 99):
        figure, other = ours.percentile(percent), theirs.percentile(percent)
        rows.append(Row(f"{what}, p{percent}", figure, "ms", peer, other, other / figure))
    rows.append(Row(what, ours.speed, "GB/s", peer, theirs.speed, ours.speed / theirs.speed))
    return rows


def _sequential(path: Path, size_bytes: int) -> Sample:
    """Read a file from its beginning to its end, and time each part that is as large as a cell."""
    buffer = memory(torch.zeros(size_bytes, dtype=torch.uint8))
    seconds = []
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        for begin in range(0, os.fstat(descriptor).st_size, size_bytes):
            start = time.perf_counter()
            done = 0
            while done < size_bytes:
                part = buffer[done : done + _CHUNK_BYTES]
                done += os.preadv(descriptor, [part], begin + done)
            seconds.append(time.perf_counter() - start)
    finally:
        os.close(descriptor)
    return Sample(seconds, size_bytes)


def _write(path: Path, cell: Tensors, count: int) -> None:
    with path.open("wb") as file:
        for _ in range(count):
            for tensor in cell.values():
                file.write(memory(tensor))
        file.flush()
        os.fsync(file.fileno())


def _forget(paths: list[Path]) -> None:
    """Ask the system to drop what it keeps of some files."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _remember(paths: list[Path]) -> None:
    """Let the system have all of some files in memory."""
    for path in paths:
        path.read_bytes()
