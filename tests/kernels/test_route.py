"""Route: the scores, the choice, and that neither depends on anything but position and rows."""

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

from fivestate.kernels import route as route_module
from fivestate.kernels import select as select_module
from fivestate.kernels.route import route, score
from fivestate.kernels.select import POISONED, select
from fivestate.spec.need import visible
from fivestate.spec.reuse.route import route as route_by_definition

HALF = 2.0**-24
"""Half a unit in the last place of float32, relative."""


@dataclass(frozen=True)
class Index:
    """Index rows of some queries' sequences, in pages in random order.

    Attributes:
        queries: shape (queries, heads, dim).
        weights: shape (queries, heads).
        keys: shape (pages, per_page, dim); the null page holds no numbers.
        table: shape (queries, columns).
        positions: shape (queries,).
    """

    queries: torch.Tensor
    weights: torch.Tensor
    keys: torch.Tensor
    table: torch.Tensor
    positions: torch.Tensor

    def key(self, query: int, entry: int) -> list[float]:
        """Return an index row."""
        per_page = self.keys.shape[1]
        page = int(self.table[query, entry // per_page])
        return [float(x) for x in self.keys[page, entry % per_page]]

    def seen(self, query: int, ratio: int) -> list[int]:
        """List the entries that a query sees, one after the other asked of the specification."""
        position = int(self.positions[query])
        every = range(self.table.shape[1] * self.keys.shape[1])
        return [entry for entry in every if visible(entry, position, ratio)]

    def to(self, device: torch.device) -> Index:
        """Return it on a device."""
        return Index(*(each.to(device) for each in vars(self).values()))

    def line(self, query: int) -> Index:
        """Return one query alone."""
        one = slice(query, query + 1)
        parts = (self.queries, self.weights, self.table, self.positions)
        queries, weights, table, positions = (part[one] for part in parts)
        return Index(queries, weights, self.keys, table, positions)


def draw(
    positions: list[int],
    ratio: int,
    heads: int = 3,
    dim: int = 16,
    per_page: int = 8,
    *,
    whole: bool = True,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Index:
    """Draw an index; of whole numbers every product and sum is exact, and ties are many."""
    source = drawn(seed)
    sizes = [-(-((position + 1) // ratio) // per_page) for position in positions]
    table, pages = shuffled_table(sizes, max(sizes, default=0) + 1, source)

    def numbers(*shape: int) -> torch.Tensor:
        if whole:
            return torch.randint(-2, 3, shape, generator=source).float()
        return torch.randn(shape, generator=source)

    keys = numbers(pages, per_page, dim).to(dtype)
    keys[0] = torch.nan
    count = len(positions)
    queries, weights = numbers(count, heads, dim).to(dtype), numbers(count, heads)
    return Index(queries, weights, keys, table, torch.tensor(positions, dtype=torch.int32))


def oracle(index: Index, query: int, entry: int) -> tuple[float, float]:
    """Return a score and its bound, in float64, product by product."""
    key = index.key(query, entry)
    total, size = [], 0.0
    for head in range(index.queries.shape[1]):
        asked = [float(x) for x in index.queries[query, head]]
        weight = float(index.weights[query, head])
        total.append(weight * max(math.fsum(q * k for q, k in zip(asked, key, strict=True)), 0))
        size += abs(weight) * sum(abs(q * k) for q, k in zip(asked, key, strict=True))
    # Each product is rounded (or cut in three, in the tensor core: 4 halves), a sum of n terms n
    # times, the weighing once and the sum over heads once a head.
    halves = 4 + len(key) + 1 + index.queries.shape[1]
    return math.fsum(total), halves * HALF * size


def check_scores(index: Index, ratio: int, way: str) -> None:
    """Score and hold every entry against the oracle."""
    with running(way) as device:
        found = score(*vars(index.to(device)).values(), ratio=ratio).cpu().double()
    for query in range(len(index.positions)):
        seen = index.seen(query, ratio)
        assert (found[query, len(seen) :] == -torch.inf).all()
        for entry in seen:
            expected, bound = oracle(index, query, entry)
            assert abs(float(found[query, entry]) - expected) <= bound, (query, entry)


def chosen_by_definition(index: Index, ratio: int, top_k: int) -> list[list[int]]:
    """Route as the specification does, from scores that are whole numbers."""
    rows = []
    for query, position in enumerate(index.positions.tolist()):
        scores = [oracle(index, query, entry)[0] for entry in index.seen(query, ratio)]
        assert all(one == int(one) for one in scores)
        rows.append(list(route_by_definition([int(x) for x in scores], position, ratio, top_k)))
    return rows


def check_choice(
    index: Index, ratio: int, top_k: int, way: str, run: Callable[..., torch.Tensor] = route
) -> None:
    """Route and compare with the definition: the entries in order, then -1."""
    with running(way) as device:
        found = run(*vars(index.to(device)).values(), ratio=ratio, top_k=top_k).cpu()
    assert found.dtype == torch.int32
    for row, entries in zip(found.tolist(), chosen_by_definition(index, ratio, top_k), strict=True):
        assert row == entries + [-1] * (top_k - len(entries))


@each_way
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("heads", "dim"), [(1, 1), (3, 20), (17, 64)])
def test_scores_are_what_their_rows_give(
    way: str, heads: int, dim: int, dtype: torch.dtype
) -> None:
    index = draw([-1, 0, 3, 4, 40, 70], 4, heads, dim, whole=False, dtype=dtype)
    check_scores(index, 4, way)


@each_way
@pytest.mark.parametrize("ratio", [1, 4, 128])
def test_the_best_visible_entries_are_chosen_and_of_equals_the_earlier(
    way: str, ratio: int
) -> None:
    edges = [-1, 0, ratio - 2, ratio - 1, ratio, 2 * ratio - 1, 9 * ratio, 31 * ratio + 1]
    index = draw([max(edge, -1) for edge in edges], ratio)
    for top_k in (1, 9, 32):  # 9 and 31 entries are visible to the last two
        check_choice(index, ratio, top_k, way)


@each_way
@pytest.mark.parametrize("entries", [127, 128, 129, 130, 255, 256, 257])
def test_choices_are_right_at_the_edges_of_blocks(way: str, entries: int) -> None:
    source = drawn(entries)
    scores = torch.randint(-3, 4, (3, 257), generator=source).float()
    scores[1] = scores[1].exp()
    scores[2] *= -0.0  # zeros of both signs are equal
    positions = torch.full((3,), entries - 1, dtype=torch.int32)
    for top_k in (1, 127, 128, 129):
        check_selection(scores, positions, 1, top_k, way)


def check_selection(
    scores: torch.Tensor,
    positions: torch.Tensor,
    ratio: int,
    top_k: int,
    way: str,
    run: Callable[..., torch.Tensor] = select,
) -> None:
    """Select and compare with sorting by score, falling, then by place."""
    with running(way) as device:
        found = run(scores.to(device), positions.to(device), ratio=ratio, top_k=top_k).cpu()
    for row, line, position in zip(
        found.tolist(), scores.tolist(), positions.tolist(), strict=True
    ):
        seen = [entry for entry in range(len(line)) if visible(entry, position, ratio)]
        best = sorted(sorted(seen, key=lambda entry: (-line[entry], entry))[:top_k])
        assert row == best + [-1] * (top_k - len(best))


@each_way
def test_infinities_come_first_and_last(way: str) -> None:
    scores = torch.tensor([[-math.inf, 0.0, math.inf, -1.0, -math.inf, math.inf, 1e-45, -1e-45]])
    positions = torch.tensor([7], dtype=torch.int32)
    for top_k in range(1, 10):
        check_selection(scores, positions, 1, top_k, way)


@each_way
def test_a_large_choice_is_exact(way: str) -> None:
    scores = torch.randn((2, 9000), generator=drawn(2)).mul(50).round()
    check_selection(scores, torch.tensor([35_999, 8_191]).int(), 4, 512, way)


@each_way
def test_no_query_sees_an_entry_that_its_own_token_is_in(way: str) -> None:
    """B22: with ratio 4, query 5 sees entry 0 alone, whether its chunk ends at 5 or at 7."""
    index = draw([7], 4, per_page=2)
    for chunk_end in (5, 7):
        positions = torch.arange(chunk_end + 1, dtype=torch.int32)
        count = len(positions)
        with running(way) as device:
            chunk = Index(
                index.queries.expand(count, -1, -1).to(device),
                index.weights.expand(count, -1).to(device),
                index.keys.to(device),
                index.table.to(device).expand(count, -1),
                positions.to(device),
            )
            found = route(*vars(chunk).values(), ratio=4, top_k=8).cpu()
        assert found[5].tolist() == [0] + [-1] * 7
        for position, row in zip(positions.tolist(), found.tolist(), strict=True):
            assert [entry for entry in row if entry >= 0] == list(range((position + 1) // 4))


@each_way
def test_the_choice_is_the_same_in_one_go_in_chunks_and_token_by_token(way: str) -> None:
    length, ratio = 23, 2
    whole = draw([length], ratio, heads=2, dim=8, whole=False, seed=3)
    source = drawn(4)
    queries = torch.randn((length, 2, 8), generator=source)
    weights = torch.randn((length, 2), generator=source)
    with running(way) as device:

        def chunk(start: int, end: int) -> torch.Tensor:
            # The table as it is then: rows of later entries do not exist yet.
            pages = -(-(end // ratio) // 8)
            table = whole.table.clone()
            table[:, pages:] = 0
            part = Index(
                queries[start:end],
                weights[start:end],
                whole.keys,
                table,
                torch.arange(start, end, dtype=torch.int32),
            ).to(device)
            values = [*vars(part).values()]
            values[3] = values[3].expand(end - start, -1)
            return route(*values, ratio=ratio, top_k=5).cpu()

        once = chunk(0, length)
        for size in (1, 5):
            parts = [chunk(at, min(at + size, length)) for at in range(0, length, size)]
            assert torch.equal(torch.cat(parts), once), size


@each_way
def test_scores_do_not_depend_on_the_rest_of_the_launch_not_even_in_a_bit(way: str) -> None:
    index = draw([9, 40, 70, -1], 4, dim=24, whole=False)
    with running(way) as device:
        there = index.to(device)
        together = score(*vars(there).values(), ratio=4)
        for query in range(4):
            alone = score(*vars(there.line(query)).values(), ratio=4)
            assert torch.equal(alone[0], together[query])


@each_way
@pytest.mark.parametrize("lost", [0, -1])
def test_a_query_that_sees_an_entry_without_an_index_row_is_poisoned(way: str, lost: int) -> None:
    index = draw([15, 16, 31, 63], 1, per_page=8)
    index.table[1, 2] = lost  # of position 16 itself: visible
    index.table[2, 1] = lost
    index.table[3, 8] = lost  # behind what the query sees
    with running(way) as device:
        found = route(*vars(index.to(device)).values(), ratio=1, top_k=6).cpu()
    assert (found[1:3] == POISONED).all()
    assert (found[[0, 3]] >= 0).all()


@each_way
def test_a_query_that_sees_more_entries_than_there_are_scores_is_poisoned(way: str) -> None:
    scores = torch.zeros((3, 8))
    with running(way) as device:
        positions = torch.tensor([31, 34, 35], dtype=torch.int32, device=device)
        found = select(scores.to(device), positions, ratio=4, top_k=2).cpu()
    assert found.tolist() == [[0, 1], [0, 1], [POISONED, POISONED]]


# Of the heads that only fill a tile, numpy says that zero times infinity is no number.
@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")
@each_way
def test_an_infinite_key_has_an_infinite_score_whatever_the_number_of_heads(way: str) -> None:
    index = draw([3], 1, heads=3, dim=4)
    index.queries[:], index.weights[:] = 1, 1
    index.keys[int(index.table[0, 0]), 2] = torch.inf
    with running(way) as device:
        found = score(*vars(index.to(device)).values(), ratio=1).cpu()
    assert found[0, 2] == torch.inf
    assert found[0, [0, 1, 3]].isfinite().all()


@each_way
def test_queries_keys_and_scores_may_be_strided(way: str) -> None:
    index = draw([11, 30], 2, dim=16)
    with running(way) as device:
        there = index.to(device)
        expected = route(*vars(there).values(), ratio=2, top_k=4)
        keys = torch.full((len(there.keys), 3, *there.keys.shape[1:]), math.nan, device=device)
        keys[:, 1] = there.keys
        queries = torch.full((2, 7, 32), math.nan, device=device)
        queries[:, 2:5, :16] = there.queries
        table = torch.full((4, 9), -1, dtype=torch.int32, device=device)
        table[::2, : there.table.shape[1]] = there.table
        found = route(
            queries[:, 2:5, :16],
            there.weights.repeat(1, 2)[:, :3],
            keys[:, 1],
            table[::2],
            there.positions,
            ratio=2,
            top_k=4,
        )
        scores = torch.full((2, 90), math.nan, device=device)
        scores[:, 5:29] = torch.randn((2, 24), generator=drawn(1)).to(device)
        positions = there.positions
        strided = select(scores[:, 5:29], positions, ratio=2, top_k=3)
        plain = select(scores[:, 5:29].contiguous(), positions, ratio=2, top_k=3)
    assert torch.equal(found, expected)
    assert torch.equal(strided, plain)


@settings(deadline=None, max_examples=examples(8))
@given(
    st.sampled_from([1, 2, 4]),
    st.lists(st.integers(-1, 40), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_any_shape_is_routed(
    ratio: int, positions: list[int], heads: int, dim: int, per_page: int, top_k: int
) -> None:
    index = draw(positions, ratio, heads, dim, per_page, seed=dim)
    check_choice(index, ratio, top_k, "kernel")
    check_choice(index, ratio, top_k, "reference")


ERRORS = {
    "the query's own group is visible": ("+ 1) // ratio", "+ ratio) // ratio"),
    "of equals the later is chosen": ("(rank <= left)", "(rank > tl.sum(equal, 0) - left)"),
    "zeros of two signs differ": ("tl.where(value == 0.0, 0.0, value)", "value"),
    "the last digit is not looked at": (
        "tl.static_range(24, -1, -8)",
        "tl.static_range(24, 7, -8)",
    ),
    "poison is not seen": ("(value != value)", "(value == float('inf'))"),
}


@without_gpu
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_choice_is_caught(tmp_path: Path, name: str) -> None:
    wrong = seeded(tmp_path, select_module, *ERRORS[name])
    # One writes behind its row: that, the checked interpreter refuses.
    with pytest.raises((AssertionError, ValueError)):
        caught(wrong.select, "kernel")


def caught(run: Callable[..., torch.Tensor], way: str) -> None:
    """Run what the tests above check, in small."""
    scores = torch.randint(-3, 4, (4, 40), generator=drawn(0)).float()
    scores[1] = torch.randn(40, generator=drawn(1))
    scores[1, 39] = 9
    scores[2] *= -0.0
    scores[3] = 1 + torch.randperm(40, generator=drawn(2)) * 2.0**-23
    check_selection(scores, torch.tensor([159, 157, 158, 159], dtype=torch.int32), 4, 7, way, run)
    scores[0, 3] = math.nan
    with running(way) as device:
        positions = torch.full((4,), 159, dtype=torch.int32, device=device)
        assert (run(scores.to(device), positions, ratio=4, top_k=7)[0] == POISONED).all()


SCORE_ERRORS = {
    "a weight is given to what is below zero too": (
        "tl.maximum(product, 0.0, tl.PropagateNan.ALL)",
        "product",
    ),
    "the null page is read": (
        'tl.where(there, total * factor, float("nan"))',
        "total * factor",
    ),
    "heads do not have weights of their own": ("* weight[:, None]", "* tl.max(weight, 0)"),
}


@without_gpu
@pytest.mark.parametrize("name", SCORE_ERRORS)
def test_an_error_in_the_scores_is_caught(tmp_path: Path, name: str) -> None:
    wrong = seeded(tmp_path, route_module, *SCORE_ERRORS[name]).route
    with pytest.raises(AssertionError):
        caught_scores(wrong)


def caught_scores(run: Callable[..., torch.Tensor]) -> None:
    check_choice(draw([11, 40], 2), 2, 5, "kernel", run)
    index = draw([11], 1)
    index.table[0, 1] = 0
    with running("kernel"):
        found = run(*vars(index.to(DEVICE)).values(), ratio=1, top_k=3)
    assert (found == POISONED).all()


@without_gpu
def test_an_error_in_the_reference_is_caught(tmp_path: Path) -> None:
    wrong = seeded(
        tmp_path,
        select_module,
        "visible_entries(position, ratio) for",
        "position // ratio + 1 for",
    )
    with pytest.raises(AssertionError):
        caught(wrong.select, "reference")


def arguments() -> dict[str, Any]:
    index = draw([11, 30], 2)
    return {**vars(index), "ratio": 2, "top_k": 3}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("queries", torch.zeros(2, 3, 16, dtype=torch.float64), "queries: float64 is given"),
        ("queries", torch.zeros(2, 129, 16), "queries: heads: 129 is given, 1 .. 128"),
        ("queries", torch.zeros(2, 3, 300), "queries: dim: 300 is given, 1 .. 256"),
        ("weights", torch.zeros(2, 4), "weights: shape"),
        ("weights", torch.zeros(2, 3, dtype=torch.float16), "weights: float16 is given"),
        ("keys", torch.zeros(3, 8, 17), "keys: shape"),
        ("keys", torch.zeros(3, 8, 16, dtype=torch.bfloat16), "keys: bfloat16 is given, float32"),
        ("table", torch.full((2, 2), 99, dtype=torch.int32), r"table\[0\]: 99 is given, -1 .. "),
        ("table", torch.zeros(2, 2, dtype=torch.int64), "table: int64 is given, int32"),
        ("positions", torch.tensor([1, -2], dtype=torch.int32), r"positions\[1\]: -2 is given"),
        ("positions", torch.tensor([1], dtype=torch.int32), "positions: shape"),
        ("ratio", 0, "ratio: 0 is given"),
        ("top_k", 0, "top_k: 0 is given"),
        ("table", torch.zeros((2, 2), dtype=torch.int32, device="meta"), "table: on meta"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: torch.Tensor | int, message: str) -> None:
    with running("reference"), pytest.raises(ValueError, match=message):
        route(**{**arguments(), name: value})


def test_scores_that_do_not_fit_are_refused() -> None:
    positions = torch.zeros(2, dtype=torch.int32)
    for scores, message in (
        (torch.zeros(2, 4, dtype=torch.float16), "scores: float16 is given"),
        (torch.zeros(8), "scores: shape"),
        (torch.zeros(2, 8)[:, ::2], "scores: stride 2"),
    ):
        with running("reference"), pytest.raises(ValueError, match=message):
            select(scores, positions, ratio=1, top_k=1)
