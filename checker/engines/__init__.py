"""Engines: ways to explore a model exhaustively, chosen by name or by size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fivestate.checker.engines import native, python
from fivestate.spec.language.errors import ModelError, did_you_mean

if TYPE_CHECKING:
    from fivestate.checker.exploration import Engine
    from fivestate.spec.language.model import Model

AUTO = "auto"
ENGINES: dict[str, Engine] = {python.NAME: python.explore, native.NAME: native.explore}

SMALL_STEPS = 30
"""Up to so many steps a model is searched in less time than native code takes to load."""


def select(name: str, model: Model) -> Engine:
    """Return the engine called ``name``; ``auto`` chooses one that suits the model.

    Raises:
        ModelError: no engine is called so.
    """
    small = len(model.steps) <= SMALL_STEPS
    automatic = python.NAME if small else native.NAME
    chosen = automatic if name == AUTO else name
    if chosen not in ENGINES:
        known = did_you_mean(name, [AUTO, *ENGINES])
        raise ModelError(f"no engine {name!r}; {known}")
    return ENGINES[chosen]
