"""Ahead-of-time compilation: what is committed covers everything, keeps its bounds, and is current.

One target is compiled again here; all are by ``python -m fivestate.kernels.compile --check``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from fivestate.kernels import window
from fivestate.kernels.compile import __main__ as command
from fivestate.kernels.compile import build as module
from fivestate.kernels.compile.build import TARGETS, Compiled
from fivestate.kernels.compile.tables import (
    FIGURES,
    TABLE,
    broken,
    from_json,
    to_json,
    to_markdown,
)
from fivestate.kernels.compile.variant import Variant
from fivestate.kernels.compile.variants import variants
from fivestate.kernels.device.launch import jit

AGAIN = "sm_90"
ASKED = tuple(variants())
COMMITTED = from_json(FIGURES.read_text("utf-8"))


def in_a_process_of_its_own(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if "INTERPRET" not in key}
    command = [sys.executable, "-m", "fivestate.kernels.compile", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_variant_has_a_title_of_its_own() -> None:
    titles = [each.title for each in ASKED]
    assert len(titles) == len(set(titles))


def test_the_figures_cover_every_variant_on_every_target() -> None:
    wanted = [(variant.title, target) for variant in ASKED for target in TARGETS]
    assert [(each.variant, each.target) for each in COMMITTED] == wanted


def test_every_promise_is_kept() -> None:
    asked = {each.title: each for each in ASKED}
    assert [text for each in COMMITTED for text in broken(asked[each.variant], each)] == []


def test_a_refusal_has_a_reason() -> None:
    for variant in ASKED:
        for target, reason in variant.refused.items():
            assert target in TARGETS
            assert reason
    refused = {(each.variant, each.target): each.refused for each in COMMITTED if each.refused}
    assert refused == {
        (variant.title, target): reason
        for variant in ASKED
        for target, reason in variant.refused.items()
    }


def test_no_bound_is_so_loose_that_it_cannot_fail() -> None:
    for variant in ASKED:
        used = [each.registers for each in COMMITTED if each.variant == variant.title]
        assert variant.registers <= max(*used, 32) * 2.5, variant.title


def test_a_number_is_specialised_only_where_the_width_of_an_access_depends_on_it() -> None:
    """Of each other one, a new value could compile the kernel again while requests wait."""
    for kernel in {each.kernel for each in ASKED}:
        mine = [each for each in ASKED if each.kernel is kernel]
        numbers = {name for each in mine for name, kind in each.signature.items() if kind == "i32"}
        used = {name for each in mine for name in each.aligned}
        assert numbers - {*kernel.any_value} <= used, kernel.__name__


def test_chunks_of_every_length_share_a_kernel() -> None:
    """A chunk's length is no constant: each would be compiled while its request waits."""
    forms = set()
    for width in (2, 7, 500, 8_191):
        linear = torch.empty((3, width, 72), dtype=torch.int64, device="meta")
        cells = torch.empty((2, 128, 72), dtype=torch.int64, device="meta")
        forms.add(tuple(window.constants(linear, cells, to_cells=True).items()))
    assert len(forms) == 1


def test_the_table_is_made_of_the_figures() -> None:
    assert TABLE.read_text("utf-8") == to_markdown(ASKED, COMMITTED)
    assert from_json(to_json(COMMITTED)) == COMMITTED


def test_what_moves_aligned_bytes_moves_16_at_a_time() -> None:
    promised = {each.title for each in ASKED if each.wide_loads}
    for page_bytes in ("1,728", "8,640", "32,832", "37,440"):
        assert f"copy_kernel, gather of pages of {page_bytes} bytes" in promised
        assert f"copy_kernel, scatter of pages of {page_bytes} bytes" in promised
        assert f"digest_kernel, {page_bytes} bytes" in promised
    assert any(title.startswith("place_kernel, append") for title in promised)


def test_figures_are_those_of_the_kernels_as_they_are() -> None:
    done = in_a_process_of_its_own("--check", "--target", AGAIN)
    assert done.stderr == ""
    assert done.returncode == 0
    assert from_json(done.stdout) == tuple(each for each in COMMITTED if each.target == AGAIN)


def test_it_does_not_run_where_triton_interprets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "INTERPRETED", True)
    with pytest.raises(SystemExit, match="2"):
        command.main([])
    said = capsys.readouterr().err
    assert said.endswith("error: Triton is missing, or interprets: unset TRITON_INTERPRET\n")


