"""What wrappers refuse before anything is launched: each error names the argument.

Kinds, shapes and devices are always checked: that costs no look at the memory. Values (page
ids, slots, counts) are checked where they can be read for nothing: always on the CPU, and on a
GPU only under ``FIVESTATE_DEBUG=1``, where the look waits for the device. While a CUDA graph is
captured no value is looked at.
"""

from __future__ import annotations

import torch

from fivestate.kernels.device.launch import debugging

INTEGERS = (torch.int32, torch.int64)
"""What ids, positions and counts may be."""


def dtype(argument: str, tensor: torch.Tensor, *allowed: torch.dtype) -> None:
    """Refuse a tensor whose dtype is none of those allowed.

    Raises:
        ValueError: it is.
    """
    if tensor.dtype not in allowed:
        names = " or ".join(str(each).removeprefix("torch.") for each in allowed)
        raise ValueError(f"{argument}: {_name(tensor.dtype)} is given, {names} is wanted")


def shape(argument: str, tensor: torch.Tensor, *sizes: int | None) -> None:
    """Refuse a tensor of another shape; ``None`` stands for any size.

    Raises:
        ValueError: the shape differs.
    """
    given = tuple(tensor.shape)
    fits = len(given) == len(sizes) and all(
        wanted in {None, size} for size, wanted in zip(given, sizes, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in sizes)
        raise ValueError(f"{argument}: shape {given} is given, ({wanted}) is wanted")


def same_device(**tensors: torch.Tensor) -> None:
    """Refuse tensors that are not all where the first one is.

    Raises:
        ValueError: one is elsewhere.
    """
    first, *others = tensors
    for name in others:
        if tensors[name].device != tensors[first].device:
            there = tensors[name].device
            raise ValueError(f"{name}: on {there}, but {first} is on {tensors[first].device}")


def dense(argument: str, tensor: torch.Tensor, dimensions: int = 1) -> None:
    """Refuse a tensor whose last dimensions do not lie in memory without gaps.

    Raises:
        ValueError: a stride there is another.
    """
    stride = 1
    for axis in range(tensor.dim() - 1, tensor.dim() - 1 - dimensions, -1):
        if tensor.shape[axis] > 1 and tensor.stride(axis) != stride:
            given = tensor.stride(axis)
            raise ValueError(f"{argument}: stride {given} in dimension {axis}, {stride} is wanted")
        stride *= tensor.shape[axis]


def number(argument: str, value: int, least: int, most: int | None = None) -> None:
    """Refuse a number outside ``least .. most``, both included.

    Raises:
        ValueError: it is outside.
    """
    if value < least or (most is not None and value > most):
        end = "" if most is None else f"{most} "
        raise ValueError(f"{argument}: {value} is given, {least} .. {end}is wanted")


def readable(tensor: torch.Tensor) -> bool:
    """Whether values may be looked at here: on the CPU, or when debugging and not capturing."""
    if not tensor.is_cuda:
        return True
    return debugging() and not torch.cuda.is_current_stream_capturing()


def values(argument: str, tensor: torch.Tensor, least: int, most: int) -> None:
    """Refuse a tensor with a number outside ``least .. most``, both included, if it is readable.

    Raises:
        ValueError: there is one; the first is named.
    """
    if not tensor.numel() or not readable(tensor):
        return
    low, high = (int(each) for each in torch.aminmax(tensor))
    if low >= least and high <= most:
        return
    flat = tensor.reshape(-1)
    at = int(torch.nonzero((flat < least) | (flat > most))[0])
    raise ValueError(f"{argument}[{at}]: {int(flat[at])} is given, {least} .. {most} is wanted")


def distinct(argument: str, ids: torch.Tensor, least: int = 1) -> None:
    """Refuse ids of which two from ``least`` on are equal, if they are readable.

    Two rows written to one place would leave either, depending on the device's mood.

    Raises:
        ValueError: two are equal.
    """
    if ids.numel() < 2 or not readable(ids):
        return
    found, counts = torch.unique(ids[ids >= least], return_counts=True)
    if found.numel() and int(counts.max()) > 1:
        twice = int(found[counts > 1][0])
        raise ValueError(f"{argument}: {twice} is given more than once")


def apart(argument: str, tensor: torch.Tensor) -> None:
    """Refuse a tensor to be written of which two elements share memory, as after ``expand``.

    Raises:
        ValueError: two do, or they are so interleaved that it would have to be searched.
    """
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride < reach and tensor.numel():
            raise ValueError(f"{argument}: a stride of {stride} lets what it holds overlap")
        reach += (size - 1) * stride


def disjoint(**tensors: torch.Tensor) -> None:
    """Refuse a first tensor that shares a byte with one of the others.

    Padding and the bytes between strided rows belong to nobody: two views of one slab are
    disjoint if their columns are (B33, B35).

    Raises:
        ValueError: it shares one.
    """
    (name, written), *others = tensors.items()
    for other, read in others:
        if overlap(written, read):
            raise ValueError(f"{name}: shares memory with {other}")


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors share a byte."""
    if not a.numel() or not b.numel() or a.device != b.device:
        return False
    (a_first, a_end), (b_first, b_end) = extent(a), extent(b)
    if a_end <= b_first or b_end <= a_first or _in_other_columns(a, b):
        return False
    starts, length = _runs(a)
    other_starts, other_length = _runs(b)
    # A run of a that starts before the run of b following it must end before it, and so around.
    after = torch.searchsorted(other_starts, starts)
    ends = torch.cat([other_starts, starts.new_tensor([1 << 62])])
    if bool((starts + length > ends[after]).any()):
        return True
    before = torch.cat([starts.new_tensor([-(1 << 62)]), other_starts])
    return bool((before[after] + other_length > starts).any())


def _in_other_columns(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two views of one slab have different columns; False where that is not seen at once.

    Pages of all groups may share a slab, and it may have a million of them: none is walked.
    """
    if a.dim() < 2 or b.dim() < 2:
        return False
    step = a.stride(0) * a.element_size()
    sizes = []
    for each in (a, b):
        first, end = extent(each[0])
        sizes.append(end - first)
        if each.stride(0) * each.element_size() != step or sizes[-1] > step:
            return False
    behind = (b.data_ptr() - a.data_ptr()) % step
    return sizes[0] <= behind <= step - sizes[1]


def extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the first address of a tensor that is not empty, and the one behind its last."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in sizes)
    first = tensor.data_ptr()
    return first, first + (last + 1) * tensor.element_size()


def _runs(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Return the addresses of a tensor's gapless runs, in order, and their length in bytes."""
    size = tensor.element_size()
    axes = sorted(zip(tensor.stride(), tensor.shape, strict=True))
    length = 1
    outer: list[tuple[int, int]] = []
    for stride, count in axes:
        if not outer and stride in {0, length}:
            length *= count if stride else 1
        else:
            outer.append((stride, count))
    starts = torch.tensor([tensor.data_ptr()])
    for stride, count in outer:
        steps = torch.arange(count) * (stride * size)
        starts = (starts[:, None] + steps).reshape(-1)
    return starts.sort().values, length * size


def _name(kind: torch.dtype) -> str:
    return str(kind).removeprefix("torch.")
