"""Refinement: every step of a machine is a step of a simpler one, or leaves it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fivestate.checker.exploration import Exploration, Finding
from fivestate.checker.truth import Columns, column
from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.trees import Literal, Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fivestate.spec.language.machine import Refinement
    from fivestate.spec.language.model import Codes, Model


def first_unmatched(
    exploration: Exploration,
    abstract: Exploration,
) -> Finding | None:
    """Return the first step that the simpler machine has no answer to, or nothing.

    A search that was cut short is checked as far as it got; that of the simpler machine,
    ``abstract``, has to be complete.

    Raises:
        ValueError: the exploration kept no edges, or its model claims no refinement.
    """
    model, edges = exploration.model, exploration.edges
    if edges is None or model.refines is None or abstract.stopped:
        raise ValueError("a refinement is judged on a graph with edges")
    simple = abstract.model
    images = _images(model, simple, model.refines, Columns(exploration.states))
    if tuple(int(code) for code in images[0]) != simple.initial:
        return Finding(0, None, "the first states differ")
    allowed = _pairs(abstract)
    numbers = {state: number for number, state in enumerate(abstract.states)}
    unknown = len(numbers)
    named = np.array([numbers.get(tuple(map(int, row)), unknown) for row in images])
    sources = np.repeat(np.arange(len(edges.offsets) - 1), np.diff(edges.offsets))
    before, after = named[sources], named[edges.targets]
    stays = (images[sources] == images[edges.targets]).all(axis=1)
    pairs = before * (unknown + 1) + after
    wrong = np.flatnonzero(~stays & ~np.isin(pairs, allowed))
    if not wrong.size:
        return None
    at = int(wrong[0])
    step = int(edges.labels[at])
    shown = ", ".join(
        f"{cell.name}: {simple.show(cell.type, int(was))} -> {simple.show(cell.type, int(now))}"
        for cell, was, now in zip(
            simple.cells,
            images[sources[at]],
            images[edges.targets[at]],
            strict=True,
        )
        if was != now
    )
    return Finding(int(sources[at]), step, f"{simple.machine.name} has no step for {shown}")


def _pairs(abstract: Exploration) -> NDArray[np.int64]:
    """Return the steps of the simpler machine, each as one number."""
    edges = abstract.edges
    if edges is None:
        raise ValueError("a refinement is judged on a graph with edges")
    sources = np.repeat(np.arange(len(edges.offsets) - 1), np.diff(edges.offsets))
    return np.unique(sources * (abstract.distinct + 1) + edges.targets)


def _images(
    model: Model,
    simple: Model,
    refinement: Refinement,
    columns: Columns,
) -> NDArray[np.int64]:
    """Return what each state is in the simpler machine, shape (states, its cells)."""
    images = np.zeros((columns.states, len(simple.cells)), dtype=np.int64)
    mapped = _mapped(model, simple, refinement)
    for position, cell in enumerate(simple.cells):
        if position not in mapped:
            raise SpecError(f"{refinement.name} does not say what {cell.name} is")
    for position, node in mapped.items():
        images[:, position] = column(node, columns)
    return images


def _mapped(model: Model, simple: Model, refinement: Refinement) -> dict[int, Node]:
    mapped: dict[int, Node] = {}
    for effect in refinement.effects:
        for names in model.choices(effect.over):
            indices = (model.grounder.ground(index, names) for index in effect.indices)
            codes: Codes = tuple(i.value for i in indices if isinstance(i, Literal))
            position = simple.positions[effect.variable, codes]
            mapped[position] = model.grounder.ground(effect.value, names)
    return mapped
