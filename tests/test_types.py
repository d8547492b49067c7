"""The type checker reads every file, once: a skipped folder would pass in silence."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_pyright_reads_every_file_once() -> None:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, encoding="utf-8")
    folders = [*(ROOT / ".src" / "fivestate").iterdir(), ROOT / "tests"]
    here = sum(1 for folder in folders for _ in folder.rglob("*.py"))
    assert json.loads(done.stdout)["summary"]["filesAnalyzed"] == here, done.stderr
