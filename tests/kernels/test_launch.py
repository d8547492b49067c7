"""Who computes: the reference, the interpreter or the device; and what a checked launch refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tests.kernels.ways import DEVICE, needs_interpreter, poisoned

from fivestate.kernels.device import launch as module
from fivestate.kernels.device.launch import Pointer, Scalar, by_triton, constexpr, jit, launch, tl


@jit
def _fill(
    out: Pointer,
    page: Pointer,
    count: Scalar,
    STRIDE: constexpr,  # noqa: N803 -- a compile-time constant is written in capitals
) -> None:
    at = tl.arange(0, 8)
    offset = tl.load(page) * STRIDE
    tl.store(out + offset + at, at.to(tl.uint8), mask=at < count)


@jit
def _add(out: Pointer, at: Scalar) -> None:
    tl.atomic_add(out + at, 1, sem="relaxed")


def fill(out: torch.Tensor, page: int, count: int, stride: int, kind: torch.dtype) -> None:
    launch(_fill, (1,), out, torch.tensor([page], dtype=kind, device=DEVICE), count, STRIDE=stride)


def test_cpu_tensors_take_the_reference_unless_the_interpreter_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensor = torch.zeros(1)
    for value, expected in ((None, False), ("0", False), ("1", True)):
        if value is None:
            monkeypatch.delenv("FIVESTATE_INTERPRET")
        else:
            monkeypatch.setenv("FIVESTATE_INTERPRET", value)
        if DEVICE.type == "cpu":
            assert by_triton(tensor) == expected


def test_the_interpreter_cannot_be_asked_for_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERPRETED", False)
    with pytest.raises(RuntimeError, match="must be set before Triton is imported"):
        by_triton(torch.zeros(1))


def test_an_empty_grid_runs_nothing() -> None:
    out = poisoned(8, device=DEVICE)
    launch(_fill, (0,), out, out, 8, STRIDE=1)
    assert torch.equal(out, poisoned(8, device=DEVICE))


def test_what_is_masked_may_lie_anywhere() -> None:
    out = poisoned(13, device=DEVICE)
    fill(out, 2, 3, 5, torch.int64)
    assert out.tolist() == [0xA5] * 10 + [0, 1, 2]


@needs_interpreter
def test_a_checked_launch_refuses_the_first_byte_outside() -> None:
    out = poisoned(16)
    with pytest.raises(ValueError, match="out: a kernel accesses byte 13 of 13"):
        fill(out[:13], 2, 4, 5, torch.int64)
    with pytest.raises(ValueError, match="out: a kernel accesses byte -5 of 8"):
        fill(out[8:], -1, 1, 5, torch.int64)
    assert torch.equal(out[8:], poisoned(8))
    counter = torch.zeros(4, dtype=torch.int64)
    launch(_add, (3,), counter, 3)
    assert counter.tolist() == [0, 0, 0, 3]
    with pytest.raises(ValueError, match="out: a kernel accesses byte 32 of 32"):
        launch(_add, (1,), counter, 4)


@needs_interpreter
def test_a_checked_launch_refuses_an_offset_that_is_not_counted_in_64_bits() -> None:
    out = torch.empty(40 << 26, dtype=torch.uint8)  # never touched but at its end
    fill(out, 39, 8, 1 << 26, torch.int64)
    assert out[39 << 26 :][:8].tolist() == list(range(8))
    with pytest.raises(ValueError, match="out: a kernel accesses byte -1677721600 of 2684354560"):
        fill(out, 39, 8, 1 << 26, torch.int32)


@needs_interpreter
def test_an_unchecked_launch_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIVESTATE_DEBUG")
    out = poisoned(13)
    fill(out, 2, 3, 5, torch.int64)
    assert out.tolist() == [0xA5] * 10 + [0, 1, 2]


def test_on_a_device_the_kernel_itself_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    launched = {}

    class Kernel:
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            return lambda *arguments, **options: launched.update({grid: (arguments, options)})

    monkeypatch.setattr(module, "INTERPRETED", False)
    launch(Kernel(), [3, 2], 7, num_warps=8, TILE=16)
    assert launched == {(3, 2): ((7,), {"num_warps": 8, "TILE": 16})}


@pytest.mark.parametrize("grid", [(1 << 31,), (1, 65_536), (1, 1, 65_536)])
def test_a_grid_that_no_device_takes_is_refused(grid: tuple[int, ...]) -> None:
    out = poisoned(8, device=DEVICE)
    with pytest.raises(ValueError, match=r"launch: a grid of \(.*\) is given, .* is the most"):
        launch(_fill, grid, out, out, 8, STRIDE=1)


def test_a_kernel_is_launched_on_the_device_of_its_tensors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OnSecondCard(torch.Tensor):
        is_cuda = True
        device = torch.device("cuda:1")

    seen: list[object] = []

    @contextmanager
    def current(device: torch.device) -> Iterator[None]:
        seen.append(device)
        yield
        seen.append("left")

    class Kernel:
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            return lambda *_, **__: seen.append(grid)

    monkeypatch.setattr(module, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "device", current)
    launch(Kernel(), (2,), 7, torch.zeros(1).as_subclass(OnSecondCard))
    assert seen == [torch.device("cuda:1"), (2,), "left"]


def test_without_triton_a_function_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel() -> None:
        """Do nothing."""

    monkeypatch.setattr(module, "INSTALLED", False)
    assert jit(kernel) is kernel
    assert jit(any_value=("count",))(kernel) is kernel


@needs_interpreter
def test_the_interpreter_is_left_as_it_was() -> None:
    from triton.runtime.interpreter import interpreter_builder  # noqa: PLC0415 -- CPU only

    before = set(vars(interpreter_builder))
    with pytest.raises(ValueError, match="accesses byte"):
        fill(poisoned(1), 2, 8, 1, torch.int64)
    assert set(vars(interpreter_builder)) - before <= {"grid_idx", "grid_dim"}


SEES_NO_TRITON = """
import sys
sys.modules["triton"] = None
import torch
from fivestate.kernels import {modules}
from fivestate.kernels.device import launch
assert not launch.INSTALLED and not launch.INTERPRETED
objects = torch.arange(48, dtype=torch.uint8).view(2, 24)
out = torch.zeros_like(objects)
pages.gather(objects, torch.tensor([1, 0]), out)
assert torch.equal(out, objects[[1, 0]])
assert digest.digest(objects)[0].numpy().tobytes() == digest.digest_bytes(bytes(range(24)))
"""


def test_without_triton_everything_imports_and_the_reference_serves() -> None:
    from fivestate.kernels.compile.variants import MODULES  # noqa: PLC0415 -- the names are all it needs

    code = SEES_NO_TRITON.format(modules=", ".join(MODULES))
    environment = {key: value for key, value in os.environ.items() if "INTERPRET" not in key}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_the_flag_reaches_triton_before_it_is_imported() -> None:
    code = "from fivestate.kernels.device import launch; raise SystemExit(not launch.INTERPRETED)"
    environment = {key: value for key, value in os.environ.items() if "INTERPRET" not in key}
    environment["FIVESTATE_INTERPRET"] = "1"
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )
