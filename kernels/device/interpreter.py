"""Kernels on a CPU, through Triton's interpreter, in place and with every address checked.

Triton's own way copies every storage forth and back, even where both are the CPU's, and reads and
writes wherever a pointer leads. Here tensors are used where they are, and a checked run refuses
the first access outside all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from triton.runtime import interpreter as machine

from fivestate.kernels.device.checks import extent


class _InPlace(machine.GridExecutor):  # type: ignore[misc] # Triton ships no types
    """An executor for tensors that are on the CPU already."""

    def _init_args_hst(self, args_dev: Any, kwargs: Any) -> Any:
        return args_dev, kwargs

    def _restore_args_dev(self, args_dev: Any, args_hst: Any, kwargs: Any, kwargs_hst: Any) -> None:
        """Leave everything where it is."""


def run(
    kernel: Any,
    grid: tuple[int, ...],
    arguments: Sequence[Any],
    constants: Mapping[str, Any],
    *,
    checked: bool,
) -> None:
    """Interpret a kernel over a grid.

    Raises:
        ValueError: ``checked``, and an address that is accessed lies in none of the tensors.
    """
    execute = _InPlace(kernel.rewrite(), kernel.arg_names, grid, kernel.pre_run_hooks)
    if not checked:
        execute(*arguments, **constants)
        return
    named = dict(zip(kernel.arg_names, arguments, strict=False))
    tensors = {name: each for name, each in named.items() if isinstance(each, torch.Tensor)}
    try:
        with _guarded(tensors):
            execute(*arguments, **constants)
    except machine.InterpreterError as error:
        cause = error.__cause__
        if not isinstance(cause, _OutsideError):
            raise
        raise ValueError(str(cause)) from None


class _OutsideError(Exception):
    """An access outside all tensors."""


@contextmanager
def _guarded(tensors: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Check each access of the interpreter while the block runs."""
    builder = machine.interpreter_builder
    extents = [extent(each) for each in tensors.values() if each.numel()]
    low = np.array([first for first, _ in extents], dtype=np.uint64)
    high = np.array([end for _, end in extents], dtype=np.uint64)

    def check(pointers: Any, mask: Any | None) -> None:
        size = np.uint64(max(pointers.get_element_ty().primitive_bitwidth // 8, 1))
        used = pointers.data
        if mask is not None:
            # A mask that a number was spread over is made of numbers here.
            used = used[np.broadcast_to(mask.data.astype(bool), used.shape)]
        flat = used.reshape(-1, 1)
        inside = ((flat >= low) & (flat + size <= high)).any(axis=1)
        if not inside.all():
            raise _OutsideError(_where(int(flat[~inside][0, 0]), tensors))

    saved = dict(vars(builder))
    for name, place in _ACCESSES.items():
        setattr(builder, name, _checked(getattr(builder, name), place, check))
    try:
        yield
    finally:
        for name in _ACCESSES:
            delattr(builder, name)
        vars(builder).update({name: saved[name] for name in _ACCESSES if name in saved})


_ACCESSES = {
    "create_masked_load": 1,
    "create_masked_store": 2,
    "create_atomic_rmw": 3,
    "create_atomic_cas": None,
}
"""The ways to memory of Triton's interpreter, and the place of the mask among their arguments."""


def _checked(access: Any, mask: int | None, check: Any) -> Any:
    def checked(*arguments: Any) -> Any:
        pointers = next(each for each in arguments if hasattr(each, "get_element_ty"))
        check(pointers, None if mask is None else arguments[mask])
        return access(*arguments)

    return checked


def _where(address: int, tensors: Mapping[str, torch.Tensor]) -> str:
    near = min(tensors, key=lambda name: abs(address - tensors[name].data_ptr()))
    tensor = tensors[near]
    offset = address - tensor.data_ptr()
    first, end = extent(tensor)
    return f"{near}: a kernel accesses byte {offset} of {end - first}"
