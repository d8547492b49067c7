"""The choice by device: CPU tensors take the torch reference, CUDA tensors the Triton kernel.

A kernel file imports ``jit``, ``tl``, ``constexpr`` from here, never from Triton, so that it can
be imported where Triton is not installed; there the reference serves every device.

``FIVESTATE_INTERPRET=1`` sends CPU tensors through Triton's interpreter. Triton fixes its mode
while it is imported, so the variable has to be set before this module is; later it may be unset
and set again, which is how one process compares the two. ``FIVESTATE_DEBUG=1`` checks addresses:
see ``checks`` and ``interpreter``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import torch

GRID_MOST = (1 << 31) - 1, 65_535, 65_535
"""What a CUDA launch may have of programs in each dimension; the interpreter takes any number."""


def _wanted() -> bool:
    return os.environ.get("FIVESTATE_INTERPRET") == "1"


if _wanted() and "triton" not in sys.modules:
    os.environ["TRITON_INTERPRET"] = "1"

tl: Any
triton: Any
if TYPE_CHECKING:
    Pointer: TypeAlias = Any
    """In a kernel: the address of a tensor's first element."""
    Scalar: TypeAlias = Any
    """In a kernel: a number, or a block of numbers."""
    constexpr: TypeAlias = Any  # noqa: PYI042 -- Triton's own has this name
    """In a kernel: a value that is fixed when it is compiled."""

    def constant(value: Any) -> Any:
        """Return a value that kernels may read as a global."""

    INSTALLED: bool
    INTERPRETED: bool
else:
    try:
        import triton
        import triton.language as tl

        INSTALLED, INTERPRETED = True, bool(triton.knobs.runtime.interpret)
        constexpr = constant = tl.constexpr
        Pointer = Scalar = tl.tensor  # the compiler looks annotations up, and wants its own
    except ImportError:
        tl, Pointer, Scalar = None, object, object
        constexpr = constant = lambda value: value
        INSTALLED = INTERPRETED = False


@overload
def jit(kernel: Callable[..., Any]) -> Any: ...
@overload
def jit(*, any_value: Sequence[str]) -> Callable[[Callable[..., Any]], Any]: ...
def jit(kernel: Callable[..., Any] | None = None, *, any_value: Sequence[str] = ()) -> Any:
    """Make a function device code; where Triton is missing it stays as it is.

    Args:
        kernel: the function; without it, what is returned takes it.
        any_value: numbers of which nothing is assumed. Of others Triton compiles one kernel for
            1, one for multiples of 16 and one for the rest, each when it is first met: that is for
            strides on which the width of an access depends, and for nothing else.
    """
    if kernel is None:
        return partial(jit, any_value=any_value)
    if not INSTALLED:
        return kernel
    made = triton.jit(do_not_specialize=list(any_value))(kernel)
    made.any_value = tuple(any_value)
    return made


def debugging() -> bool:
    """Whether addresses are to be checked before each launch (``FIVESTATE_DEBUG=1``)."""
    return os.environ.get("FIVESTATE_DEBUG") == "1"


def by_triton(tensor: torch.Tensor) -> bool:
    """Whether a wrapper has to launch its kernel for this tensor, not to call its reference.

    Raises:
        RuntimeError: the interpreter is asked for, and Triton was imported without it.
    """
    if tensor.is_cuda:
        return INSTALLED and not INTERPRETED
    if not _wanted():
        return False
    if not INTERPRETED:
        raise RuntimeError("FIVESTATE_INTERPRET=1 must be set before Triton is imported")
    return True


def launch(
    kernel: Any, grid: Sequence[int], *arguments: Any, num_warps: int = 4, **constants: Any
) -> None:
    """Run a kernel once for each cell of a grid, on the device of its tensors.

    An empty grid runs nothing. Triton compiles when it first meets a form of the arguments, so a
    call that a CUDA graph is to capture has to have run before.

    Args:
        kernel: what ``jit`` made.
        grid: one to three sizes.
        arguments: tensors and numbers, in the kernel's order.
        num_warps: warps of one program.
        constants: the kernel's ``constexpr`` parameters.

    Raises:
        ValueError: the grid is larger than a device takes; or under ``FIVESTATE_DEBUG=1`` in the
            interpreter, an address that is accessed lies in none of the tensors.
    """
    if 0 in grid:
        return
    if any(size > most for size, most in zip(grid, GRID_MOST, strict=False)):
        raise ValueError(f"launch: a grid of {tuple(grid)} is given, {GRID_MOST} is the most")
    if INTERPRETED:
        from fivestate.kernels.device import interpreter  # noqa: PLC0415 -- it needs Triton

        interpreter.run(kernel, tuple(grid), arguments, constants, checked=debugging())
        return
    with _on_device_of(arguments):
        kernel[tuple(grid)](*arguments, num_warps=num_warps, **constants)


def _on_device_of(arguments: Sequence[Any]) -> AbstractContextManager[Any]:
    """Make the device of the tensors current: Triton launches on whichever is."""
    tensors = (each for each in arguments if isinstance(each, torch.Tensor))
    device = next((each.device for each in tensors if each.is_cuda), None)
    return nullcontext() if device is None else torch.cuda.device(device)


def power_of_2(least: int) -> int:
    """Return the smallest power of two that is not below a number: Triton's blocks are such."""
    return 1 << max(least - 1, 0).bit_length()
