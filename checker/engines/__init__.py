"""Engines: ways to explore a model exhaustively, chosen by name or by size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fivestate.checker.engines import python
from fivestate.spec.language.errors import ModelError, did_you_mean

if TYPE_CHECKING:
    from fivestate.checker.exploration import Engine
    from fivestate.spec.language.model import Model

AUTO = "auto"
ENGINES: dict[str, Engine] = {python.NAME: python.explore}


def select(name: str, model: Model) -> Engine:
    """Return the engine called ``name``; ``auto`` chooses one that suits the model.

    Raises:
        ModelError: no engine is called so.
    """
    del model  # there is one engine to choose from
    chosen = python.NAME if name == AUTO else name
    if chosen not in ENGINES:
        known = did_you_mean(name, [AUTO, *ENGINES])
        raise ModelError(f"no engine {name!r}; {known}")
    return ENGINES[chosen]
