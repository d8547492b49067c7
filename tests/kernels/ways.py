"""The two ways to run a wrapper, each held against the same oracle; and poisoned memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

DEVICE = torch.device(os.environ.get("FIVESTATE_TEST_DEVICE", "cpu"))
WAYS = ("reference", "kernel")
POISON = 0xA5

each_way = pytest.mark.parametrize("way", WAYS)
needs_interpreter = pytest.mark.skipif(
    DEVICE.type != "cpu", reason="a compiled kernel can be neither patched nor watched"
)


@contextmanager
def running(way: str) -> Iterator[torch.device]:
    """Let wrappers take a way while the block runs, and give the device for its tensors.

    The kernel runs on the GPU if there is one, else in the interpreter.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIVESTATE_DEBUG", "1")
        if way == "reference":
            patch.delenv("FIVESTATE_INTERPRET", raising=False)
            yield torch.device("cpu")
        elif DEVICE.type == "cpu":
            patch.setenv("FIVESTATE_INTERPRET", "1")
            yield DEVICE
        else:
            yield DEVICE


def poisoned(*shape: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """Return bytes that whoever writes too much would change."""
    return torch.full(shape, POISON, dtype=torch.uint8, device=device)


def random_bytes(*shape: int, seed: int = 0, device: torch.device | str = "cpu") -> torch.Tensor:
    """Return bytes that differ from run to run of nothing but the seed."""
    source = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=source).to(device)


@contextmanager
def stores() -> Iterator[list[int]]:
    """Give the addresses that the interpreter stores to while the block runs, in order."""
    from triton.runtime.interpreter import interpreter_builder as builder  # noqa: PLC0415 -- CPU

    store = builder.create_masked_store
    found: list[int] = []

    def watched(pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        found.extend(int(each) for each in pointers.data[mask.data.astype(bool)])
        return store(pointers, value, mask, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "create_masked_store", watched)
        yield found
