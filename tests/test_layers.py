"""Who may import whom: spec below everything, checker beside kernels and impl, never a cycle."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / ".src" / "fivestate"

# A name allows all below it; the standard library is open to every layer.
ALLOWED = {
    "spec": "fivestate.spec",
    "checker": "fivestate.spec fivestate.checker "
    "llvmlite matplotlib networkx numpy rich scipy typer z3",
    "kernels": "fivestate.spec fivestate.kernels numpy torch triton",
    "impl": "fivestate.spec fivestate.kernels fivestate.impl "
    "numpy prometheus_client safetensors torch transformers vllm",
}


def imports(file: Path, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield the line and the absolute name of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: max(0, len(package) + 1 - level)] if level else ()
                parts = (*base, *([module] if module else []))
                yield from ((node.lineno, ".".join((*parts, alias.name))) for alias in names)
            case ast.Call(func=call, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(call).rpartition(".")[2] in {"import_module", "__import__"}:
                    yield node.lineno, name


def refused(root: Path) -> list[str]:
    """List the imports under `root` that their layer does not allow."""
    found: list[str] = []
    for layer, names in ALLOWED.items():
        allowed = {*names.split(), *sys.stdlib_module_names}
        for file in sorted((root / layer).rglob("*.py")):
            path = file.relative_to(root)
            for line, name in imports(file, ("fivestate", *path.parent.parts)):
                if not any(f"{name}.".startswith(f"{prefix}.") for prefix in allowed):
                    found.append(f"{path}:{line} imports {name}")
    return found


def test_every_layer_imports_only_what_it_may() -> None:
    assert all((ROOT / layer / "__init__.py").is_file() for layer in ALLOWED)
    assert refused(ROOT) == []


@pytest.mark.parametrize(
    ("layer", "source", "name"),
    [
        ("spec", "import numpy", "numpy"),
        ("spec", "import os, spec.lang", "spec.lang"),
        ("spec", "import fivestate", "fivestate"),
        ("spec", "from fivestate import checker", "fivestate.checker"),
        ("spec", "from ..checker import graph", "fivestate.checker.graph"),
        ("checker", "from torch.nn import Module", "torch.nn.Module"),
        ("checker", "from .. import impl", "fivestate.impl"),
        ("checker", "import importlib\nimportlib.import_module('triton')", "triton"),
        ("kernels", "from fivestate.impl.pool import Pool", "fivestate.impl.pool.Pool"),
        ("impl", "import fivestate.checker.graph", "fivestate.checker.graph"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, layer: str, source: str, name: str) -> None:
    (tmp_path / layer).mkdir()
    lines = ["import sys", "from . import sibling", "def f():", *source.splitlines()]
    text = "\n".join(lines[:3] + [f"    {line}" for line in lines[3:]])
    (tmp_path / layer / "planted.py").write_text(text, "utf-8")
    assert refused(tmp_path) == [f"{layer}/planted.py:{len(lines)} imports {name}"]
