"""Ahead-of-time compilation: every kernel for every target, without a GPU.

``python -m fivestate.kernels.compile`` compiles each ``Variant`` of each module of ``MODULES`` for
each of ``TARGETS`` and writes ``COMPILED.md`` and ``compiled.json`` beside this file; with
``--check`` it compares instead, and exits with 1 if something differs or a promise is broken.
Names of modules or a ``--target`` narrow it, to try one out: the figures are printed then, and
nothing is written.

A new kernel file is added to ``MODULES`` and ends with its ``VARIANTS``: see ``variants``. What
is promised: it compiles (or a target refuses it, and the variant says why), a thread uses no more
registers than the variant's bound, nothing spills, and where ``wide_loads`` is promised the PTX
has loads of 16 bytes. Registers are those of the cubin, as ``cuobjdump`` tells them; spills are
those that ``ptxas`` reports.

Triton fixes while it is imported whether it interprets or compiles, so this needs a process of its
own, without ``TRITON_INTERPRET`` and ``FIVESTATE_INTERPRET``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fivestate.kernels.launch import INSTALLED, INTERPRETED
from fivestate.kernels.variants import Variant

MODULES = (
    "paged",
    "window",
    "digest",
    "fold",
    "route",
    "attend",
    "classify",
    "revalidate",
)
TARGETS = {"sm_80": 80, "sm_90": 90, "sm_100": 100}

FOLDER = Path(__file__).parent
TABLE, FIGURES = FOLDER / "COMPILED.md", FOLDER / "compiled.json"

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


def variants(modules: Iterable[str] = MODULES) -> Iterator[Variant]:
    """Yield the variants of these modules."""
    for name in modules:
        yield from import_module(f"fivestate.kernels.{name}").VARIANTS


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
    return Compiled(variant.title, target, _registers(built), _spilled_bytes(ptx, gpu), wide)


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


def _registers(built: Any) -> int:
    """Return the registers of a thread, as the packaged ``cuobjdump`` tells them of the cubin."""
    from triton import knobs  # noqa: PLC0415 -- the tables can be read without it

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        text = _said(knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name)
    return max(int(each) for each in re.findall(r"REG:(\d+)", text))


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


def broken(variant: Variant, built: Compiled) -> Iterator[str]:
    """Yield the promises of a variant that what was built breaks."""
    where = f"{variant.title}, {built.target}"
    if built.refused:
        return
    if built.registers > variant.registers:
        yield f"{where}: {built.registers} registers, at most {variant.registers} are promised"
    if built.spilled_bytes and not variant.spills:
        yield f"{where}: spills {built.spilled_bytes} bytes"
    if variant.wide_loads and not built.wide_loads:
        yield f"{where}: no loads of 16 bytes"


def to_json(built: Iterable[Compiled]) -> str:
    """Return all figures as JSON, one object a line."""
    lines = ",\n".join(f"  {json.dumps(asdict(each), ensure_ascii=False)}" for each in built)
    return f"[\n{lines}\n]\n"


def from_json(text: str) -> tuple[Compiled, ...]:
    """Return the figures of ``to_json``."""
    return tuple(Compiled(**each) for each in json.loads(text))


def to_markdown(asked: Sequence[Variant], built: Sequence[Compiled]) -> str:
    """Return the table for people."""
    found = {(each.variant, each.target): each for each in built}
    lines = [_INTRODUCTION, "", f"| variant | {' | '.join(TARGETS)} | bound | loads of 16 bytes |"]
    lines.append("| --- |" + " ---: |" * (len(TARGETS) + 1) + " --- |")
    notes = []
    for variant in asked:
        figures = []
        for target in TARGETS:
            each = found[variant.title, target]
            figures.append("refused" if each.refused else _figure(each))
            if each.refused:
                notes.append(f"- {variant.title}: {target} refuses it: {each.refused}.")
        if variant.spills:
            notes.append(f"- {variant.title} may spill: {variant.spills}.")
        wide = "promised" if variant.wide_loads else ""
        row = (variant.title, *figures, str(variant.registers), wide)
        lines.append(f"| {' | '.join(row)} |")
    if not any(each.refused for each in built):
        notes.append(_NONE_REFUSED)
    return "\n".join([*lines, "", *notes]) + "\n"


def _figure(built: Compiled) -> str:
    spilled = f" + {built.spilled_bytes} bytes spilled" if built.spilled_bytes else ""
    return f"{built.registers}{spilled}"


_INTRODUCTION = """\
# Kernels, compiled ahead of time

Registers of a thread on each target, as Triton 3.7.0 compiles the kernels; nothing spills unless
it says so. Written by `python -m fivestate.kernels.compile`, checked by `--check`. No figure here
is a time: see [RESULTS.md](RESULTS.md)."""


_NONE_REFUSED = """\
No target refuses a variant. fp8 is encoded and decoded as integers: sm_80 refuses Triton's
fp8e4nv, and the interpreter's cast to it loses carries."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, then write or compare; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fivestate.kernels.compile")
    parser.add_argument("module", nargs="*", help="only the kernels of these modules")
    parser.add_argument("--check", action="store_true", help="compare with what is committed")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this target")
    options = parser.parse_args(arguments)
    if not INSTALLED or INTERPRETED:
        parser.error("Triton is missing, or interprets: unset TRITON_INTERPRET")
    asked = list(variants(options.module or MODULES))
    targets = options.target or list(TARGETS)
    built, wrong = [], []
    for variant in asked:
        for target in targets:
            try:
                built.append(compile_variant(variant, target))
            except ValueError as error:
                wrong.append(str(error))
            else:
                wrong += broken(variant, built[-1])
    if len(built) < len(asked) * len(targets):
        return _complain(wrong)
    if options.module or options.target:
        print(to_json(built), end="")  # noqa: T201 -- a command prints
        wrong += _differing(built) if options.check else []
    elif options.check:
        wrong += _differing(built)
        if TABLE.read_text("utf-8") != to_markdown(asked, built):
            wrong.append(f"{TABLE.name} is not current")
    else:
        FIGURES.write_text(to_json(built), "utf-8")
        TABLE.write_text(to_markdown(asked, built), "utf-8")
    return _complain(wrong)


def _complain(wrong: Sequence[str]) -> int:
    """Print what is wrong, and return the exit code."""
    for text in wrong:
        print(text, file=sys.stderr)  # noqa: T201 -- a command prints
    return 1 if wrong else 0


def _differing(built: Iterable[Compiled]) -> list[str]:
    """Return what differs from what is committed."""
    committed = {
        (each.variant, each.target): each for each in from_json(FIGURES.read_text("utf-8"))
    }
    return [
        f"{each.variant}, {each.target}: {each} was {committed.get((each.variant, each.target))}"
        for each in built
        if committed.get((each.variant, each.target)) != each
    ]


if __name__ == "__main__":
    sys.exit(main())
