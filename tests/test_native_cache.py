"""Compiled code is kept between runs, and never taken for another model's."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest
from tests.machines.two_phase import two_phase
from tests.native_models import explored

from fivestate.checker.engines import native
from fivestate.checker.engines.native import cache, jit
from fivestate.spec.models import MODELS

MODEL = MODELS["scheme-a"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep compiled code in a folder of the test's own."""
    monkeypatch.setenv(cache.DIRECTORY, str(tmp_path / "cache"))
    forget(monkeypatch)
    return tmp_path / "cache"


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process forget what it has compiled, as another process would not know it."""
    monkeypatch.setattr(jit, "_loaded", OrderedDict())


def test_the_second_process_finds_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    first = native.prepare(MODEL, 1).code
    forget(monkeypatch)
    second = native.prepare(MODEL, 1).code
    assert (first.cached, second.cached) == (False, True)
    assert first.compile_seconds > 0 == second.compile_seconds
    assert second.load_seconds > 0


def test_one_process_links_the_code_once() -> None:
    first, second = (native.prepare(MODEL, 1).code for _ in range(2))
    assert first.functions is second.functions


def test_another_model_asks_for_another_entry(folder: Path) -> None:
    for participants in (2, 3):
        native.prepare(two_phase(participants), 1)
    assert len(list(folder.iterdir())) == 2


def test_another_processor_asks_for_another_entry(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    native.prepare(MODEL, 1)
    forget(monkeypatch)
    monkeypatch.setattr(jit, "_features", lambda: "")
    assert not native.prepare(MODEL, 1).code.cached
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "exchanged"])
def test_a_damaged_entry_is_compiled_anew(
    monkeypatch: pytest.MonkeyPatch, folder: Path, damage: str
) -> None:
    native.prepare(MODEL, 1)
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:middle],
        "changed": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "empty": b"",
        "exchanged": whole[32:],
    }
    entry.write_bytes(damaged[damage])
    forget(monkeypatch)
    assert not native.prepare(MODEL, 1).code.cached
    assert entry.read_bytes() == whole
    assert explored(native.explore, MODEL).distinct == 18


def test_without_a_place_to_keep_code_it_works_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.DIRECTORY, str(tmp_path / "file" / "below"))
    code = native.prepare(MODEL, 1).code
    assert "compiled code is not kept" in code.note
    assert explored(native.explore, MODEL).distinct == 18


def test_old_entries_make_room(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 2)
    for key in ("a", "b", "c"):
        assert cache.save(key, b"code") == ""
    assert len(list(folder.iterdir())) == 2
    assert cache.load("c") == b"code"


def test_the_cache_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(cache.DIRECTORY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "fivestate"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == tmp_path / ".cache" / "fivestate"
