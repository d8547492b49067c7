"""The variants of every kernel: one file a subject, each ends with its ``VARIANTS``.

A new kernel gets a file here, whose name is added to ``MODULES``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module

from fivestate.kernels.compile.variant import Variant

MODULES = "pages", "window", "digest", "fold", "route", "attend", "classify", "revalidate"


def variants(modules: Iterable[str] = MODULES) -> Iterator[Variant]:
    """Yield the variants of these modules."""
    for name in modules:
        yield from import_module(f"{__name__}.{name}").VARIANTS
