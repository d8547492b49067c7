"""Classify a batch: the four checks for all requests and groups in one launch of fixed shape."""

from __future__ import annotations

import torch

from fivestate.kernels.device.launch import (
    Pointer,
    Scalar,
    by_triton,
    constant,
    constexpr,
    jit,
    launch,
    power_of_2,
    tl,
)
from fivestate.kernels.parts.batch import (
    BITS,
    HIT,
    MISS,
    PARTIAL,
    SHAPES,
    Column,
    Columns,
    Copies,
    Verdicts,
    check_batch,
    verdicts,
)
from fivestate.kernels.parts.four import largest, points, right_bytes, same_abi, stale
from fivestate.spec.reuse import Shape, Why

BLOCK = 16
"""Requests of one program: 4,096 of 8 groups then occupy a device, each cell with a thread."""

_UNKNOWN = constant(BITS[Why.UNKNOWN])
_BELOW_GRANULARITY = constant(BITS[Why.BELOW_GRANULARITY])
_DRAFT_LOOKBACK = constant(BITS[Why.DRAFT_LOOKBACK])
_LAST_TOKEN = constant(BITS[Why.LAST_TOKEN])
_HALF_BLOCK = constant(BITS[Why.HALF_BLOCK])
_OUT_OF_STEP = constant(BITS[Why.INDEX_OUT_OF_STEP])
_NOT_RESIDENT = constant(BITS[Why.NOT_RESIDENT])
_MISALIGNED = constant(BITS[Why.MISALIGNED])
_OUT_OF_REGION = constant(BITS[Why.OUT_OF_REGION])
_POINT = constant(SHAPES.index(Shape.POINT))


def classify_batch_reference(
    model: Columns,
    consumer: torch.Tensor,
    asked: torch.Tensor,
    known: torch.Tensor,
    copies: Copies,
    out: Verdicts | None = None,
) -> Verdicts:
    """Classify as `classify_batch` does, in plain torch: group by group, then one descent each."""
    out = verdicts(asked, len(model.fields)) if out is None else out
    fork, prompt = asked.long().unbind(1)
    target = torch.minimum(fork, prompt - 1)
    limit = torch.minimum(fork - model.draft_lookback, prompt - 1).clamp(min=0)
    feasible = limit // model.step * model.step
    why = (feasible < limit) | (limit == 0)
    whys = why * BITS[Why.BELOW_GRANULARITY] | (target < fork) * BITS[Why.LAST_TOKEN]
    if model.draft_lookback:
        whys |= (limit < target) * BITS[Why.DRAFT_LOOKBACK]
    sets = []
    group_whys = torch.zeros_like(out.group_whys)
    for group, numbers in enumerate(model.fields.tolist()):
        column = Column(*numbers)
        if column.votes:
            first, last, group_whys[:, group] = _group(column, group, consumer, copies, feasible)
            sets.append((first, last, column.every_step))
    resume = feasible
    lowered = True
    while lowered:
        before = resume
        for first, last, every_step in sets:
            best = resume // every_step * every_step if every_step else torch.zeros_like(resume)
            point = torch.minimum(last, resume) // model.step * model.step
            resume = torch.maximum(best, torch.where(point >= first, point, 0))
        lowered = bool((resume != before).any())
    live, unknown = fork >= 0, known == 0
    resume = torch.where(unknown, 0, resume)
    kind = torch.where(resume == 0, MISS, torch.where(resume == target, HIT, PARTIAL))
    whys = torch.where(unknown, BITS[Why.UNKNOWN], whys)
    group_whys[unknown] = 0
    for place, value in zip(out, (kind, resume, whys, group_whys), strict=True):
        place[live] = value.to(torch.int32)[live]
    return out


