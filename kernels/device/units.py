"""Bytes as integers: the widest units in which kernels can move what lies at given places."""

from __future__ import annotations

import math

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.launch import power_of_2

INTEGERS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
"""The dtype of a unit. Two neighbouring units of 8 bytes are one access of 16."""
TYPES = {8: "*i64", 4: "*i32", 2: "*i16", 1: "*u8"}
"""What Triton calls a tensor of such units."""
MOST_BYTES = (1 << 31) - (1 << 16)
"""Of one page or row: places inside it are counted in 32 bits, all others in 64."""
PROGRAM_UNITS = 1024
"""What one program holds at a time; of 8 bytes, that is 64 bytes for each of 128 threads."""


def as_bytes(argument: str, tensor: torch.Tensor, dimensions: int = 1) -> torch.Tensor:
    """Return a tensor as bytes: all but its first dimensions become one, of bytes.

    Args:
        argument: what an error calls it.
        tensor: any dtype; inside one item there are no gaps, between items there may be.
        dimensions: how many of the first dimensions stay.

    Raises:
        ValueError: it has too few dimensions, or gaps inside an item.
    """
    if tensor.dim() < dimensions:
        raise ValueError(f"{argument}: {tensor.dim()} dimensions are given, {dimensions} is least")
    checks.dense(argument, tensor, tensor.dim() - dimensions)
    size = tensor.element_size()
    shape = [*tensor.shape[:dimensions], math.prod(tensor.shape[dimensions:]) * size]
    strides = [each * size for each in tensor.stride()[:dimensions]] + [1]
    for axis in range(dimensions):  # a stride that nobody walks may be anything
        if shape[axis] < 2 or 0 in shape:
            strides[axis] = 0
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    offset = tensor.storage_offset() * size
    return raw.set_(tensor.untyped_storage(), offset, shape, strides)


def unit_bytes(*tensors: torch.Tensor, sizes: tuple[int, ...] = ()) -> int:
    """Return the bytes of the largest unit that divides all sizes, strides and places of bytes."""
    parts: list[int] = list(sizes)
    for tensor in tensors:
        places = tensor.storage_offset(), tensor.shape[-1], *tensor.stride()[:-1]
        parts += [tensor.data_ptr(), *(int(each) for each in places)]
    return math.gcd(max(INTEGERS), *parts)


def as_units(tensor: torch.Tensor, unit: int) -> torch.Tensor:
    """Return bytes as integers of so many bytes."""
    return tensor.view(INTEGERS[unit])


def tile_units(size: int) -> int:
    """Return how many units of one item a program takes at a time.

    It is the largest power of two that leaves no more than an eighth of the lanes idle; an item
    of more than 128 units is not cut finer than that, for a warp reads neighbours.
    """
    tile = min(power_of_2(size), PROGRAM_UNITS)
    while tile > 128 and -size % tile * 8 > size:
        tile //= 2
    return tile
