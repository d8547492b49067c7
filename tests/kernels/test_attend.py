"""Attend: what a query reads and nothing else, and NaN where it lacks something."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.seeding import drawn, examples, seeded, shuffled_table, without_gpu
from tests.kernels.ways import DEVICE, each_way, running

from fivestate.kernels import attend as module
from fivestate.kernels.attend import SPLIT_KEYS, attend
from fivestate.kernels.forms import packed, rows
from fivestate.kernels.forms.rows import Pages
from fivestate.kernels.parts import softmax
from fivestate.kernels.select import POISONED
from fivestate.spec.need import visible

Attend = Callable[..., torch.Tensor]

HALF = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
"""Half a unit in the last place of each dtype, relative; float16's least step is 2^-24."""


@dataclass(frozen=True)
class Step:
    """One decode step: queries, and what is behind their tables; null pages hold no numbers."""

    queries: torch.Tensor
    windows: Pages
    entries: Pages
    chosen: torch.Tensor | None
    positions: torch.Tensor
    window: int
    ratio: int
    sinks: torch.Tensor | None = None

    @property
    def scale(self) -> float:
        """The factor of the logits."""
        return float(1 / math.sqrt(self.queries.shape[2]))

    def on(self, device: torch.device) -> Step:
        """Return it on a device."""

        def moved(held: Pages) -> Pages:
            return Pages(held.pages.to(device), held.table.to(device), held.per_page)

        return replace(
            self,
            queries=self.queries.to(device),
            windows=moved(self.windows),
            entries=moved(self.entries),
            chosen=None if self.chosen is None else self.chosen.to(device),
            positions=self.positions.to(device),
            sinks=None if self.sinks is None else self.sinks.to(device),
        )

    def run(self, run: Attend = attend, **given: Any) -> torch.Tensor:
        """Attend on the tensors' device."""
        return run(
            self.queries,
            self.windows,
            self.entries,
            self.chosen,
            self.positions,
            window=self.window,
            ratio=self.ratio,
            scale=self.scale,
            sinks=self.sinks,
            **given,
        )


