"""A batch of lookups as tensors: a geometry's columns, the copies there are, and the verdicts."""

from __future__ import annotations

from math import lcm
from typing import NamedTuple

import torch

from fivestate.kernels.device import checks
from fivestate.spec.reuse import CacheGroup, Geometry, Role, Shape, Why
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL

BITS = {why: 1 << place for place, why in enumerate(Why)}
"""The bit of each reason in a reason word."""

SHAPES = tuple(Shape)
"""The number of a shape is its place here."""

MOST = 2**31 - 1
MISS, PARTIAL, HIT = range(3)


class Column(NamedTuple):
    """One group of a geometry, as whole numbers.

    Attributes:
        block_size: tokens of one block.
        shape: its place in `SHAPES`.
        ratio: tokens of one entry.
        lookback: rows that a fold reads before its own group.
        window: tokens of the window or chunk, 1 where there is none.
        alignment: bytes to a multiple of which addresses and strides are aligned.
        owner: the column of the entries that it is an index of; -1 where it is none.
        votes: whether it votes.
        gone: the bit of the reason why it cannot be resumed.
        every: tokens after which a point needs nothing of it; 0 where that is never.
        every_step: the least common multiple of ``every`` and the step; 0 likewise.
    """

    block_size: int
    shape: int
    ratio: int
    lookback: int
    window: int
    alignment: int
    owner: int
    votes: int
    gone: int
    every: int
    every_step: int


class Columns(NamedTuple):
    """A geometry as the columns of a batch.

    Attributes:
        fields: shape (groups, 11), dtype int32: the numbers of each `Column`.
        step: scheduler_block_size, in tokens.
        draft_lookback: tokens before the fork that a drafter has to compute again.
    """

    fields: torch.Tensor
    step: int
    draft_lookback: int


class Copies(NamedTuple):
    """At most one copy of each group for each request, on the device.

    Attributes:
        spans: shape (requests, groups, 2), dtype int32: first token and the one behind the last;
            an empty span is no copy.
        abi: shape (requests, groups, 4), dtype int32: words for kernel, layout, dtype, weights.
        generations: shape (requests, groups), dtype int64: see `fivestate.spec.reuse.Extent`.
        places: shape (requests, groups, 6), dtype int64: address, stride, payload, count,
            region_start, region_end, as of `fivestate.spec.reuse.Place`; count 0: not known.
    """

    spans: torch.Tensor
    abi: torch.Tensor
    generations: torch.Tensor
    places: torch.Tensor


class Verdicts(NamedTuple):
    """What each request's hash hit is worth as it stands.

    Attributes:
        kinds: shape (requests,), dtype int32: MISS, PARTIAL or HIT.
        resumes: shape (requests,), dtype int32: the position to resume at.
        whys: shape (requests,), dtype int32: reasons of the request, as `BITS`.
        group_whys: shape (requests, groups), dtype int32: reasons of each group.
    """

    kinds: torch.Tensor
    resumes: torch.Tensor
    whys: torch.Tensor
    group_whys: torch.Tensor


def columns(geometry: Geometry, device: torch.device | str = "cpu") -> Columns:
    """Lay out a geometry: one column for each of its groups, in their order.

    Raises:
        ValueError: a block size is too large for 32 bits.
    """
    step = geometry.scheduler_block_size
    if step > MOST:
        raise ValueError(f"geometry: scheduler_block_size {step} is given, 1 .. {MOST} is wanted")
    names = [group.name for group in geometry.groups]
    rows: list[Column] = []
    for group in geometry.groups:
        owner = geometry.owner(group) if group.state is INDEXER else None
        every = _every(group)
        rows.append(
            Column(
                group.block_size,
                SHAPES.index(group.shape),
                group.ratio,
                group.lookback,
                max(group.window, 1),
                group.page_alignment,
                names.index(owner.name) if owner else -1,
                int(group.role is not Role.VOLATILE),
                BITS[_gone(group)],
                every,
                min(lcm(every, step), MOST) if every else 0,
            )
        )
    fields = torch.tensor(rows, dtype=torch.int32, device=device)
    return Columns(fields, step, geometry.draft_lookback)


def _every(group: CacheGroup) -> int:
    """The step of the points at which a group needs nothing; 0 where there are none but 0."""
    match group.shape:
        case Shape.RUN:
            return 1 if group.window == 1 else 0
        case Shape.OPEN_GROUP:
            return 0 if group.lookback else group.ratio
        case Shape.CHUNK:
            return group.window
        case _:
            return 0


def _gone(group: CacheGroup) -> Why:
    if group.shape is Shape.POINT:
        return Why.SNAPSHOT_GONE
    why = {COMPRESSED: Why.ENTRIES_GONE, TAIL: Why.TAIL_GONE, INDEXER: Why.INDEX_GONE}
    return why.get(group.state, Why.WINDOW_GONE)


def verdicts(asked: torch.Tensor, groups: int) -> Verdicts:
    """Return room for the verdicts of a batch, all MISS."""
    kinds, resumes, whys = asked.new_zeros((3, len(asked)), dtype=torch.int32)
    group_whys = asked.new_zeros((len(asked), groups), dtype=torch.int32)
    return Verdicts(kinds, resumes, whys, group_whys)


def check_batch(
    model: Columns,
    consumer: torch.Tensor,
    asked: torch.Tensor,
    known: torch.Tensor,
    copies: Copies,
    out: Verdicts | None,
) -> None:
    """Refuse arguments of `classify_batch` that do not fit.

    Raises:
        ValueError: something does not fit.
    """
    groups, requests = len(model.fields), len(asked)
    wanted: list[tuple[str, torch.Tensor, torch.dtype, tuple[int, ...]]] = [
        ("consumer", consumer, torch.int32, (4,)),
        ("asked", asked, torch.int32, (requests, 2)),
        ("known", known, torch.int32, (requests,)),
        ("copies.spans", copies.spans, torch.int32, (requests, groups, 2)),
        ("copies.abi", copies.abi, torch.int32, (requests, groups, 4)),
        ("copies.generations", copies.generations, torch.int64, (requests, groups)),
        ("copies.places", copies.places, torch.int64, (requests, groups, 6)),
    ]
    for name, tensor in zip(Verdicts._fields, out or (), strict=False):
        sizes: tuple[int, ...] = (requests, groups) if name == "group_whys" else (requests,)
        wanted.append((f"out.{name}", tensor, torch.int32, sizes))
    for name, tensor, kind, shape in wanted:
        checks.dtype(name, tensor, kind)
        checks.shape(name, tensor, *shape)
        checks.dense(name, tensor, len(shape))
    tensors = {name: tensor for name, tensor, _, _ in wanted}
    checks.same_device(**{"model.fields": model.fields, **tensors})
    checks.values("asked: fork", asked[:, 0], -1, MOST)
    checks.values("asked: prompt", asked[:, 1], 0, MOST)
    checks.values("copies.spans", copies.spans, 0, MOST - (1 << 24))
