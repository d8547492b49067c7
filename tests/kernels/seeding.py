"""Seeded errors: a module with a piece of its text exchanged, to see that the tests catch it."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tests.kernels.ways import DEVICE

without_gpu = pytest.mark.skipif(
    DEVICE.type != "cpu", reason="that tests have teeth is shown where nothing can be harmed"
)
"""For tests with seeded errors: on a card, some would write where they may not."""


def examples(count: int) -> int:
    """Return how many examples are drawn: each shape is a kernel of its own for a compiler."""
    return count if DEVICE.type == "cpu" else count // 4 + 1


def seeded(folder: Path, module: ModuleType, old: str, new: str) -> ModuleType:
    """Return a module as it would be with ``old`` exchanged for ``new``, wherever it stands."""
    text = Path(str(module.__file__)).read_text("utf-8")
    assert old in text, f"{module.__name__} has no {old!r}"
    file = folder / "seeded.py"
    file.write_text(text.replace(old, new), "utf-8")
    spec = spec_from_file_location(f"seeded_{module.__name__.rpartition('.')[2]}", file)
    assert spec is not None
    assert spec.loader is not None
    changed = module_from_spec(spec)
    spec.loader.exec_module(changed)
    return changed


def drawn(seed: int) -> torch.Generator:
    """Return a source of random numbers."""
    return torch.Generator().manual_seed(seed)


def shuffled_table(
    sizes: list[int], columns: int, source: torch.Generator, spare: int = 2
) -> tuple[torch.Tensor, int]:
    """Return a table of distinct pages in random order, and how many pages there are.

    Args:
        sizes: pages of each line.
        columns: columns of the table.
        source: of the order.
        spare: pages that nobody has, besides null page 0.
    """
    total = sum(sizes) + spare
    order = (torch.randperm(total, generator=source) + 1).int()
    table = torch.full((len(sizes), columns), -1, dtype=torch.int32)
    at = 0
    for line, size in enumerate(sizes):
        table[line, :size] = order[at : at + size]
        at += size
    return table, total + 1