def held(
    sizes: list[int], dim: int, per_page: int, dtype: torch.dtype, source: torch.Generator
) -> Pages:
    """Draw rows of some lengths, in pages in random order."""
    counts = [-(-size // per_page) for size in sizes]
    table, count = shuffled_table(counts, max(counts, default=0) + 1, source)
    drawn_rows = torch.randn((count, per_page, dim), generator=source)
    if dtype == torch.uint8:
        pages = torch.full((count, packed.page_size_bytes(per_page)), 0x7F, dtype=torch.uint8)
        for page in range(1, count):
            row = torch.arange(per_page)
            packed.put(pages, torch.full_like(row, page), row, drawn_rows[page], per_page)
        return Pages(pages, table, per_page)
    drawn_rows[0] = torch.nan
    return Pages(drawn_rows.to(dtype), table, per_page)


def draw(
    positions: list[int],
    *,
    window: int = 6,
    ratio: int = 4,
    top_k: int | None = 3,
    heads: int = 2,
    dim: int = 16,
    per_page: int = 4,
    dtype: torch.dtype = torch.float32,
    pages: torch.dtype | None = None,
    sinks: bool = False,
    seed: int = 0,
) -> Step:
    """Draw a step; ``top_k`` None attends to every visible entry."""
    source = drawn(seed)
    kind = pages or dtype
    windows = held([position + 1 for position in positions], dim, per_page, kind, source)
    counts = [(position + 1) // ratio for position in positions]
    entries = held(counts, dim, per_page, kind, source)
    chosen = None
    if top_k is not None:
        chosen = torch.full((len(positions), top_k), -1, dtype=torch.int32)
        for query, count in enumerate(counts):
            some = torch.randperm(count, generator=source)[:top_k].sort().values
            chosen[query, : len(some)] = some
    queries = torch.randn((len(positions), heads, dim), generator=source).to(dtype)
    logits = torch.randn(heads, generator=source) if sinks else None
    place = torch.tensor(positions, dtype=torch.int32)
    return Step(queries, windows, entries, chosen, place, window, ratio, logits)


def row(pages: Pages, query: int, position: int) -> torch.Tensor:
    """Return one row, as float64."""
    page = pages.table[query, position // pages.per_page].reshape(1).long()
    place = torch.tensor([position % pages.per_page])
    if pages.packed:
        return packed.get(pages.pages, page, place, pages.per_page)[0].double()
    return pages.pages[page, place][0].double()


def oracle(step: Step, query: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return one query's output and its bound, key by key, in float64."""
    position = int(step.positions[query])
    near = [k for k in range(position + 1) if position - k < step.window]
    every = [*range((position + 1) // step.ratio + 1)]
    if step.chosen is not None:
        every = [int(entry) for entry in step.chosen[query] if entry >= 0]
    seen = [entry for entry in every if visible(entry, position, step.ratio)]
    keys = [row(step.windows, query, k) for k in near]
    keys += [row(step.entries, query, entry) for entry in seen]
    outputs, bounds = [], []
    for head in range(step.queries.shape[1]):
        asked = step.queries[query, head].double()
        logits = [float((asked * key).sum()) * step.scale for key in keys]
        size = max(float((asked * key).abs().sum()) * step.scale for key in keys)
        if step.sinks is not None:
            logits.append(float(step.sinks[head]))
        most = max(logits)
        shares = [math.exp(logit - most) for logit in logits]
        total = math.fsum(shares)
        keyed = list(zip(shares, keys, strict=False))
        mean = sum((share * key for share, key in keyed), torch.zeros_like(asked)) / total
        spread = sum((share * key.abs() for share, key in keyed), torch.zeros_like(asked)) / total
        # A logit is a sum of n products (4 halves each, cut in three in a tensor core), and is
        # scaled; its error counts twice, for its own share and for the total. Then exponents of
        # some size (the difference, the turn to base 2), sums over the keys, and fading from block
        # to block.
        length = len(asked) + 5
        halves = 2 * length * size + 3 * (most - min(logits)) + 4 * len(logits) + 40
        shares_are = HALF[step.queries.dtype if DEVICE.type == "cuda" else torch.float32]
        outputs.append(mean)
        bounds.append((halves * HALF[torch.float32] + 2 * shares_are) * spread)
    expected, bound = torch.stack(outputs), torch.stack(bounds)
    return expected, bound + HALF[step.queries.dtype] * expected.abs() + 2.0**-25


def check(step: Step, way: str, run: Attend = attend) -> None:
    """Attend and hold each query against the oracle; padding is left as it was."""
    with running(way) as device:
        out = torch.full_like(step.queries, 7).to(device)
        given = step.on(device).run(run, out=out)
        assert given is out
        plain = step.on(device).run(run)
    assert torch.equal(plain[step.positions >= 0].cpu(), out[step.positions >= 0].cpu())
    for query, position in enumerate(step.positions.tolist()):
        found = out[query].cpu().double()
        if position < 0:
            assert (found == 7).all()
            assert (plain[query] == 0).all()
            continue
        expected, bound = oracle(step, query)
        assert bool(((found - expected).abs() <= bound).all()), (query, position)


@each_way
@pytest.mark.parametrize("top_k", [None, 1, 33])
@pytest.mark.parametrize("sinks", [False, True])
def test_a_query_reads_its_window_and_what_it_chose(
    way: str, top_k: int | None, *, sinks: bool
) -> None:
    edges = [0, -1, 1, 2, 3, 4, 5, 6, 7, 8, 63]  # around ratio 4 and window 6
    check(draw(edges, top_k=top_k, sinks=sinks), way)


@each_way
@pytest.mark.parametrize("window", [1, 127, 128, 129])
def test_a_window_is_right_at_its_edges_and_at_those_of_blocks(way: str, window: int) -> None:
    positions = [126, 127, 128, 129, 255, 256]
    check(draw(positions, window=window, ratio=128, top_k=None, heads=1, per_page=16), way)


@each_way
def test_many_keys_are_taken_in_parts_and_joined(way: str) -> None:
    step = draw([2 * SPLIT_KEYS + 40, 5], window=40, ratio=1, top_k=None, heads=3, per_page=64)
    check(step, way)


def test_a_part_that_holds_nothing_is_neither_written_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A captured graph is as wide as the longest sequence, and memory is not empty at first."""
    step = draw([5], window=4, ratio=1, top_k=None, heads=2)
    wide = torch.full((1, 3 * SPLIT_KEYS // 4), -1, dtype=torch.int32)
    wide[:, : step.entries.table.shape[1]] = step.entries.table
    step = replace(step, entries=step.entries._replace(table=wide))
    rooms = []

    def full_of_no_numbers(size: tuple[int, ...], device: torch.device) -> torch.Tensor:
        rooms.append(torch.full(size, math.nan, device=device))
        return rooms[-1]

    with running("kernel") as device:
        there = step.on(device)
        expected = there.run()
        monkeypatch.setattr(torch, "empty", full_of_no_numbers)
        found = there.run()
        monkeypatch.undo()
    parts = next(room for room in rooms if room.shape[1:] == (4, 2, 16))
    assert torch.equal(found, expected)
    assert parts[:, 1:].isnan().all()
    assert parts[:, 0].isfinite().all()


@each_way
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_may_be_halves(way: str, dtype: torch.dtype) -> None:
    check(draw([0, 9, 30], dtype=dtype, heads=17, dim=24), way)


@each_way
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pages_may_be_packed(way: str, dtype: torch.dtype) -> None:
    check(draw([3, 21], dtype=dtype, pages=torch.uint8, dim=packed.DIM, sinks=True), way)


@each_way
@pytest.mark.parametrize("lost", [0, -1])
def test_a_query_that_lacks_something_it_reads_is_no_number(way: str, lost: int) -> None:
    step = draw([15, 15, 15, 15, 15], window=6, ratio=2, top_k=None)
    step.windows.table[1, 2] = lost  # rows 8..11, of which the window reads 10 and 11
    step.entries.table[2, 0] = lost
    step.windows.table[3, 1] = lost  # rows 4..7: behind the window
    step.entries.table[4, 2] = lost  # entries 8..: not visible yet
    with running(way) as device:
        found = step.on(device).run().cpu()
    assert found[1:3].isnan().all()
    assert found[[0, 3, 4]].isfinite().all()


@each_way
def test_a_query_that_sees_more_than_its_table_has_is_no_number(way: str) -> None:
    step = draw([15, 16], window=2, ratio=1, top_k=None)
    table = step.entries.table[:, :4].contiguous()
    with running(way) as device:
        short = replace(step, entries=step.entries._replace(table=table))
        found = short.on(device).run().cpu()
    assert found[0].isfinite().all()
    assert found[1].isnan().all()


@each_way
def test_a_poisoned_choice_makes_a_query_no_number(way: str) -> None:
    step = draw([15, 15], ratio=2)
    assert step.chosen is not None
    step.chosen[1] = POISONED
    with running(way) as device:
        found = step.on(device).run().cpu()
    assert found[0].isfinite().all()
    assert found[1].isnan().all()


@each_way
def test_an_entry_that_is_chosen_too_early_is_not_read(way: str) -> None:
    step = draw([15, 14], ratio=4, top_k=4, window=2)
    assert step.chosen is not None
    step.chosen[:] = torch.tensor([0, 1, 2, 3])  # entry 3 ends with token 15
    check(step, way)


@each_way
def test_a_result_does_not_depend_on_the_rest_of_the_launch_not_even_in_a_bit(way: str) -> None:
    step = draw([9, 70, -1, 33], ratio=1, top_k=9, window=40, heads=3)
    assert step.chosen is not None
    with running(way) as device:
        there = step.on(device)
        together = there.run()
        assert there.chosen is not None
        for query in (0, 1, 3):
            one = slice(query, query + 1)
            wider = torch.full((1, 700), -1, dtype=torch.int32, device=device)
            wider[:, :9] = there.chosen[one]
            alone = replace(
                there,
                queries=there.queries[one],
                windows=there.windows._replace(table=there.windows.table[one]),
                entries=there.entries._replace(table=there.entries.table[one]),
                chosen=wider,
                positions=there.positions[one],
            ).run()
            assert torch.equal(alone[0], together[query])


@each_way
def test_pages_queries_and_outputs_may_be_strided(way: str) -> None:
    step = draw([11, 30], ratio=2, dim=16)
    with running(way) as device:
        there = step.on(device)
        expected = there.run()

        def spread(pages: Pages) -> Pages:
            layers = torch.full((len(pages.pages), 3, 4, 16), math.nan, device=device)
            layers[:, 1] = pages.pages
            table = torch.full((4, 20), -1, dtype=torch.int32, device=device)
            table[::2, : pages.table.shape[1]] = pages.table
            return Pages(layers[:, 1], table[::2], 4)

        queries = torch.full((2, 7, 32), math.nan, device=device)
        queries[:, 2:4, :16] = there.queries
        out = torch.full((2, 3, 2, 16), 7.0, device=device)
        replace(
            there,
            queries=queries[:, 2:4, :16],
            windows=spread(there.windows),
            entries=spread(there.entries),
        ).run(out=out[:, 1])
    assert torch.equal(out[:, 1], expected)
    assert (out[:, [0, 2]] == 7).all()


@settings(deadline=None, max_examples=examples(8))
@given(
    st.lists(st.integers(-1, 40), min_size=1, max_size=3),
    st.integers(1, 12),
    st.sampled_from([1, 2, 4, 8]),
    st.one_of(st.none(), st.integers(1, 12)),
    st.integers(1, 20),
    st.integers(1, 40),
    st.integers(1, 9),
)
def test_any_shape_is_attended(
    positions: list[int],
    window: int,
    ratio: int,
    top_k: int | None,
    heads: int,
    dim: int,
    per_page: int,
) -> None:
    step = draw(
        positions,
        window=window,
        ratio=ratio,
        top_k=top_k,
        heads=heads,
        dim=dim,
        per_page=per_page,
        seed=dim,
    )
    check(step, "kernel")
    check(step, "reference")


ERRORS = {
    "the window has a row too many": ("position - window + 1", "position - window"),
    "an entry is read too early": ("(position + 1) // ratio", "(position + ratio) // ratio"),
    "a later split starts over": ("split * SPLIT", "0 * split"),
    "what is not there is read as null": ("gone > 0, float", "gone < 0, float"),
    "poison is not seen": ("(number < -1)", "(number < -9)"),
}


@without_gpu
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_kernel_is_caught(tmp_path: Path, name: str) -> None:
    wrong = seeded(tmp_path, module, *ERRORS[name]).attend
    with pytest.raises(AssertionError):
        caught(wrong, "kernel")


def caught(run: Attend, way: str) -> None:
    """Run what the tests above check, in small."""
    check(draw([0, 8, 30, -1], top_k=None), way, run)
    check(draw([SPLIT_KEYS + 40], window=2, ratio=1, top_k=None, per_page=64, heads=1), way, run)
    step = draw([15, 15], ratio=2)
    assert step.chosen is not None
    step.windows.table[0, 3] = 0
    step.chosen[1] = POISONED
    with running(way):
        assert step.on(DEVICE if way == "kernel" else torch.device("cpu")).run(run).isnan().all()


REFERENCE_ERRORS = {
    "the window lacks the query's own row": ("position + 1, device", "position, device"),
    "an entry is read too early": (
        "visible_entries(position, ratio), device",
        "visible_entries(position, ratio) + 1, device",
    ),
    "a sink takes no share": ("logits = torch.cat((logits, sinks[:, None]), 1)", "pass"),
}


@without_gpu
@pytest.mark.parametrize("name", REFERENCE_ERRORS)
def test_an_error_in_the_reference_is_caught(tmp_path: Path, name: str) -> None:
    wrong = seeded(tmp_path, module, *REFERENCE_ERRORS[name]).attend
    with pytest.raises(AssertionError):
        check(draw([8, 30, -1], top_k=None, sinks=True), "reference", wrong)


@without_gpu
@pytest.mark.parametrize(
    ("part", "name", "old", "new"),
    [
        (softmax, "take", "total * fade", "total"),
        (softmax, "join", "fade * tl.load(parts", "tl.load(parts"),
        (softmax, "join", "tl.load(positions + query) >= 0", "tl.load(positions + query) > 0"),
        (rows, "load_rows", "position % PER_PAGE", "position % PER_PAGE * 0"),
    ],
)
def test_an_error_in_a_part_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: Any, name: str, old: str, new: str
) -> None:
    monkeypatch.setattr(module, name, getattr(seeded(tmp_path, part, old, new), name))
    with pytest.raises(AssertionError):
        caught(attend, "kernel")


def refused(message: str, step: Step, **given: Any) -> None:
    out = torch.full_like(step.queries, 7) if step.queries.device.type == "cpu" else None
    with running("reference"), pytest.raises(ValueError, match=message):
        step.run(**{"out": out, **given})
    assert out is None or (out == 7).all()


def test_what_does_not_fit_is_refused_before_anything_is_written() -> None:
    step = draw([11, 30], ratio=2)
    pages, table, per_page = step.windows
    assert step.chosen is not None
    refused("queries: float64 is given", replace(step, queries=step.queries.double()))
    refused("queries: heads: 129 is given", replace(step, queries=torch.zeros(2, 129, 16)))
    refused("queries: dim: 600 is given", replace(step, queries=torch.zeros(2, 2, 600)))
    refused("window: 0 is given", replace(step, window=0))
    refused("ratio: 0 is given", replace(step, ratio=0))
    refused("positions: int64 is given", replace(step, positions=step.positions.long()))
    refused(r"positions\[0\]: -3 is given", replace(step, positions=step.positions * 0 - 3))
    refused("windows.pages: shape", replace(step, windows=Pages(pages[:, :3], table, per_page)))
    refused("windows.pages: float16", replace(step, windows=Pages(pages.half(), table, per_page)))
    refused("windows.table: int64", replace(step, windows=Pages(pages, table.long(), per_page)))
    refused(
        r"windows.table\[0\]: 99 is given, -1 .. ",
        replace(step, windows=Pages(pages, torch.full_like(table, 99), per_page)),
    )
    refused("entries.per_page: 0", replace(step, entries=Pages(pages, table, 0)))
    refused("chosen: int64 is given", replace(step, chosen=step.chosen.long()))
    refused(r"chosen\[0\]: 99 is given", replace(step, chosen=torch.full_like(step.chosen, 99)))
    refused("sinks: shape", replace(step, sinks=torch.zeros(3)))
    refused("out: shape", step, out=torch.full((2, 2, 17), 7.0))
    refused("out: shares memory with queries", step, out=step.queries)
    refused(
        "positions: on meta, but queries is on cpu",
        replace(step, positions=step.positions.to("meta")),
    )


def test_packed_pages_that_do_not_fit_are_refused() -> None:
    step = draw([5], pages=torch.uint8, dim=packed.DIM, dtype=torch.bfloat16)
    pages, table, per_page = step.windows
    refused("queries: float16 is given", replace(step, queries=step.queries.half()))
    refused("windows.pages: shape", replace(step, windows=Pages(pages, table, per_page + 1)))
    odd = torch.zeros((len(pages), pages.shape[1] + 1), dtype=torch.uint8)[:, 1:]
    refused("multiples of 2 are wanted", replace(step, windows=Pages(odd, table, per_page)))
    narrow = replace(step, queries=step.queries[:, :, :256].contiguous())
    refused("queries: dim: 256 is given, 512", narrow)
