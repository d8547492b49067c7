"""Kernels are tested checked, and on a CPU through the interpreter."""

from collections.abc import Iterator

import pytest
import torch
from tests.kernels.ways import DEVICE


@pytest.fixture(autouse=True, scope="module")
def _checked() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIVESTATE_DEBUG", "1")
        if DEVICE.type == "cpu":
            patch.setenv("FIVESTATE_INTERPRET", "1")
        yield


@pytest.fixture(name="device", scope="session")
def _device() -> torch.device:
    """Where the kernels run: ``cpu`` is the interpreter, ``cuda`` the GPU."""
    return DEVICE
