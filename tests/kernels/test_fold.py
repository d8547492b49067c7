"""Fold: each entry from its own rows, by position alone, and nothing else is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.seeding import drawn, examples, seeded, shuffled_table, without_gpu
from tests.kernels.ways import DEVICE, each_way, running

from fivestate.kernels import fold as module
from fivestate.kernels.fold import fold
from fivestate.kernels.forms import packed
from fivestate.spec.need import tail_start, visible

Fold = Callable[..., None]

HALF = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
"""Half a unit in the last place of each dtype, relative; float16's least step is 2^-24."""


@dataclass(frozen=True)
class Rows:
    """Tail rows of some requests, in pages in random order; the null page holds no numbers.

    Attributes:
        values: shape (num_blocks, block_rows, branches, dim).
        gates: like values.
        table: shape (requests, columns).
        verified: tokens of each request.
    """

    values: torch.Tensor
    gates: torch.Tensor
    table: torch.Tensor
    verified: torch.Tensor

    @property
    def block_rows(self) -> int:
        """Rows of one page."""
        return self.values.shape[1]

    @property
    def branches(self) -> int:
        """Branches of one row."""
        return self.values.shape[2]

    def row(self, request: int, position: int, branch: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return value and gate of one branch of one row."""
        block = int(self.table[request, position // self.block_rows])
        place = block, position % self.block_rows, branch
        return self.values[place], self.gates[place]

    def to(self, device: torch.device) -> Rows:
        """Return them on a device."""
        return Rows(*(each.to(device) for each in vars(self).values()))


def draw(
    lengths: list[int],
    branches: int,
    dim: int,
    block_rows: int = 4,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Rows:
    """Draw rows; gates differ by several units, so that weights differ by orders."""
    source = drawn(seed)
    sizes = [-(-length // block_rows) for length in lengths]
    table, pages = shuffled_table(sizes, max(sizes, default=0) + 1, source)
    shape = pages, block_rows, branches, dim
    values = torch.randn(shape, generator=source).to(dtype)
    gates = (torch.randn(shape, generator=source) * 3).to(dtype)
    values[0] = gates[0] = torch.nan
    return Rows(values, gates, table, torch.tensor(lengths, dtype=torch.int32))


def every_entry(lengths: list[int], ratio: int) -> list[tuple[int, int]]:
    """List all whole groups of all requests."""
    return [(r, i) for r, length in enumerate(lengths) for i in range(length // ratio)]


def folded(
    rows: Rows,
    jobs: list[tuple[int, int]],
    ratio: int,
    dtype: torch.dtype = torch.float32,
    run: Fold = fold,
    per_page: int = 4,
) -> torch.Tensor:
    """Fold entries into a new place, one slot after the other, and return them in that order."""
    pages = -(-len(jobs) // per_page) + 1
    out = torch.full((pages, per_page, rows.values.shape[3]), 7.0).to(rows.values.device, dtype)
    slots = torch.arange(len(jobs), device=out.device) + per_page
    asked = torch.tensor(jobs, dtype=torch.int32, device=out.device).reshape(-1, 2)
    run(rows.values, rows.gates, rows.table, rows.verified, asked, slots, out, ratio=ratio)
    assert (out[0] == 7).all()
    return out.reshape(-1, out.shape[2])[per_page : per_page + len(jobs)]


def oracle(rows: Rows, request: int, entry: int, ratio: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an entry, and its bound, row by row in float64.

    The rows are those that `tail_start` says a fold of this entry reads, up to the last token of
    its group; a row before the group gives its first branch.
    """
    assert visible(entry, int(rows.verified[request]) - 1, ratio)
    lookback = ratio * (rows.branches - 1)
    held = []
    for position in range(tail_start(entry, ratio, lookback), (entry + 1) * ratio):
        own = position >= entry * ratio
        held.append(rows.row(request, position, rows.branches - 1 if own else 0))
    result, bound = [], []
    for column in range(rows.values.shape[3]):
        pairs = [(float(value[column]), float(gate[column])) for value, gate in held]
        most = max(gate for _, gate in pairs)
        shares = [math.exp(gate - most) for _, gate in pairs]
        total = math.fsum(shares)
        result.append(math.fsum(s * v for s, (v, _) in zip(shares, pairs, strict=True)) / total)
        size = math.fsum(s * abs(v) for s, (v, _) in zip(shares, pairs, strict=True)) / total
        # An exponent of size x is rounded by x halves, as a difference and twice on its way to
        # base 2; exp is within 2 units; two sums of n terms are rounded n times each; then a
        # product and a quotient (2 units).
        halves = 3 * max(most - gate for _, gate in pairs) + 2 * len(pairs) + 12
        bound.append(halves * HALF[torch.float32] * size)
    return torch.tensor(result, dtype=torch.float64), torch.tensor(bound, dtype=torch.float64)


def check(
    rows: Rows,
    ratio: int,
    way: str,
    dtype: torch.dtype = torch.float32,
    run: Fold = fold,
) -> None:
    """Fold every entry and hold each against the oracle."""
    jobs = every_entry(rows.verified.tolist(), ratio)
    with running(way) as device:
        found = folded(rows.to(device), jobs, ratio, dtype, run).cpu().double()
    for one, (request, entry) in zip(found, jobs, strict=True):
        expected, bound = oracle(rows, request, entry, ratio)
        if dtype != torch.float32:
            bound += HALF[dtype] * expected.abs() + 2.0**-25
        assert bool(((one - expected).abs() <= bound).all()), (request, entry)


@each_way
@pytest.mark.parametrize(
    ("ratio", "branches", "lengths"),
    [
        (4, 2, [3, 4, 5, 7, 8, 9, 0]),
        (2, 2, [1, 2, 3, 5]),
        (1, 1, [1, 3]),
        (128, 1, [127, 128, 129, 255]),
        (128, 1, [130, 256, 257]),
        (64, 2, [63, 127, 128, 130]),
    ],
)
@pytest.mark.parametrize("dim", [3, 64, 80])
def test_every_entry_is_what_its_rows_give(
    way: str, ratio: int, branches: int, lengths: list[int], dim: int
) -> None:
    check(draw(lengths, branches, dim, 8 if ratio > 4 else 4), ratio, way)


@each_way
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_and_entries_may_be_halves(way: str, dtype: torch.dtype) -> None:
    check(draw([9, 12], 2, 40, dtype=dtype), 4, way, dtype)
    check(draw([9, 12], 2, 40), 4, way, dtype)


@each_way
def test_a_packed_page_holds_what_a_plain_one_does(way: str) -> None:
    for ratio, branches, lengths in ((4, 2, [3, 9, 17]), (128, 1, [257])):
        rows = draw(lengths, branches, packed.DIM, 8)
        jobs = every_entry(lengths, ratio)
        pages = torch.full((4, packed.page_size_bytes(3)), 0xA5, dtype=torch.uint8)
        expected = pages.clone()
        slots = torch.randperm(9, generator=drawn(1))[: len(jobs)] + 3
        with running(way) as device:
            there, out = rows.to(device), pages.to(device)
            plain = folded(there, jobs, ratio).cpu()
            fold(
                there.values,
                there.gates,
                there.table,
                there.verified,
                torch.tensor(jobs, dtype=torch.int32, device=device),
                slots.to(device),
                out,
                ratio=ratio,
                entries_per_page=3,
            )
        packed.put(expected, slots // 3, slots % 3, plain, 3)
        assert torch.equal(out.cpu(), expected)


@each_way
@pytest.mark.parametrize(("ratio", "branches"), [(4, 2), (16, 1)])
def test_an_entry_does_not_depend_on_chunks_or_pages_not_even_in_a_bit(
    way: str, ratio: int, branches: int
) -> None:
    length, dim = 4 * ratio + 3, 24
    rows = draw([length], branches, dim)
    everything = every_entry([length], ratio)
    with running(way) as device:
        once = folded(rows.to(device), everything, ratio).cpu()
        for chunk in (1, ratio - 1, ratio + 1, 3 * ratio):
            other = moved(rows, 8 if chunk % 2 else 2, seed=chunk)
            parts = []
            done = 0
            for start in range(0, length, chunk):
                verified = min(start + chunk, length)
                held = Rows(*vars(other).values())
                held = Rows(held.values, held.gates, held.table, torch.tensor([verified]).int())
                jobs = [(0, i) for i in range(done, verified // ratio)]
                parts.append(folded(held.to(device), jobs, ratio).cpu())
                done = verified // ratio
            assert torch.equal(torch.cat(parts), once), chunk


def moved(rows: Rows, block_rows: int, seed: int) -> Rows:
    """Return the rows of the only request in other pages, behind those of another one."""
    length = int(rows.verified[0])
    other = draw([5, length], rows.branches, rows.values.shape[3], block_rows, seed=seed)
    for position in range(length):
        block = other.table[1, position // block_rows], position % block_rows
        for branch in range(rows.branches):
            value, gate = rows.row(0, position, branch)
            other.values[block][branch], other.gates[block][branch] = value, gate
    return Rows(other.values, other.gates, other.table[1:], rows.verified)


@each_way
def test_what_is_no_whole_group_and_what_is_padding_writes_nothing(way: str) -> None:
    rows = draw([7, 9], 2, 8)
    jobs = [(0, 1), (-1, 0), (1, 0), (1, 1), (1, 2), (0, 5), (-1, -1)]
    slots = [4, 5, -1, 2, 6, 7, -1]  # of these, entry 1 of request 0 and 2 of 1 are unfinished
    for out in (torch.full((3, 4, 8), 7.0), torch.full((3, 4, 8), 7.0, dtype=torch.bfloat16)):
        with running(way) as device:
            there, written = rows.to(device), out.to(device)
            asked = torch.tensor(jobs, dtype=torch.int32, device=device)
            places = torch.tensor(slots, device=device)
            before = [each.clone() for each in vars(there).values()]
            fold(
                there.values,
                there.gates,
                there.table,
                there.verified,
                asked,
                places,
                written,
                ratio=4,
            )
        assert (written == 7).all()
        for one, other in zip(before, vars(there).values(), strict=True):
            assert torch.equal(one.nan_to_num(5), other.nan_to_num(5))


@each_way
@pytest.mark.parametrize("lost", [0, -1])
def test_an_entry_without_one_of_its_rows_is_no_number(way: str, lost: int) -> None:
    rows = draw([24], 2, 8, block_rows=4)
    rows.table[0, 2] = lost
    with running(way) as device:
        found = folded(rows.to(device), every_entry([24], 4), 4).cpu()
    none = found.isnan().all(1)
    assert none.tolist() == [False, False, True, True, False, False]  # entry 3 looks back
    assert not found[~none].isnan().any()


@each_way
def test_without_a_column_no_row_is_there(way: str) -> None:
    rows = draw([9], 2, 8)
    with running(way) as device:
        there = Rows(rows.values, rows.gates, rows.table[:, :0], rows.verified).to(device)
        assert folded(there, [(0, 0), (0, 1)], 4).isnan().all()


@each_way
def test_rows_entries_and_tables_may_be_strided(way: str) -> None:
    rows = draw([13, 6], 2, 20)
    jobs = every_entry([13, 6], 4)
    with running(way) as device:
        expected = folded(rows.to(device), jobs, 4).cpu()
        layers = torch.randn(len(rows.values), 3, 2, *rows.values.shape[1:])
        layers[:, 1, 0], layers[:, 1, 1] = rows.values, rows.gates
        layers = layers.to(device)
        table = torch.full((4, 9), -1, dtype=torch.int32)
        table[::2, : rows.table.shape[1]] = rows.table
        out = torch.full((3, 2, 4, 20), 7.0, device=device)
        fold(
            layers[:, 1, 0],
            layers[:, 1, 1],
            table.to(device)[::2],
            rows.verified.to(device),
            torch.tensor(jobs, dtype=torch.int32, device=device),
            torch.arange(len(jobs), device=device) + 4,
            out[:, 1],
            ratio=4,
        )
    out = out.cpu()
    assert torch.equal(out[1:, 1].reshape(8, 20)[: len(jobs)], expected)
    assert (out[:, 0] == 7).all()
    assert (out[0] == 7).all()


@settings(deadline=None, max_examples=examples(12))
@given(
    st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2), (8, 1), (8, 2)]),
    st.lists(st.integers(0, 20), min_size=1, max_size=3),
    st.integers(1, 70),
    st.integers(1, 9),
    st.integers(0, 9),
)
def test_any_shape_is_folded(
    form: tuple[int, int], lengths: list[int], dim: int, block_rows: int, seed: int
) -> None:
    ratio, branches = form
    rows = draw(lengths, branches, dim, block_rows, seed=seed)
    check(rows, ratio, "kernel")
    check(rows, ratio, "reference")


ERRORS = {
    "the look-back takes the branch of its own group": (
        "token // ratio",
        "0 * token + branches - 1",
    ),
    "a group is folded a token early": ("(entry + 1) * ratio <=", "(entry + 1) * ratio - 1 <="),
    "gates are not subtracted from their largest": ("- largest)", "* 0 + weights[:, 0])"),
}


@without_gpu
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_reference_is_caught(tmp_path: Path, name: str) -> None:
    wrong = seeded(tmp_path, module, *ERRORS[name]).fold
    with pytest.raises(AssertionError):
        caught(wrong, "reference")


KERNEL_ERRORS = {
    "the look-back takes the branch of its own group": (
        "token // RATIO",
        "token * 0 + BRANCHES - 1",
    ),
    "a group is folded a token early": ("length // RATIO", "(length + 1) // RATIO"),
    "an entry number overflows": ("entry < length // RATIO", "(entry + 1) * RATIO <= length"),
    "the null page is written": ("(slot >= PER_PAGE)", "(slot >= 0)"),
    "a page that is not there is read as null": ("gone, float", "gone & (entry < 0), float"),
}


@without_gpu
@pytest.mark.parametrize("name", KERNEL_ERRORS)
def test_an_error_in_the_kernel_is_caught(tmp_path: Path, name: str) -> None:
    wrong = seeded(tmp_path, module, *KERNEL_ERRORS[name]).fold
    with pytest.raises(AssertionError):
        caught(wrong, "kernel")


def caught(run: Fold, way: str) -> None:
    """Run what the tests above check, in small."""
    check(draw([9, 12], 2, 8), 4, way, run=run)
    rows = draw([7], 2, 8)
    # The last of these, times its ratio, is 4 in 32 bits.
    for slot, entry, lost in ((4, 1, False), (2, 0, False), (4, 0, True), (4, 2**30, False)):
        out = torch.full((2, 4, 8), 7.0, device=DEVICE)
        table = rows.table.clone()
        if lost:
            table[0, 0] = 0
        with running(way) as device:
            there = Rows(rows.values, rows.gates, table, rows.verified).to(device)
            asked = torch.tensor([[0, entry]], dtype=torch.int32, device=device)
            run(*vars(there).values(), asked, torch.tensor([slot], device=device), out, ratio=4)
        assert bool(out.isnan().any()) if lost else bool((out == 7).all())


def arguments() -> dict[str, Any]:
    rows = draw([9], 2, 8)
    jobs = torch.tensor([[0, 0], [0, 1]], dtype=torch.int32)
    return {
        "rows": rows.values,
        "gates": rows.gates,
        "table": rows.table,
        "verified": rows.verified,
        "jobs": jobs,
        "slots": torch.tensor([4, 5]),
        "out": torch.full((3, 4, 8), 7.0),
        "ratio": 4,
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rows", torch.zeros(3, 4, 2, 8, dtype=torch.float64), "rows: float64 is given"),
        ("rows", torch.zeros(3, 4, 3, 8), "rows: branches: 3 is given"),
        ("gates", torch.zeros(3, 4, 2, 8, dtype=torch.float16), "gates: float16 is given"),
        ("gates", torch.zeros(3, 4, 2, 9), "gates: shape"),
        ("ratio", 3, "ratio: 3 is given, a power of two up to 64 is wanted"),
        ("ratio", 128, "ratio: 128 is given"),
        ("table", torch.zeros(1, 4), "table: float32 is given"),
        ("table", torch.full((1, 4), 9, dtype=torch.int32), r"table\[0\]: 9 is given, -1 .. 5"),
        ("table", torch.zeros((2, 4), dtype=torch.int32), "table: shape"),
        ("verified", torch.tensor([9]), "verified: int64 is given"),
        ("jobs", torch.tensor([[1, 0], [0, 0]], dtype=torch.int32), "jobs: request"),
        ("slots", torch.tensor([4, 12]), r"slots\[1\]: 12 is given, -1 .. 11"),
        ("slots", torch.tensor([4, 4]), "slots: 4 is given more than once"),
        ("slots", torch.tensor([4]), "slots: shape"),
        ("out", torch.zeros(3, 4, 9), "out: shape"),
        ("out", torch.zeros(3), "out: shape"),
        ("out", torch.zeros(3, 4, 8, dtype=torch.int32), "out: int32 is given"),
        ("out", torch.zeros(3, 4, 16)[:, :, ::2], "out: stride 2"),
        ("out", torch.zeros(3, 4, 8, device="meta"), "out: on meta, but rows is on cpu"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    name: str, value: torch.Tensor | int, message: str
) -> None:
    given = arguments()
    out = given["out"]
    assert isinstance(out, torch.Tensor)
    with running("reference"), pytest.raises(ValueError, match=message):
        fold(**{**given, name: value})
    assert (out == 7).all()


def test_packed_pages_have_entries_of_one_size() -> None:
    given = arguments()
    pages = torch.zeros((3, packed.page_size_bytes(4)), dtype=torch.uint8)
    with running("reference"), pytest.raises(ValueError, match="rows: dim: 8 is given, 512"):
        fold(**{**given, "out": pages, "entries_per_page": 4})
    with running("reference"), pytest.raises(ValueError, match="out: shape"):
        fold(**{**given, "out": pages, "entries_per_page": 5})
