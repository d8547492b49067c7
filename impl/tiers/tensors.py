"""Tensors as bytes: their memory, and the names that safetensors has for their dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import torch
from torch import Tensor

Tensors = Mapping[str, Tensor]
"""The tensors of one cell, by name: any shape, any dtype that safetensors has, on any device."""

Form: TypeAlias = tuple[torch.dtype, tuple[int, ...]]
"""The dtype and the shape of a tensor."""

NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.float8_e8m0fnu: "F8_E8M0",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


def memory(tensor: Tensor) -> memoryview:
    """Return the bytes of a contiguous CPU tensor as a buffer that can be written to."""
    return tensor.detach().reshape(-1).view(torch.uint8).numpy().data


def on_cpu(tensors: Tensors) -> dict[str, Tensor]:
    """Return the tensors contiguous and in CPU memory; copied only where they are not.

    Raises:
        ValueError: a name or a dtype is one that safetensors does not have.
    """
    for name, tensor in tensors.items():
        if name == "__metadata__":
            raise ValueError("tensors: '__metadata__' is safetensors' own; another name is needed")
        if tensor.dtype not in NAMES:
            raise ValueError(f"tensors[{name!r}].dtype = {tensor.dtype}: safetensors has no such")
    return {name: t.detach().to("cpu").contiguous() for name, t in tensors.items()}


def chunks(content: memoryview, size_bytes: int) -> Iterator[memoryview]:
    """Yield parts of some bytes, all but the last of one size."""
    for start in range(0, len(content), size_bytes):
        yield content[start : start + size_bytes]


def forms(tensors: Tensors) -> dict[str, Form]:
    """Return the dtype and the shape of each tensor."""
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def require_fit(expected: Mapping[str, Form], into: Tensors) -> None:
    """Refuse tensors that an object cannot be read into.

    Raises:
        ValueError: they have other names, shapes or dtypes.
    """
    given = forms(into)
    if given.keys() != expected.keys():
        raise ValueError(f"into: names are {sorted(given)}; the object has {sorted(expected)}")
    for name, (dtype, shape) in expected.items():
        if given[name] != (dtype, shape):
            own, its = given[name]
            raise ValueError(f"into[{name!r}] is {own} {its}; the object has {dtype} {shape}")
