"""What the bench of the kernels runs: our calls, their bytes, and what one would write in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch

from fivestate.kernels.attend import attend
from fivestate.kernels.classify import classify_batch, classify_batch_reference
from fivestate.kernels.digest import digest, word_keys, word_sums
from fivestate.kernels.fold import fold
from fivestate.kernels.forms import index_keys
from fivestate.kernels.forms.rows import Pages
from fivestate.kernels.pages import gather, scatter
from fivestate.kernels.parts.batch import Copies, columns
from fivestate.kernels.route import route
from fivestate.kernels.window import append
from fivestate.spec.reuse.files import load_geometry

PAGES_BYTES = 1_728, 8_640, 32_832, 37_440
"""The pages of dsv4-flash; each is a whole number of rows of 576 bytes."""
ROW_BYTES = 576
GEOMETRY = "dsv4-flash"

Run = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One call, measured.

    Attributes:
        name: what it does, at which size.
        run: does it.
        moved_bytes: what it reads and writes; 0 where that is not what it costs.
        peers: the same in torch, by name.
        right: whether ``run`` has done what the first peer does, to the byte.
        compiled: whether peers are measured compiled as well.
    """

    name: str
    run: Run
    moved_bytes: int = 0
    peers: dict[str, Run] = field(default_factory=dict)
    right: Callable[[], bool] = lambda: True
    compiled: bool = True


