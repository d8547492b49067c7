"""Settling: what a model's switches decide is folded away, and the quantifiers stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from fivestate.spec.language.ground import ANY_STEP, During, Grounder
from fivestate.spec.language.model import Model
from fivestate.spec.language.trees import (
    FALSE,
    TRUE,
    Apply,
    Boolean,
    Bound,
    Constant,
    Literal,
    Node,
    Quantified,
    Read,
)


class Settler(Grounder):
    """Folds a tree as grounding does, but only by switches and by variables a model lacks."""

    def __init__(self, model: Model) -> None:
        grounder = model.grounder
        super().__init__(grounder.elements, grounder.constant, grounder.cell, grounder.may)
        self._model = model

    def settle(self, node: Node) -> Node:
        """Return the tree without what this model never has."""
        return self.ground(node, {})

    def ground(self, node: Node, names: Mapping[str, int], during: During = ANY_STEP) -> Node:
        """Return the tree, settled; names stay names."""
        match node:
            case Constant(name, (), Boolean()):
                return Literal(self.constant(name, ()), Boolean())
            case Read(variable, indices) if variable not in self._model.variables:
                declared = self._model.machine.state.variables[variable]
                return declared.initial_at(*cast("tuple[Bound, ...]", indices))
            case Quantified(quantifier, bound, body, kind):
                inner = self.ground(body, names, during)
                plain = {"forall": TRUE, "exists": FALSE}  # also over no elements
                if inner == plain.get(quantifier):
                    return inner
                return Quantified(quantifier, bound, inner, kind)
            case Apply():
                return super().ground(node, names, during)
            case _:
                return node
