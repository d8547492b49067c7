"""Select: the best visible entries of each query, by a radix search with a defined tie-break."""

from __future__ import annotations

from typing import Any

import torch

from fivestate.kernels.device import checks
from fivestate.kernels.device.launch import (
    Pointer,
    Scalar,
    by_triton,
    constexpr,
    jit,
    launch,
    power_of_2,
    tl,
)
from fivestate.spec.need import visible_entries

POISONED = -2
"""Stands in every place of a query that sees an entry whose score is no number."""


def select_reference(
    scores: torch.Tensor,
    positions: torch.Tensor,
    *,
    ratio: int,
    top_k: int,
) -> torch.Tensor:
    """Select as `select` does, in plain torch."""
    counts = [visible_entries(position, ratio) for position in positions.tolist()]
    visible = torch.tensor(counts, dtype=torch.int64, device=scores.device)
    entry = torch.arange(scores.shape[1], device=scores.device)
    seen = entry < visible.unsqueeze(1)
    poisoned = (scores.isnan() & seen).any(1) | (visible > len(entry))
    ranked = torch.where(seen, scores, -torch.inf)
    # A visible minus infinity still comes before what is not visible: it is at a lower position.
    best = ranked.sort(dim=1, descending=True, stable=True).indices[:, :top_k]
    best = torch.where(best < visible.unsqueeze(1), best, len(entry)).sort(dim=1).values
    chosen = torch.where(best < len(entry), best, -1).to(torch.int32)
    chosen = torch.nn.functional.pad(chosen, (0, top_k - chosen.shape[1]), value=-1)
    chosen[poisoned] = POISONED
    return chosen


@jit(any_value=("num_entries", "ratio", "top_k"))
def select_kernel(
    scores: Pointer,
    positions: Pointer,
    chosen: Pointer,
    num_entries: Scalar,
    scores_query: Scalar,
    ratio: Scalar,
    top_k: Scalar,
    BLOCK: constexpr,
) -> None:
    """Select for one query: find the last chosen key digit by digit, then write in order."""
    query = tl.program_id(0).to(tl.int64)
    wanted = (tl.load(positions + query) + 1) // ratio
    visible = tl.minimum(wanted, num_entries)
    row = scores + query * scores_query
    out = chosen + query * top_k
    lane = tl.arange(0, BLOCK)
    digit = tl.arange(0, 256)
    last = tl.full((), 0, tl.uint32)
    left = tl.full((), 0, tl.int32) + top_k
    broken = (wanted > num_entries).to(tl.int32)
    if visible > top_k:
        for shift in tl.static_range(24, -1, -8):
            counts = tl.zeros((256,), tl.int32)
            for start in range(0, visible, BLOCK):
                key = _key(tl.load(row + start + lane, start + lane < visible, 0.0))
                live = start + lane < visible
                if shift < 24:
                    live = live & ((key >> (shift + 8)) == (last >> (shift + 8)))
                counts += tl.histogram(((key >> shift) & 255).to(tl.int32), 256, mask=live)
            at_least = tl.cumsum(counts, 0, reverse=True)
            found = tl.sum((at_least >= left).to(tl.int32), 0) - 1
            left -= tl.sum(tl.where(digit > found, counts, 0), 0)
            last = last | (found.to(tl.uint32) << shift)
    written = tl.full((), 0, tl.int32)
    equals = tl.full((), 0, tl.int32)
    for start in range(0, visible, BLOCK):
        live = start + lane < visible
        value = tl.load(row + start + lane, live, 0.0)
        broken += tl.sum((value != value).to(tl.int32), 0)  # noqa: PLR0124 -- Triton has no isnan
        key = _key(value)
        equal = (live & (key == last)).to(tl.int32)
        rank = equals + tl.cumsum(equal, 0)
        take = (live & (key > last)) | ((equal > 0) & (rank <= left))
        place = written + tl.cumsum(take.to(tl.int32), 0) - 1
        tl.store(out + place, start + lane, take)
        written += tl.sum(take.to(tl.int32), 0)
        equals += tl.sum(equal, 0)
    free = tl.where(broken > 0, 0, written)
    tl.debug_barrier()
    for start in range(0, top_k, BLOCK):
        rest = tl.where(broken > 0, -2, -1) + tl.zeros_like(lane)
        tl.store(out + start + lane, rest, (start + lane >= free) & (start + lane < top_k))


@jit
def _key(value: Scalar) -> Any:
    """Map floats to unsigned numbers in the same order; both zeros are one."""
    bits = tl.where(value == 0.0, 0.0, value).to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF) ^ -2147483648).to(tl.uint32, bitcast=True)


def select(
    scores: torch.Tensor,
    positions: torch.Tensor,
    *,
    ratio: int,
    top_k: int,
) -> torch.Tensor:
    """Select the ``top_k`` best visible entries of each query; of equal scores the earlier first.

    Ties are real: ReLU'd scores are often equal zeros, and an undefined tie-break makes the choice
    drift with the length. A query that sees a score that is no number, or more entries than there
    are scores, is poisoned as a whole: an entry without an index row would silently not be chosen.
    Source: `fivestate.spec.reuse.route`; domain §1.13.

    Args:
        scores: shape (queries, entries), dtype float32.
        positions: shape (queries,), dtype int32, from 0; -1 for padding.
        ratio: tokens of one entry.
        top_k: entries that a query reads at most.

    Returns:
        Entry numbers, ascending, then -1; -2 alone in poisoned rows. Shape (queries, top_k),
        dtype int32.

    Raises:
        ValueError: an argument does not fit; nothing was launched.
    """
    checks.dtype("scores", scores, torch.float32)
    checks.shape("scores", scores, None, None)
    checks.dense("scores", scores)
    check_positions(positions, len(scores), ratio)
    checks.number("top_k", top_k, 1, 65536)
    checks.same_device(scores=scores, positions=positions)
    if not by_triton(scores):
        return select_reference(scores, positions, ratio=ratio, top_k=top_k)
    chosen = torch.empty((len(scores), top_k), dtype=torch.int32, device=scores.device)
    launch(
        select_kernel,
        (len(scores),),
        scores,
        positions,
        chosen,
        scores.shape[1],
        scores.stride(0),
        ratio,
        top_k,
        BLOCK=min(max(power_of_2(scores.shape[1]), 128), 2048),
        num_warps=8,
    )
    return chosen


def check_positions(positions: torch.Tensor, queries: int, ratio: int) -> None:
    """Refuse positions that do not fit.

    Raises:
        ValueError: something does not fit.
    """
    checks.number("ratio", ratio, 1)
    checks.dtype("positions", positions, torch.int32)
    checks.shape("positions", positions, queries)
    checks.dense("positions", positions)
    checks.values("positions", positions, -1, 2**31 - 2)