def some() -> tuple[Variant, Compiled]:
    variant = next(each for each in ASKED if each.wide_loads and not each.spills)
    return variant, Compiled(variant.title, "sm_90", variant.registers, 0, wide_loads=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"registers": 256}, "sm_90: 256 registers, at most"),
        ({"spilled_bytes": 8}, "sm_90: spills 8 bytes"),
        ({"wide_loads": False}, "sm_90: no loads of 16 bytes"),
    ],
)
def test_a_broken_promise_is_told(change: dict[str, Any], message: str) -> None:
    variant, kept = some()
    assert list(broken(variant, kept)) == []
    (text,) = broken(variant, replace(kept, **change))
    assert message in text


def test_spills_are_allowed_for_a_reason_and_refusals_break_nothing() -> None:
    variant, kept = some()
    spilling = replace(variant, spills="its tile does not fit otherwise")
    assert list(broken(spilling, replace(kept, spilled_bytes=8))) == []
    assert list(broken(variant, replace(kept, registers=0, wide_loads=False, refused="fp8"))) == []
    table = to_markdown([spilling], [replace(kept, target=target) for target in TARGETS])
    assert f"- {variant.title} may spill: its tile does not fit otherwise." in table
    refused = [replace(kept, target=target, refused="it has no fp8e4nv") for target in TARGETS]
    table = to_markdown([variant], refused)
    assert f"- {variant.title}: sm_80 refuses it: it has no fp8e4nv." in table


@pytest.mark.parametrize(
    ("ptx", "wide"),
    [
        ("ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", True),
        ("ld.global.v2.b64 { %rd1, %rd2 }, [ %rd3 + 0 ];", True),
        ("@%p1 ld.global.L1::evict_last.v2.u64 { %rd1, %rd2 }, [ %rd3 + 0 ];", True),
        ("ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];", False),
        ("ld.global.b64 { %rd1 }, [ %rd3 + 0 ];", False),
        ("st.global.v4.b32 [ %rd1 + 0 ], { %r1, %r2, %r3, %r4 };", False),
    ],
)
def test_a_wide_load_is_one_of_16_bytes(ptx: str, wide: bool) -> None:  # noqa: FBT001 -- a case
    assert (re.search(module._WIDE, ptx) is not None) == wide


FAULTS = """
import sys
from dataclasses import replace
from fivestate.kernels.compile import build as module
from fivestate.kernels.compile.variants.digest import VARIANTS

good = next(each for each in VARIANTS if each.wide_loads)
cases = {
    "no alignment": replace(good, aligned=()),
    "another parameter": replace(good, signature={**good.signature, "count": "i32", "row": "i32"}),
    "no such type": replace(good, signature={**good.signature, "objects": "*fp8e4nv"}),
    "refused for nothing": replace(good, refused={"sm_90": "it has no integers"}),
    "refused": replace(
        good, signature={**good.signature, "objects": "*fp8e4nv"}, refused={"sm_90": "no integers"}
    ),
}
for name, variant in cases.items():
    try:
        built = module.compile_variant(variant, "sm_90")
        print(name, built.wide_loads, built.refused, sep="|")
    except ValueError as error:
        print(name, str(error).partition("\\n")[0], sep="|")
"""


def test_faults_of_a_variant_are_told() -> None:
    environment = {key: value for key, value in os.environ.items() if "INTERPRET" not in key}
    command = [sys.executable, "-c", FAULTS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = dict(line.split("|", 1) for line in done.stdout.splitlines())
    title = next(each.title for each in ASKED if each.title.startswith("digest_kernel"))
    assert found["no alignment"] == "False|"
    assert found["another parameter"].endswith("parameters are not those of the kernel: row")
    assert found["no such type"].startswith(f"{title}: sm_90 refuses it: ")
    assert found["refused for nothing"] == f"{title}: sm_90 should refuse it: it has no integers"
    assert found["refused"] == "False|no integers"


def test_jit_leaves_a_kernel_its_name() -> None:
    @jit
    def some_kernel() -> None:
        """Do nothing."""

    assert (
        Variant(some_kernel, "of nothing", {}, {}, registers=1).title == "some_kernel, of nothing"
    )
