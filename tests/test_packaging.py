"""What is installed is what is here: wheel and source archive, used outside the checkout."""

import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("checker", "impl", "kernels", "spec")
MADE_BY_RUNNING = {".pyc", ".nbi", ".nbc"}  # compiled beside the sources; .gitignore names them


@dataclass(frozen=True)
class Built:
    """The wheel of the checkout, its source archive, and the wheel of that archive."""

    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


def run(*args: str | Path, cwd: Path, **env: str) -> str:
    """Run this Python with `args`, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *args],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    tmp = tmp_path_factory.mktemp("built")
    build = ("-m", "build", "--no-isolation", "--outdir")
    run(*build, tmp / "a", "--sdist", "--wheel", ROOT, cwd=tmp)
    (wheel,) = (tmp / "a").glob("*.whl")
    (sdist,) = (tmp / "a").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp, filter="data")
    run(*build, tmp / "b", "--wheel", tmp / sdist.name.removesuffix(".tar.gz"), cwd=tmp)
    (wheel_of_sdist,) = (tmp / "b").glob("*.whl")
    return Built(wheel, sdist, wheel_of_sdist)


def contents(wheel: Path) -> dict[str, int]:
    """Map each file of a wheel to its checksum."""
    with ZipFile(wheel) as archive:
        return {info.filename: info.CRC for info in archive.infolist()}


def test_the_wheel_holds_every_file_of_the_four_folders(built: Built) -> None:
    here = {
        f"fivestate/{file.relative_to(ROOT / '.src' / 'fivestate').as_posix()}"
        for folder in FOLDERS
        for file in (ROOT / ".src" / "fivestate" / folder).rglob("*")
        if file.is_file() and file.suffix not in MADE_BY_RUNNING
    }
    assert {f"fivestate/{folder}/py.typed" for folder in FOLDERS} <= here
    assert any(name.endswith(".md") for name in here)
    assert {name for name in contents(built.wheel) if name.startswith("fivestate/")} == here


def test_the_source_archive_builds_the_same_wheel(built: Built) -> None:
    assert contents(built.wheel_of_sdist) == contents(built.wheel)


@pytest.mark.parametrize("which", ["wheel", "wheel_of_sdist"])
def test_it_runs_outside_the_checkout(built: Built, which: str, tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target")
    run(*pip, target, getattr(built, which), cwd=tmp_path)
    for name in FOLDERS:
        code = f"import fivestate.{name} as it; print(it.__file__)"
        file = run("-c", code, cwd=tmp_path, PYTHONPATH=str(target)).strip()
        assert file == str(target / "fivestate" / name / "__init__.py")
    usage = run(target / "bin" / "fivestate", "--help", cwd=tmp_path, PYTHONPATH=str(target))
    assert "check" in usage
