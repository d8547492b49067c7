"""A model as native code: its layout, its text and its compiled functions."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fivestate.checker.engines.native.claims import Claims
from fivestate.checker.engines.native.emit import Emitter
from fivestate.checker.engines.native.jit import Code, build, recall
from fivestate.checker.engines.native.kernel import kernel
from fivestate.checker.engines.native.pack import Layout
from fivestate.checker.engines.native.recipe import recipe
from fivestate.spec.language.errors import ModelError
from fivestate.spec.language.model import Model

MAX_STEPS = 1 << 15
"""A step's number takes 15 bits; code for more steps would not be compiled in a lifetime."""


@dataclass(frozen=True)
class Program:
    """What it takes to explore one model natively.

    Attributes:
        layout: how a state is packed.
        claims: what is watched.
        workers: how many workers the code is made for.
        code: the compiled functions, with the time that took.
        emit_seconds: how long grounding the model and writing its code took; 0 if it was known.
    """

    model: Model
    layout: Layout
    claims: Claims
    workers: int
    code: Code
    emit_seconds: float


def prepare(model: Model, workers: int) -> Program:
    """Return the model as native code.

    Raises:
        ModelError: a state, a number or the steps do not fit.
    """
    started = time.perf_counter()
    layout = Layout(model)
    if len(model.steps) > MAX_STEPS:
        message = f"model {model.name} has {len(model.steps):,} steps, and at most "
        raise ModelError(message + f"{MAX_STEPS:,} can be compiled")
    claims = Claims(model)
    shared = kernel(layout.word, len(model.steps), workers)
    name = recipe(model, shared)
    code = recall(name)
    emitted = 0.0
    if code is None:
        try:
            text = f"{shared}\n{source(model, layout, claims)}"
        except ModelError as error:
            message = f"model {model.name}: {error}"
            raise ModelError(message) from None
        emitted = time.perf_counter() - started
        code = build(text, name)
    return Program(model, layout, claims, workers, code, emitted)


def source(model: Model, layout: Layout, claims: Claims) -> str:
    """Return the model's own part of its program in LLVM's notation."""
    emitter = Emitter(model, layout, claims)
    return f"{emitter.successors()}\n{emitter.judge()}"
