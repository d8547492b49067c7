"""Fp8 pages of index keys: exact bytes, every code, and the choice that is made from them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.kernels.seeding import drawn, seeded, shuffled_table, without_gpu
from tests.kernels.ways import each_way, running

from fivestate.kernels import route as route_module
from fivestate.kernels.forms import index_keys
from fivestate.kernels.route import route, score
from fivestate.kernels.select import POISONED
from fivestate.spec.need import visible
from fivestate.spec.reuse.files import preset
from fivestate.spec.reuse.route import route as route_by_definition

WHOLE = {0x00: 0, 0x38: 1, 0x40: 2, 0xB8: -1, 0xC0: -2, 0x48: 4}
"""Some e4m3 codes and what they stand for."""


def value_of(code: int) -> float:
    """Return what an e4m3 code stands for, by the format's definition."""
    exponent, mantissa = code >> 3 & 15, code & 7
    size = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    size = math.nan if code & 0x7F == 0x7F else size
    return -size if code & 0x80 else size


def filled(codes: list[list[list[int]]], scales: list[list[float]], size: int) -> torch.Tensor:
    """Lay out pages byte by byte: all values, then all scales, then padding that is no number."""
    pages = []
    for rows, factors in zip(codes, scales, strict=True):
        page = b"".join(bytes(row) for row in rows)
        page += b"".join(struct.pack("<f", factor) for factor in factors)
        pages.append(list(page.ljust(size, b"\x7f")))
    return torch.tensor(pages, dtype=torch.uint8)