def cases(
    device: torch.device, total_bytes: int, requests: int, context_tokens: int
) -> Iterator[Case]:
    """Yield all cases one after the other: the memory of one is free before the next.

    Args:
        device: where.
        total_bytes: of the pages of one case.
        requests: lookups in a batch; a step has a 64th as many queries.
        context_tokens: before each query, a multiple of 256.
    """
    for page_bytes in PAGES_BYTES:
        for make in (_gather, _scatter, _append, _digest):
            yield make(device, max(total_bytes // page_bytes, 2), page_bytes)
    few = max(requests // 64, 2)
    yield _fold(device, 4, 2, total_bytes // (1 << 17))
    yield _fold(device, 128, 1, max(total_bytes // (1 << 20), 2))
    yield _route(device, few, context_tokens)
    yield _route_fp8(device, few, context_tokens)
    yield _attend(device, few, context_tokens)
    yield _classify(device, requests)


def _bytes(device: torch.device, *shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, device=device)


def _order(device: torch.device, count: int) -> torch.Tensor:
    """Return all pages but the null block, in random order."""
    return torch.randperm(count, dtype=torch.int64, device=device) + 1


def _gather(device: torch.device, count: int, page_bytes: int) -> Case:
    pages, table = _bytes(device, count + 1, page_bytes), _order(device, count)
    out, expected = (torch.empty_like(pages[1:]) for _ in range(2))
    return Case(
        f"gather, pages of {page_bytes:,} bytes",
        partial(gather, pages, table, out),
        2 * out.numel(),
        {"index_select": lambda: torch.index_select(pages, 0, table, out=expected)},
        lambda: torch.equal(out, expected),
    )


def _scatter(device: torch.device, count: int, page_bytes: int) -> Case:
    rows, table = _bytes(device, count, page_bytes), _order(device, count)
    pages, expected = (torch.zeros_like(rows[:1]).repeat(count + 1, 1) for _ in range(2))
    return Case(
        f"scatter, pages of {page_bytes:,} bytes",
        partial(scatter, rows, pages, table),
        2 * rows.numel(),
        {"index_copy_": lambda: expected.index_copy_(0, table, rows)},
        lambda: torch.equal(pages, expected),
    )


def _append(device: torch.device, count: int, page_bytes: int) -> Case:
    """Write whole windows: a ring is one page, its rows are those of DeepSeek-V4."""
    capacity = page_bytes // ROW_BYTES
    rows, ring = _bytes(device, count, capacity, ROW_BYTES), _order(device, count)
    rings, expected = (torch.zeros_like(rows[:1]).repeat(count + 1, 1, 1) for _ in range(2))
    first = torch.arange(count, device=device) * 7
    filled = torch.full_like(first, capacity)

    def in_torch() -> None:
        cell = (first[:, None] + torch.arange(capacity, device=device)) % capacity
        expected[ring[:, None], cell] = rows

    return Case(
        f"window, rings of {page_bytes:,} bytes",
        partial(append, rows, rings, ring, first, filled),
        2 * rows.numel(),
        {"index_put_": in_torch},
        lambda: torch.equal(rings, expected),
    )


def _digest(device: torch.device, count: int, page_bytes: int) -> Case:
    objects = _bytes(device, count, page_bytes)
    length = torch.full((count, 1), page_bytes, device=device)
    keys = word_keys(0, page_bytes // 8 + 1, device)
    found: dict[str, torch.Tensor] = {}

    def in_torch() -> None:
        found["torch"] = word_sums(objects.view(torch.int64), keys[1:]) + word_sums(
            length, keys[:1]
        )

    return Case(
        f"digest, pages of {page_bytes:,} bytes",
        lambda: found.update(ours=digest(objects)),
        objects.numel(),
        {"elementwise": in_torch},
        lambda: torch.equal(found["ours"], found["torch"]),
    )


def _fold(device: torch.device, ratio: int, branches: int, entries: int) -> Case:
    dim, block = 512, 4 if ratio == 4 else 8
    tokens = entries * ratio
    shape = (tokens // block + 1, block, branches, dim)
    rows, gates = torch.randn(2, *shape, device=device)
    table = _order(device, tokens // block).int()[None]
    verified = torch.tensor([tokens], dtype=torch.int32, device=device)
    number = torch.arange(entries, device=device)
    jobs = torch.stack([number * 0, number], 1).int()
    out = torch.zeros((entries // 64 + 2, 64, dim), dtype=torch.bfloat16, device=device)

    def in_torch() -> torch.Tensor:
        mixed, weights = (
            each[table[0].long()].view(entries, ratio, branches, dim) for each in (rows, gates)
        )
        if branches == 2:
            mixed, weights = (
                torch.cat([each[:-1, :, 0], each[1:, :, 1]], 1) for each in (mixed, weights)
            )
        else:
            mixed, weights = mixed[:, :, 0], weights[:, :, 0]
        entry: torch.Tensor = (mixed * weights.softmax(1)).sum(1).bfloat16()
        return entry

    return Case(
        f"fold, {entries:,} entries of ratio {ratio}",
        partial(fold, rows, gates, table, verified, jobs, number + 64, out, ratio=ratio),
        peers={"softmax and sum": in_torch},
    )


def _route(device: torch.device, queries: int, tokens: int) -> Case:
    heads, dim, ratio, top_k = 64, 128, 4, 512
    entries = tokens // ratio
    asked = torch.randn(queries, heads, dim, device=device).bfloat16()
    weights = torch.rand(queries, heads, device=device)
    keys = torch.randn(entries // 64 + 1, 64, dim, device=device).bfloat16()
    table = _order(device, entries // 64).int()[None].expand(queries, -1)
    positions = torch.full((queries,), tokens - 1, dtype=torch.int32, device=device)

    def in_torch() -> torch.Tensor:
        rows = keys[table[0].long()].view(entries, dim)
        scores = (asked @ rows.T).float().relu().mul(weights[:, :, None]).sum(1)
        return scores.topk(top_k, dim=1).indices.sort(1).values

    return Case(
        f"route, {queries} queries, {entries:,} entries, top {top_k}",
        partial(route, asked, weights, keys, table, positions, ratio=ratio, top_k=top_k),
        peers={"matmul and topk": in_torch},
    )


def _route_fp8(device: torch.device, queries: int, tokens: int) -> Case:
    """Route over pages of dsv4-flash, of which each query has its own."""
    heads, ratio, top_k, per_page = 64, 4, 512, 64
    entries = tokens // ratio
    columns_each = entries // per_page
    asked = torch.randn(queries, heads, index_keys.DIM, device=device).bfloat16()
    weights = torch.rand(queries, heads, device=device)
    size = index_keys.page_size_bytes(per_page)
    pages = torch.randint(0, 0x77, (queries * columns_each + 1, size), device=device).byte()
    pages[:, per_page * index_keys.DIM :].view(torch.float32).fill_(0.25)
    table = _order(device, queries * columns_each).int().view(queries, columns_each)
    positions = torch.full((queries,), tokens - 1, dtype=torch.int32, device=device)
    data = per_page * index_keys.DIM

    def in_torch() -> torch.Tensor:
        held = pages[table.long()]
        keys = held[:, :, :data].view(torch.float8_e4m3fn).bfloat16()
        scale = held[:, :, data : data + per_page * 4].contiguous().view(torch.float32)
        rows = keys.reshape(queries, entries, index_keys.DIM)
        scores = (asked @ rows.mT).float().relu().mul(weights[:, :, None]).sum(1)
        scores = scores * scale.reshape(queries, entries)
        return scores.topk(top_k, dim=1).indices.sort(1).values

    return Case(
        f"route, fp8, {queries} queries, {entries:,} entries each, top {top_k}",
        partial(
            route,
            asked,
            weights,
            pages,
            table,
            positions,
            ratio=ratio,
            top_k=top_k,
            entries_per_block=per_page,
        ),
        moved_bytes=(pages.shape[0] - 1) * per_page * (index_keys.DIM + index_keys.SCALE_BYTES),
        peers={"gather, matmul and topk": in_torch},
    )


def _attend(device: torch.device, queries: int, tokens: int) -> Case:
    heads, dim, window, top_k, ratio = 64, 512, 128, 512, 4
    asked = torch.randn(queries, heads, dim, device=device).bfloat16()
    windows, entries = (_pages(device, queries, count, dim) for count in (tokens, tokens // ratio))
    positions = torch.full((queries,), tokens - 1, dtype=torch.int32, device=device)
    chosen = torch.stack(
        [torch.randperm(tokens // ratio, device=device)[:top_k].sort().values for _ in positions]
    ).int()
    own = torch.arange(tokens - window, tokens, device=device)
    scale = dim**-0.5

    def in_torch() -> torch.Tensor:
        rows = windows.pages[windows.table[0, own // 64].long(), own % 64].expand(queries, -1, -1)
        page = entries.table[0, (chosen // 64).long()].long()
        rows = torch.cat([rows, entries.pages[page, (chosen % 64).long()]], 1)
        read: torch.Tensor = (asked @ rows.mT * scale).float().softmax(2).bfloat16() @ rows
        return read

    return Case(
        f"attend, {queries} queries, {window} rows and {top_k} entries",
        partial(
            attend,
            asked,
            windows,
            entries,
            chosen,
            positions,
            window=window,
            ratio=ratio,
            scale=scale,
        ),
        peers={"gather and softmax": in_torch},
    )


def _pages(device: torch.device, queries: int, rows: int, dim: int) -> Pages:
    """Return rows of one sequence, which all queries share, in random page order."""
    pages = torch.randn(rows // 64 + 1, 64, dim, device=device).bfloat16()
    return Pages(pages, _order(device, rows // 64).int()[None].expand(queries, -1), 64)


def _classify(device: torch.device, requests: int) -> Case:
    geometry = load_geometry(GEOMETRY)
    model, groups = columns(geometry, device), len(geometry.groups)
    tokens = torch.randint(256, 131_072, (requests,), device=device)
    asked = torch.stack([tokens, tokens + 1], 1).int()
    kept = torch.randint(0, 2, (requests, groups), device=device)
    spans = torch.stack([tokens[:, None] * 0 + kept * 0, tokens[:, None] * kept], 2).int()
    copies = Copies(
        spans,
        torch.zeros((requests, groups, 4), dtype=torch.int32, device=device),
        torch.zeros((requests, groups), dtype=torch.int64, device=device),
        torch.zeros((requests, groups, 6), dtype=torch.int64, device=device),
    )
    consumer = torch.zeros(4, dtype=torch.int32, device=device)
    known = torch.ones(requests, dtype=torch.int32, device=device)
    arguments = (model, consumer, asked, known, copies)
    return Case(
        f"classify_batch, {requests:,} requests, {groups} groups",
        partial(classify_batch, *arguments),
        peers={"reference": partial(classify_batch_reference, *arguments)},
        compiled=False,  # it waits for the device group by group, and takes a minute to compile
    )
