"""Engines: ways to explore a model exhaustively, chosen by name or by size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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


@contextmanager
def prepared(models: Sequence[Model], engines: Sequence[Engine]) -> Iterator[Callable[[int], None]]:
    """Compile the models that are searched natively ahead, beside the searches before theirs.

    Gives a function that waits until the model of that number is ready. What goes wrong is left to
    the search, which meets it again and says so.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        work = {
            number: pool.submit(native.prepare, model, native.workers())
            for number, (model, engine) in enumerate(zip(models, engines, strict=True))
            if engine is native.explore
        }

        def wait_for(number: int) -> None:
            if number in work:
                work[number].exception()

        try:
            yield wait_for
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


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