def draw(
    positions: list[int], ratio: int, per_page: int, heads: int = 3, spare_bytes: int = 0
) -> tuple[dict[str, torch.Tensor], list[list[list[int]]], list[list[float]]]:
    """Draw whole numbers, so that every product and sum is exact; scales are powers of two."""
    source = drawn(per_page)
    sizes = [-(-((position + 1) // ratio) // per_page) for position in positions]
    table, pages = shuffled_table(sizes, max(sizes) + 1, source)
    pick = torch.randint(len(WHOLE), (pages, per_page, 128), generator=source)
    codes = [[[list(WHOLE)[i] for i in row] for row in page] for page in pick.tolist()]
    codes[0] = [[0x7F] * 128] * per_page  # the null page holds no numbers
    exponent = torch.randint(0, 3, (pages, per_page), generator=source)
    scales = [[2.0**each for each in row] for row in exponent.tolist()]
    size = per_page * 132 + spare_bytes
    count = len(positions)
    arguments = {
        "queries": torch.randint(-2, 3, (count, heads, 128), generator=source).bfloat16(),
        "weights": torch.randint(-2, 3, (count, heads), generator=source).float(),
        "keys": filled(codes, scales, size),
        "table": table,
        "positions": torch.tensor(positions, dtype=torch.int32),
    }
    return arguments, codes, scales


def on(device: torch.device, arguments: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return arguments on a device."""
    return {name: each.to(device) for name, each in arguments.items()}


def check(
    positions: list[int],
    ratio: int,
    per_page: int,
    way: str,
    run: Callable[..., torch.Tensor] = route,
    spare_bytes: int = 0,
) -> None:
    """Route, and compare with the definition over scores that are summed number by number."""
    arguments, codes, scales = draw(positions, ratio, per_page, spare_bytes=spare_bytes)
    with running(way) as device:
        given = on(device, arguments)
        found = run(**given, ratio=ratio, top_k=5, entries_per_block=per_page).cpu().tolist()
    asked, weights = arguments["queries"].tolist(), arguments["weights"].tolist()
    for query, position in enumerate(positions):
        scored = []
        for entry in range(arguments["table"].shape[1] * per_page):
            if not visible(entry, position, ratio):
                break
            page, row = int(arguments["table"][query, entry // per_page]), entry % per_page
            key = [WHOLE[code] for code in codes[page][row]]
            total = sum(
                weight * max(sum(q * k for q, k in zip(head, key, strict=True)), 0)
                for head, weight in zip(asked[query], weights[query], strict=True)
            )
            scored.append(int(total * scales[page][row]))
        expected = list(route_by_definition(scored, position, ratio, 5))
        assert found[query] == expected + [-1] * (5 - len(expected)), query


@each_way
@pytest.mark.parametrize("per_page", [1, 63, 64, 65])
def test_the_best_of_fp8_keys_are_chosen_at_the_edges_of_pages(way: str, per_page: int) -> None:
    edges = [-1, 3, 62, 63, 64, 128]
    check(edges, 1, per_page, way, spare_bytes=192 if per_page == 64 else 0)


@each_way
def test_every_code_is_what_the_format_says_and_poisons_where_it_is_no_number(way: str) -> None:
    """One key for each code: 128 times the code, seen by one head that sums them up."""
    scale = 0.375  # no power of two: a reader takes any
    codes = [[[0x7F] * 128] * 64] + [
        [[64 * page + row] * 128 for row in range(64)] for page in range(4)
    ]
    keys = filled(codes, [[scale] * 64] * 5, index_keys.page_size_bytes(64))
    with running(way) as device:
        asked = torch.ones((2, 1, 128), device=device).bfloat16()
        asked[1] = -1
        found = score(
            asked,
            torch.ones((2, 1), device=device),
            keys.to(device),
            torch.tensor([[1, 2, 3, 4]], device=device).int().expand(2, -1),
            torch.tensor([255, 255], device=device).int(),
            ratio=1,
            entries_per_block=64,
        ).cpu()
    for sign, line in zip((1, -1), found.tolist(), strict=True):
        for code, each in enumerate(line):
            value = 128 * sign * value_of(code)
            # Of a code 4 bits count, of 0.375 two: nothing is rounded.
            expected = value if math.isnan(value) else max(value, 0) * scale
            assert each == expected or (math.isnan(each) and math.isnan(expected)), code


@each_way
def test_a_scale_that_is_no_number_and_a_page_that_is_not_there_poison(way: str) -> None:
    arguments, _, _ = draw([7, 7, 7], 1, 4)
    pages = arguments["keys"]
    page = int(arguments["table"][1, 1])
    pages[page, 4 * 128 : 4 * 128 + 4] = torch.tensor([0, 0, 0xC0, 0x7F], dtype=torch.uint8)
    arguments["table"][2, 0] = 0
    with running(way) as device:
        found = route(**on(device, arguments), ratio=1, top_k=3, entries_per_block=4).cpu()
    assert (found[1:] == POISONED).all()
    assert (found[0] >= 0).all()


def test_a_page_has_its_bytes_in_their_places() -> None:
    keys = torch.randn((3, 128), generator=drawn(0)) * torch.tensor([[1e-3], [1.0], [1e6]])
    keys[1, 5] = 448 * 4
    pages = torch.full((2, index_keys.page_size_bytes(4)), 0xA5, dtype=torch.uint8)
    row = torch.tensor([3, 0, 2])
    index_keys.put(pages, torch.ones_like(row), row, keys, 4)
    assert (pages[0] == 0xA5).all()
    expected = bytearray(b"\xa5" * pages.shape[1])
    for at, key in zip(row.tolist(), keys.tolist(), strict=True):
        scale = next(2.0**e for e in range(-126, 128) if max(map(abs, key)) <= 448 * 2.0**e)
        scaled = torch.tensor([x / scale for x in key])
        expected[at * 128 : at * 128 + 128] = bytes(
            scaled.to(torch.float8_e4m3fn).view(torch.uint8).tolist()
        )
        expected[512 + at * 4 : 512 + at * 4 + 4] = struct.pack("<f", scale)
    assert bytes(pages[1].tolist()) == bytes(expected)
    values, scales = index_keys.get(pages, torch.ones_like(row), row, 4)
    # A code is within half a step of 2^-4 of its value, or of 2^-10 of a scale.
    bound = keys.abs() * 2.0**-4 + scales[:, None] * 2.0**-10
    assert ((values * scales[:, None] - keys).abs() <= bound).all()


def test_a_page_is_as_large_as_the_preset_says() -> None:
    sizes = {group.page_size_bytes for group in preset("dsv4-flash").groups}
    assert index_keys.page_size_bytes(64) == 8_640
    assert 8_640 in sizes


ERRORS = {
    "a scale is left out": ("tl.where(there, total * factor,", "tl.where(there, total,"),
    "scales lie behind each key": ("(page + PER_PAGE * 128)", "(page + 128)"),
    "rows are as long as a key with its scale": ("row[None, :] * 128", "row[None, :] * 132"),
}


@without_gpu
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_reading_keys_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    old, new = ERRORS[name]
    if name == "a scale is left out":
        run = seeded(tmp_path, route_module, old, new).route
    else:
        wrong = seeded(tmp_path, index_keys, old, new)
        monkeypatch.setattr(route_module, "load_keys", wrong.load_keys)
        run = route
    with pytest.raises((AssertionError, ValueError)):
        check([64, 128], 1, 64, "kernel", run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entries_per_block": 5}, "keys: bytes of a page: 528 is given, 660"),
        ({"queries": torch.zeros(1, 3, 64).bfloat16()}, "queries: dim: 64 is given, 128"),
        ({"keys": torch.zeros((9, 530), dtype=torch.uint8)}, "multiples of 4 are wanted"),
        ({"keys": torch.zeros((9, 4, 132), dtype=torch.uint8)}, "keys: shape"),
    ],
)
def test_pages_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    arguments, _, _ = draw([7], 1, 4)
    given = {**arguments, "ratio": 1, "top_k": 3, "entries_per_block": 4, **change}
    with running("reference"), pytest.raises(ValueError, match=message):
        route(**given)  # type: ignore[arg-type] # a wrong argument is the case
