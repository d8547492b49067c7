"""Tables: the promises of variants, and what was built as JSON and for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from fivestate.kernels.compile.build import TARGETS, Compiled
from fivestate.kernels.compile.variant import Variant

FOLDER = Path(__file__).parents[1]
TABLE, FIGURES = FOLDER / "COMPILED.md", FOLDER / "compiled.json"


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


def differing(built: Iterable[Compiled]) -> list[str]:
    """Return what differs from what is committed."""
    committed = {
        (each.variant, each.target): each for each in from_json(FIGURES.read_text("utf-8"))
    }
    return [
        f"{each.variant}, {each.target}: {each} was {committed.get((each.variant, each.target))}"
        for each in built
        if committed.get((each.variant, each.target)) != each
    ]
