"""Variants: with which types a kernel is compiled ahead of time, and what is promised of it.

There is one for each combination of dtypes and sizes that a wrapper launches on a real geometry.
What is promised: it compiles (or a target refuses it, and the variant says why), a thread uses no
more registers than the variant's bound, nothing spills, and where ``wide_loads`` is promised the
PTX has loads of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variant:
    """One way to compile one kernel.

    Attributes:
        kernel: what ``jit`` made.
        name: what distinguishes it from the kernel's other variants, such as ``8,640 bytes``.
        signature: Triton's type of each parameter that is given at launch, such as ``*i64`` for a
            tensor of int64, ``i32`` or ``i64`` for a number, ``fp32``; a float8 tensor is
            ``*fp8e4nv``.
        constants: the value of each ``constexpr`` parameter.
        registers: how many registers a thread may use, on every target.
        aligned: parameters whose address or value is a multiple of 16 whenever this variant is
            launched; Triton tells it by itself at launch, but not ahead of time.
        num_warps: warps of one program.
        wide_loads: 16 bytes at a time are promised: the PTX has such loads.
        spills: why registers may spill to memory; by default they must not.
        refused: targets that cannot have it, such as ``sm_80``, and why; the compiler has to
            refuse them indeed.
    """

    kernel: Any
    name: str
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    registers: int
    aligned: tuple[str, ...] = ()
    num_warps: int = 4
    wide_loads: bool = False
    spills: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The kernel's name and its own: unique among all variants."""
        return f"{self.kernel.__name__.lstrip('_')}, {self.name}"


def types(kind: str, names: str) -> dict[str, str]:
    """Give one of Triton's types to parameters, whose names are separated by spaces."""
    return dict.fromkeys(names.split(), kind)
