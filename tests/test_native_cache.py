"""Compiled code is kept between runs, and never taken for another model's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

import pytest
from tests.machines.two_phase import two_phase
from tests.native_models import explored

from fivestate.checker.engines import native
from fivestate.checker.engines.native import cache, jit, program
from fivestate.checker.engines.native.kernel import kernel
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
    assert len(list(folder.glob("*.object"))) == 2


def test_another_processor_asks_for_another_entry(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    native.prepare(MODEL, 1)
    forget(monkeypatch)
    monkeypatch.setattr(jit, "_features", lambda: "")
    assert not native.prepare(MODEL, 1).code.cached
    assert len(list(folder.glob("*.object"))) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "exchanged"])
def test_a_damaged_entry_is_compiled_anew(
    monkeypatch: pytest.MonkeyPatch, folder: Path, damage: str
) -> None:
    native.prepare(MODEL, 1)
    (entry,) = folder.glob("*.object")
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


def test_what_is_known_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = native.prepare(MODEL, 1)
    forget(monkeypatch)
    second = native.prepare(MODEL, 1)
    assert first.emit_seconds > 0 == second.emit_seconds
    assert explored(native.explore, MODEL).distinct == 18


def test_a_changed_specification_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    native.prepare(MODEL, 1)
    forget(monkeypatch)
    action = MODEL.machine.actions[0]
    weak = replace(action, guards=())
    machine = replace(MODEL.machine, next=(weak, *MODEL.machine.actions[1:]))
    changed = native.prepare(replace(MODEL, machine=machine), 1)
    assert changed.emit_seconds > 0
    assert not changed.code.cached


@pytest.mark.parametrize("other", ["prefix=1", "request=1"])
def test_another_size_is_written_anew(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    native.prepare(MODEL, 1)
    forget(monkeypatch)
    assert native.prepare(MODEL.set(other), 1).emit_seconds > 0


def test_another_kernel_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    native.prepare(MODEL, 1)
    forget(monkeypatch)
    monkeypatch.setattr(program, "kernel", lambda *facts: kernel(*facts) + "; another\n")
    assert native.prepare(MODEL, 1).emit_seconds > 0


@pytest.mark.parametrize("name", [b"", b"0" * 64, b"/" * 64, b"\xff" * 64])
def test_a_damaged_name_is_worked_out_anew(
    monkeypatch: pytest.MonkeyPatch, folder: Path, name: bytes
) -> None:
    native.prepare(MODEL, 1)
    (kept,) = folder.glob("*.name")
    kept.write_bytes(name)
    forget(monkeypatch)
    assert native.prepare(MODEL, 1).emit_seconds > 0
    assert explored(native.explore, MODEL).distinct == 18


def test_a_recipe_is_the_same_in_every_process() -> None:
    code = (
        "from fivestate.checker.engines.native.recipe import recipe\n"
        "from fivestate.spec.models import MODELS\n"
        "print([recipe(MODELS[name], 'shared') for name in ('scheme-a', 'contend')])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
