"""The figures of loading back are made of what was really read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fivestate.impl.tiers import Store, bench
from fivestate.impl.tiers.bench import Sample, cell, cells, run
from fivestate.spec.reuse.files import preset
from fivestate.spec.vocabulary import COMPRESSED


def test_a_cell_of_deepseek_v4_flash_is_as_large_as_its_pages() -> None:
    """Pages of 37,440 bytes in 21 layers and of 1,728 in 20, for 256 tokens. Source: domain §7."""
    pages = cell(preset("dsv4-flash"), COMPRESSED, 512)
    assert {name: tuple(page.shape) for name, page in pages.items()} == {
        "c4": (2, 21 * 37_440),
        "c128": (2, 20 * 1_728),
    }


def test_a_percentile_is_of_the_times_and_a_speed_of_all_bytes() -> None:
    sample = Sample([0.001 * n for n in range(100, 0, -1)], size_bytes=10**6)
    assert [round(sample.percentile(percent)) for percent in (0, 50, 99)] == [1, 51, 100]
    assert sample.speed == pytest.approx(100 * 10**6 / 5.05 / 1e9)  # a sum of floats


def test_every_object_is_loaded_cold_and_warm_and_every_tier_has_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    get = Store.get

    def counted(store: Store, key: str, **into: object) -> object:
        loads.append(key)
        return get(store, key, **into)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(Store, "get", counted)
    kinds = len(list(cells(preset("toy"))))
    rows = run(tmp_path, geometry="toy", total_bytes=1)
    assert len(loads) == kinds * 2 * bench._FEWEST_OBJECTS
    assert len({row.what for row in rows}) == len(rows) == kinds * 3 * 3
    assert all(row.figure > 0 and row.peer_figure > 0 for row in rows)
    assert list(tmp_path.iterdir()) == []
