"""A store among processes: killed, locked out, traced, and on a disk that is full."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.impl.tier_workload import IDENTITY

from fivestate.impl.tiers import Store
from fivestate.impl.tiers.errors import LockedError

ROOT = Path(__file__).parents[2]
CHILD = [sys.executable, "-m", "tests.impl.tier_child"]
KILLS = 200 if os.environ.get("FIVESTATE_FULL") else 12
CALLS = "write,writev,pwrite64,fsync,fdatasync,?rename,?renameat,?renameat2,?unlink,?unlinkat"


def child(*arguments: str | Path, before: tuple[str | Path, ...] = ()) -> str:
    """Run another process to its end and return what it says."""
    command = [*before, *CHILD, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_process_that_is_killed_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    assert child("kill", tmp_path, str(KILLS), "1") == f"{KILLS} killed\n"


def test_a_folder_that_another_process_has_is_refused_until_that_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*CHILD, "hold", tmp_path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(LockedError, match=f"in use by process {holder.pid};"):
            Store.open(tmp_path, identity=IDENTITY, capacity_bytes=0)
        holder.kill()
        holder.wait()
        Store.open(tmp_path, identity=IDENTITY, capacity_bytes=0).close()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_system_is_asked_to_sync_in_the_order_that_the_crash_states_assume(
    tmp_path: Path,
) -> None:
    """What SQLite does by itself is seen only here."""
    trace, root = tmp_path / "trace", tmp_path / "store"
    strace = ("strace", "-f", "-y", "-e", f"trace={CALLS}", "-o", trace)
    if subprocess.run([*strace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this process may not trace another")
    child("put", root, before=strace)
    seen = [name for line in trace.read_text().splitlines() if (name := known(line, root))]
    put = seen[seen.index("write object") : seen.index("acknowledged")]
    logged = put.index("write manifest.db-wal")
    assert put[:logged] == ["write object", "sync object", "rename object", "sync objects"]
    frames = len(put) - 1 - put[::-1].index("write manifest.db-wal")
    assert put[frames + 1 :][:1] == ["sync manifest.db-wal"]
    assert "sync ." in put[logged:]  # the log is new, and its name has to be safe as well
    assert "write manifest.db" not in put[:frames]
    made = seen.index("rename manifest.rebuilt")
    assert seen[made - 1 : made + 2] == ["sync .", "rename manifest.rebuilt", "sync ."]
    assert "sync manifest.rebuilt" in seen[:made]


def known(line: str, root: Path) -> str:
    """Return a traced call in the words of the test, whichever of its kind it was, or nothing."""
    if "acknowledged" in line:
        return "acknowledged"
    found = re.search(rf"(\w+)\(.*?{re.escape(str(root))}(/[^>\"]*)?[>\"]", line)
    if found is None or "ENOENT" in line:
        return ""
    name = (found[2] or "/.")[1:]
    (call,) = (kind for kind in ("write", "sync", "rename", "unlink") if kind in found[1])
    return f"{call} object" if name.startswith("objects/") else f"{call} {name}"


def test_a_disk_that_is_really_full_or_read_only_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    unshare = ("unshare", "--mount", "--map-root-user") if os.geteuid() else ("unshare", "--mount")
    mount = 'mount -t tmpfs -o size=400k tmpfs "$1"'
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, "sh", "-c", mount, "sh", root], check=False).returncode
    ):
        pytest.skip("this process may not mount a small disk")
    before = (*unshare, "sh", "-c", f'{mount} && shift && exec "$@"', "sh", root)
    assert child("fill", root, before=before) == "full\n"
