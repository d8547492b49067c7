"""The four checks on the device: each a function of blocks of numbers, requests by groups."""

from __future__ import annotations

from typing import Any

from fivestate.kernels.device.launch import Pointer, Scalar, constant, jit, tl
from fivestate.kernels.parts.batch import BITS, SHAPES
from fivestate.spec.reuse import Shape, Why

_KERNEL = constant(BITS[Why.KERNEL])
_PREFIX = constant(SHAPES.index(Shape.PREFIX))
_RUN = constant(SHAPES.index(Shape.RUN))
_OPEN_GROUP = constant(SHAPES.index(Shape.OPEN_GROUP))
_POINT = constant(SHAPES.index(Shape.POINT))


@jit
def same_abi(abi: Pointer, consumer: Pointer, mask: Scalar) -> Any:
    """H-2: the reasons of what the producers wrote on their copies."""
    found = tl.zeros(mask.shape, tl.int32)
    for word in tl.static_range(4):
        made = tl.load(abi + word, mask, 0)
        found = found | tl.where(made != tl.load(consumer + word), _KERNEL << word, 0)
    return found


@jit
def right_bytes(places: Pointer, alignment: Scalar, mask: Scalar) -> Any:
    """H-4: whether the place is known, whether misaligned, and whether inside its region."""
    address = tl.load(places, mask, 0)
    stride = tl.load(places + 1, mask, 0)
    payload = tl.load(places + 2, mask, 0)
    count = tl.load(places + 3, mask, 0)
    last = address + (count - 1) * stride + payload
    inside = (tl.load(places + 4, mask, 0) <= address) & (address <= last)
    inside = inside & (last <= tl.load(places + 5, mask, 0))
    placed = count > 0
    odd = (address % alignment != 0) | (stride % alignment != 0)
    return placed, placed & odd, inside


@jit
def stale(
    spans: Pointer, generations: Pointer, index: Scalar, entries: Scalar, mask: Scalar
) -> Any:
    """H-3: whether an index was made from another generation of its entries."""
    some = tl.load(spans + 2 * entries, mask, 0) < tl.load(spans + 2 * entries + 1, mask, 0)
    made = tl.load(generations + index, mask, 0)
    return mask & some & (made != tl.load(generations + entries, mask, 0))


@jit
def points(
    start: Scalar,
    end: Scalar,
    block: Scalar,
    shape: Scalar,
    ratio: Scalar,
    lookback: Scalar,
    window: Scalar,
) -> Any:
    """H-1, H-3: of whole blocks: whether there are some, first and last point, and last of none."""
    whole = shape != _POINT
    start = tl.where(whole, (start + block - 1) // block * block, start)
    end = tl.where(whole, end // block * block, end)
    rooted = start == 0
    run = start + window - 1
    joined = (start + lookback + ratio - 1) // ratio * ratio
    first = run // window * window
    first = tl.where(shape == _RUN, tl.where(rooted, 0, run), first)
    first = tl.where(shape == _OPEN_GROUP, tl.where(rooted, 0, joined), first)
    first = tl.where(shape == _POINT, end, first)
    last = tl.where(whole | rooted, end, -1)
    prefix = shape == _PREFIX
    first = tl.where(prefix, 0, first)
    last = tl.where(prefix, tl.where(rooted, end, 0) // ratio * ratio + ratio - 1, last)
    return start < end, first, last, tl.where(prefix, ratio - 1, -1)


@jit
def largest(limit: Scalar, first: Scalar, last: Scalar, every_step: Scalar, step: Scalar) -> Any:
    """H-3: the largest point of each group that is not above a limit; 0 always is one."""
    best = tl.where(every_step > 0, limit // tl.maximum(every_step, 1) * every_step, 0)
    point = tl.minimum(last, limit) // step * step
    return tl.maximum(best, tl.where((last >= 0) & (point >= first), point, 0))
