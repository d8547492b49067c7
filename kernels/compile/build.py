"""Build: one variant for one target, and what the tools say of the cubin.

Registers are those of the cubin, as ``cuobjdump`` tells them; spills are those that ``ptxas``
reports; the rest is read from the PTX.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any

from fivestate.kernels.compile.variant import Variant

TARGETS = {"sm_80": 80, "sm_90": 90, "sm_100": 100}

_WIDE = re.compile(r"\bld\.global\S*\.v(?:[48]\.[bfsu]32|[24]\.[bfsu]64|8\.[bfsu]16)")
"""A load of 16 bytes or more in PTX."""


@dataclass(frozen=True)
class Compiled:
    """What one variant became on one target.

    Attributes:
        variant: its title.
        target: such as ``sm_90``.
        registers: registers of a thread; 0 where it was refused.
        spilled_bytes: bytes that a thread spills, stores and loads together.
        wide_loads: whether its PTX loads 16 bytes at a time.
        refused: why this target cannot have it.
    """

    variant: str
    target: str
    registers: int
    spilled_bytes: int
    wide_loads: bool
    refused: str = ""


def compile_variant(variant: Variant, target: str) -> Compiled:
    """Compile one variant for one target.

    Raises:
        ValueError: it does not compile where it should, or compiles where it is to be refused.
    """
    import triton  # noqa: PLC0415 -- the tables can be read without it
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415 -- as above

    source, options = _source(variant), {"num_warps": variant.num_warps}
    gpu = GPUTarget("cuda", TARGETS[target], 32)
    reason = variant.refused.get(target, "")
    try:
        built = triton.compile(source, target=gpu, options=options)
    except triton.CompilationError as error:
        if reason:
            return Compiled(variant.title, target, 0, 0, False, reason)
        raise ValueError(f"{variant.title}: {target} refuses it: {error}") from error
    if reason:
        raise ValueError(f"{variant.title}: {target} should refuse it: {reason}")
    ptx = built.asm["ptx"]
    wide = _WIDE.search(ptx) is not None
    registers, stack = _registers_and_stack(built)
    spilled = _spilled_bytes(ptx, gpu) if stack else 0  # what is spilled lies on the stack
    return Compiled(variant.title, target, registers, spilled, wide)


def _source(variant: Variant) -> Any:
    """Return what Triton compiles, as a launch would specialise it."""
    from triton.compiler import ASTSource  # noqa: PLC0415 -- the tables can be read without it

    names = variant.kernel.arg_names
    given = {**variant.signature, **dict.fromkeys(variant.constants, "constexpr")}
    if set(names) != set(given):
        odd = ", ".join(sorted(set(names) ^ set(given)))
        raise ValueError(f"{variant.title}: its parameters are not those of the kernel: {odd}")
    signature = {name: given[name] for name in names}
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in variant.aligned}
    return ASTSource(variant.kernel, signature, dict(variant.constants), aligned)


def _registers_and_stack(built: Any) -> tuple[int, int]:
    """Return the registers and the stack bytes of a thread, as ``cuobjdump`` tells them."""
    from triton import knobs  # noqa: PLC0415 -- the tables can be read without it

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        text = _said(knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name)
    found = [re.findall(rf"{what}:(\d+)", text) for what in ("REG", "STACK")]
    registers, stack = (max(int(each) for each in figures) for figures in found)
    return registers, stack


def _spilled_bytes(ptx: str, gpu: Any) -> int:
    """Return the bytes that a thread spills, as the packaged ``ptxas`` reports them."""
    from triton.backends.nvidia.compiler import get_ptxas  # noqa: PLC0415 -- as above

    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    if target is None:
        raise ValueError("the PTX names no target")
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        arch = f"--gpu-name={target[1]}"
        text = _said(get_ptxas(gpu.arch).path, "-v", arch, file.name, "-o", "/dev/null")
    return sum(int(each) for each in re.findall(r"(\d+) bytes spill", text))


def _said(*command: str) -> str:
    """Run a tool and return all that it says."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 -- ours
    return done.stdout + done.stderr