def _group(
    column: Column,
    group: int,
    consumer: torch.Tensor,
    copies: Copies,
    feasible: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the first and last point of one group's range, and its reasons."""
    block, ratio, window = column.block_size, column.ratio, column.window
    shape = SHAPES[column.shape]
    start, end = copies.spans[:, group].long().unbind(1)
    some = start < end
    found = torch.zeros_like(start)
    for word, why in enumerate((Why.KERNEL, Why.LAYOUT, Why.DTYPE, Why.WEIGHTS)):
        found |= (copies.abi[:, group, word] != consumer[word]) * BITS[why]
    usable = some & (found == 0)
    address, stride, payload, count, low, high = copies.places[:, group].unbind(1)
    placed = count > 0
    misaligned = placed & ((address % column.alignment != 0) | (stride % column.alignment != 0))
    last_byte = address + (count - 1) * stride + payload
    inside = (low <= address) & (address <= last_byte) & (last_byte <= high)
    usable &= ~placed | inside
    found |= misaligned * BITS[Why.MISALIGNED] | (placed & ~inside) * BITS[Why.OUT_OF_REGION]
    if column.owner >= 0:
        entries = copies.spans[:, column.owner].long()
        stale = copies.generations[:, group] != copies.generations[:, column.owner]
        stale &= entries[:, 0] < entries[:, 1]
        found = torch.where(stale, BITS[Why.INDEX_OUT_OF_STEP], found)
        usable &= ~stale
    found = torch.where(some, found, 0)
    if shape is not Shape.POINT:
        found |= (usable & ((start % block != 0) | (end % block != 0))) * BITS[Why.HALF_BLOCK]
        start, end = (start + block - 1) // block * block, end // block * block
    usable &= start < end
    first, last = start, end
    match shape:
        case Shape.PREFIX:
            first = torch.zeros_like(start)
            last = torch.where(usable & (start == 0), end, 0) // ratio * ratio + ratio - 1
        case Shape.RUN:
            first = torch.where(start == 0, 0, start + window - 1)
        case Shape.OPEN_GROUP:
            joined = (start + column.lookback + ratio - 1) // ratio * ratio
            first = torch.where(start == 0, 0, joined)
        case Shape.CHUNK:
            first = (start + window - 1) // window * window
        case Shape.POINT:
            first, last = end, torch.where(start == 0, end, -1)
    least = ratio - 1 if shape is Shape.PREFIX else -1
    copied = torch.where(usable, last, least)
    resident = torch.where(usable & ~misaligned, last, least)
    always = (feasible == 0) | ((feasible % column.every == 0) if column.every else (feasible < 0))
    short = ~always & ~((first <= feasible) & (feasible <= resident))
    elsewhere = (first <= feasible) & (feasible <= copied)
    found |= short * torch.where(elsewhere, BITS[Why.NOT_RESIDENT], column.gone)
    return first, resident, found


@jit(any_value=("requests", "step", "draft_lookback"))
def classify_kernel(  # noqa: PLR0915 -- one launch does all four checks
    fields: Pointer,
    consumer: Pointer,
    asked: Pointer,
    known: Pointer,
    spans: Pointer,
    abi: Pointer,
    generations: Pointer,
    places: Pointer,
    kinds: Pointer,
    resumes: Pointer,
    whys: Pointer,
    group_whys: Pointer,
    requests: Scalar,
    step: Scalar,
    draft_lookback: Scalar,
    GROUPS: constexpr,
    BLOCK_GROUPS: constexpr,
    BLOCK: constexpr,
) -> None:
    """Classify some requests, all their groups side by side."""
    request = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    fork = tl.load(asked + 2 * request, request < requests, -1)
    live = (request < requests) & (fork >= 0)
    prompt = tl.load(asked + 2 * request + 1, live, 1)
    found_key = tl.load(known + request, live, 0) != 0

    target = tl.minimum(fork, prompt - 1)
    limit = tl.maximum(tl.minimum(fork - draft_lookback, prompt - 1), 0)
    feasible = limit // step * step
    why = tl.where((feasible < limit) | (limit == 0), _BELOW_GRANULARITY, 0)
    why = why | tl.where((draft_lookback > 0) & (limit < target), _DRAFT_LOOKBACK, 0)
    why = why | tl.where(target < fork, _LAST_TOKEN, 0)

    group = tl.arange(0, BLOCK_GROUPS)
    mine = group < GROUPS
    field = fields + group * 11
    block = tl.load(field, mine, 1)[None, :]
    shape = tl.load(field + 1, mine, 0)[None, :]
    ratio = tl.load(field + 2, mine, 1)[None, :]
    lookback = tl.load(field + 3, mine, 0)[None, :]
    window = tl.load(field + 4, mine, 1)[None, :]
    alignment = tl.load(field + 5, mine, 1)[None, :]
    owner = tl.load(field + 6, mine, -1)[None, :]
    votes = tl.load(field + 7, mine, 0)[None, :] > 0
    gone = tl.load(field + 8, mine, 0)[None, :]
    every = tl.load(field + 9, mine, 0)[None, :]
    every_step = tl.load(field + 10, mine, 0)[None, :]

    row = request.to(tl.int64)[:, None] * GROUPS
    cell = row + group[None, :]
    mask = live[:, None] & mine[None, :]
    start = tl.load(spans + 2 * cell, mask, 0)
    end = tl.load(spans + 2 * cell + 1, mask, 0)
    found = same_abi(abi + 4 * cell, consumer, mask)
    usable = (start < end) & (found == 0)
    placed, misaligned, inside = right_bytes(places + 6 * cell, alignment, mask)
    found = found | tl.where(misaligned, _MISALIGNED, 0)
    found = found | tl.where(placed & (inside == 0), _OUT_OF_REGION, 0)
    usable = usable & ((placed == 0) | inside)
    # Out of step comes before all else of an index, and hides it.
    old = stale(spans, generations, cell, row + owner, mask & (owner >= 0))
    found = tl.where(old, _OUT_OF_STEP, found)
    usable = usable & (old == 0)
    found = tl.where(start < end, found, 0)

    half = (shape != _POINT) & ((start % block != 0) | (end % block != 0))
    found = found | tl.where(usable & half, _HALF_BLOCK, 0)
    some, first, last, least = points(start, end, block, shape, ratio, lookback, window)
    copied = tl.where(usable & some, last, least)
    resident = tl.where(usable & some & (misaligned == 0), last, least)
    here = feasible[:, None]
    always = (here == 0) | ((every > 0) & (here % tl.maximum(every, 1) == 0))
    short = (always == 0) & ((first > here) | (here > resident))
    why_short = tl.where((first <= here) & (here <= copied), _NOT_RESIDENT, gone)
    found = found | tl.where(short, why_short, 0)

    resume = tl.where(found_key, feasible, 0)
    moved = tl.max(resume, 0)
    while moved > 0:
        held = largest(resume[:, None], first, resident, every_step, step)
        lower = tl.min(tl.where(votes, held, resume[:, None]), 1)
        moved = tl.max((lower != resume).to(tl.int32), 0)
        resume = lower

    kind = tl.where(resume == 0, 0, tl.where(resume == target, 2, 1))
    tl.store(kinds + request, kind, live)
    tl.store(resumes + request, resume, live)
    tl.store(whys + request, tl.where(found_key, why, _UNKNOWN), live)
    told = found_key[:, None] & votes
    tl.store(group_whys + cell, tl.where(told, found, 0), mask)


def classify_batch(
    model: Columns,
    consumer: torch.Tensor,
    asked: torch.Tensor,
    known: torch.Tensor,
    copies: Copies,
    out: Verdicts | None = None,
) -> Verdicts:
    """Say what each hash hit is worth as it stands: identity, then the four checks (命中判定).

    The domain: at most one copy of each group, on the device, on one rank; identity is part of
    the key, so ``known`` says that the key was found. On it, with `fivestate.spec.reuse.classify`:

    * HIT is said of the same requests, and reasons are the same, "no gain" apart;
    * where nothing can be brought back (no copy to repack, refold or rebuild from, no replay),
      kind and resume point are the same;
    * elsewhere the resume point is a lower bound: what can be brought back has to be asked of
      `classify`, and the reasons say whether it is worth asking.

    The shape of the launch is that of the batch, nothing is allocated when ``out`` is given, and
    no value is looked at on the host, so it can be captured. Padding rows, whose fork is -1,
    write nothing.
    Source: seed 000 §5; domain §1.10.

    Args:
        model: the geometry: see `fivestate.kernels.parts.batch.columns`.
        consumer: shape (4,), dtype int32: words of what the consumer's kernels assume.
        asked: shape (requests, 2), dtype int32: fork and prompt, in tokens, as of
            `fivestate.spec.reuse.Asked`; fork -1 for padding.
        known: shape (requests,), dtype int32: whether the key is in the index.
        copies: what there is.
        out: where to write; by default new, and MISS in padding rows.

    Returns:
        out.

    Raises:
        ValueError: an argument does not fit; nothing was launched.
    """
    check_batch(model, consumer, asked, known, copies, out)
    if not by_triton(asked):
        return classify_batch_reference(model, consumer, asked, known, copies, out)
    out = verdicts(asked, len(model.fields)) if out is None else out
    launch(
        classify_kernel,
        (-(-len(asked) // BLOCK),),
        model.fields,
        consumer,
        asked,
        known,
        *copies,
        *out,
        len(asked),
        model.step,
        model.draft_lookback,
        GROUPS=len(model.fields),
        BLOCK_GROUPS=power_of_2(len(model.fields)),
        BLOCK=BLOCK,
    )
    return out
