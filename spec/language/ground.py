"""Grounding: a tree over sorts becomes, in one model, a tree over cells.

Quantifiers unfold over the model's elements, constants become literals, and what is settled by
constants alone is folded away, so that a switched-off feature leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fivestate.spec.language.trees import (
    FALSE,
    TRUE,
    Apply,
    Boolean,
    Bound,
    Cell,
    Constant,
    Integer,
    Literal,
    May,
    Node,
    Quantified,
    Read,
    Took,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fivestate.spec.language.sorts import Sort


@dataclass(frozen=True)
class During:
    """The step for which a step property is grounded: its action and the cells it writes."""

    action: str = ""
    written: frozenset[int] | None = None

    def may_write(self, position: int) -> bool:
        """Say whether the cell may differ behind the step; where unknown, it may."""
        return self.written is None or position in self.written


ANY_STEP = During()


class Grounder:
    """What a model knows: elements of sorts, values of constants, positions of cells.

    Args:
        elements: gives the codes of a sort's elements.
        constant: gives the value of a constant at some codes.
        cell: gives a variable's cell at some codes, or a literal where the model lacks it.
        may: gives the condition under which an action may be taken with arguments of some codes.
    """

    def __init__(
        self,
        elements: Callable[[type[Sort]], tuple[int, ...]],
        constant: Callable[[str, tuple[int, ...]], int],
        cell: Callable[[str, tuple[int, ...]], Cell | Literal],
        may: Callable[[str, tuple[int, ...]], Node],
    ) -> None:
        self.elements, self.constant, self.cell, self.may = elements, constant, cell, may

    def ground(self, node: Node, names: Mapping[str, int], during: During = ANY_STEP) -> Node:
        """Return the tree over cells.

        Args:
            node: the tree.
            names: the code of each name bound around it.
            during: in a step property, the step that is meant.
        """
        match node:
            case Literal() | Cell():
                return node
            case Bound(name, _, kind):
                return Literal(names[name], kind)
            case Constant(name, indices, kind, _, _):
                return Literal(self.constant(name, self._codes(indices, names)), kind)
            case Read(variable, indices, _, after):
                cell = self.cell(variable, self._codes(indices, names))
                if after and isinstance(cell, Cell) and during.may_write(cell.position):
                    return Cell(cell.position, cell.type, after=True)
                return cell
            case Took(actions):
                return TRUE if during.action in actions else FALSE
            case May(action, arguments):
                return self.may(action, self._codes(arguments, names))
            case Quantified(quantifier, bound, body):
                return self._unfold(quantifier, bound, body, names, during)
            case Apply(operator, arguments, kind):
                return self._apply(operator, arguments, kind, names, during)

    def _codes(self, indices: tuple[Node, ...], names: Mapping[str, int]) -> tuple[int, ...]:
        grounded = (self.ground(index, names) for index in indices)
        return tuple(index.value for index in grounded if isinstance(index, Literal))

    def _unfold(
        self,
        quantifier: str,
        bound: Bound,
        body: Node,
        names: Mapping[str, int],
        during: During,
    ) -> Node:
        parts = (
            self.ground(body, {**names, bound.name: code}, during)
            for code in self.elements(bound.sort)
        )
        if quantifier == "count":
            ones = (fold("ite", (part, _number(1), _number(0)), Integer()) for part in parts)
            return fold("+", tuple(ones), Integer())
        if quantifier == "total":
            return fold("+", tuple(parts), Integer())
        return connect("and" if quantifier == "forall" else "or", parts)

    def _apply(
        self,
        operator: str,
        arguments: tuple[Node, ...],
        kind: Type,
        names: Mapping[str, int],
        during: During,
    ) -> Node:
        grounded = (self.ground(argument, names, during) for argument in arguments)
        if operator in ("and", "or"):
            return connect(operator, grounded)
        if operator in ("implies", "ite"):
            condition = next(grounded)
            if isinstance(condition, Literal):  # the other branch may name what is not there
                if operator == "implies":
                    return next(grounded) if condition.value else TRUE
                return self.ground(arguments[1 if condition.value else 2], names, during)
            return fold(operator, (condition, *grounded), kind)
        return fold(operator, tuple(grounded), kind)


def _number(value: int) -> Literal:
    return Literal(value, Integer())


def connect(operator: str, parts: Iterable[Node]) -> Node:
    """Fold a conjunction or disjunction, and stop at the first part that settles it."""
    neutral, settled = (TRUE, FALSE) if operator == "and" else (FALSE, TRUE)
    kept: dict[Node, None] = {}
    for part in parts:
        if part == settled:
            return settled
        inner = part.arguments if isinstance(part, Apply) and part.operator == operator else (part,)
        kept.update(dict.fromkeys(node for node in inner if node != neutral))
    if not kept:
        return neutral
    return next(iter(kept)) if len(kept) == 1 else Apply(operator, tuple(kept), Boolean())


def fold(operator: str, arguments: tuple[Node, ...], kind: Type) -> Node:
    """Apply an operator to ground trees and compute what literals alone settle."""
    if all(isinstance(argument, Literal) for argument in arguments):
        values = [argument.value for argument in arguments if isinstance(argument, Literal)]
        return Literal(compute(operator, values), kind)
    match operator, arguments:
        case "not", (Apply("not", (inner,)),):
            return inner
        case (("==" | "!=" | "<=" | ">="), (one, other)) if one == other:
            return FALSE if operator == "!=" else TRUE
        case "implies", (condition, consequence):
            return _implies(condition, consequence)
        case "ite", (_, then, otherwise) if then == otherwise:
            return then
        case "ite", (condition, Literal(1, Boolean()), Literal(0)):
            return condition
        case "+", _ if len(arguments) != 2 or _number(0) in arguments:
            return _sum(arguments)
        case _:
            return Apply(operator, arguments, kind)


def _implies(condition: Node, consequence: Node) -> Node:
    if consequence in (TRUE, condition):
        return TRUE
    if consequence == FALSE:
        return fold("not", (condition,), Boolean())
    return Apply("implies", (condition, consequence), Boolean())


def _sum(arguments: tuple[Node, ...]) -> Node:
    terms: list[Node] = [a for a in arguments if not isinstance(a, Literal)]
    rest = sum(a.value for a in arguments if isinstance(a, Literal))
    if rest or not terms:
        terms.append(_number(rest))
    total = terms[0]
    for term in terms[1:]:
        total = Apply("+", (total, term), Integer())
    return total


MEANING: dict[str, Callable[..., int]] = {
    "not": lambda a: 1 - a,
    "and": lambda *values: int(all(values)),
    "or": lambda *values: int(any(values)),
    "implies": lambda a, b: int(not a or bool(b)),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "+": lambda *values: sum(values),
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "ite": lambda condition, then, otherwise: then if condition else otherwise,
    "just": lambda a: a + 1,
}
"""What the operators compute on codes: the one definition."""


def compute(operator: str, values: list[int]) -> int:
    """Apply an operator to codes."""
    return MEANING[operator](*values)


def evaluate(node: Node, before: tuple[int, ...], after: tuple[int, ...] = ()) -> int:
    """Return the value of a ground tree in a state, or in a step from ``before`` to ``after``."""
    match node:
        case Literal(value):
            return value
        case Cell(position, _, behind):
            return after[position] if behind else before[position]
        case Apply("and", arguments):
            return int(all(evaluate(a, before, after) for a in arguments))
        case Apply("or", arguments):
            return int(any(evaluate(a, before, after) for a in arguments))
        case Apply("ite", (condition, then, otherwise)):
            chosen = then if evaluate(condition, before, after) else otherwise
            return evaluate(chosen, before, after)
        case Apply(operator, arguments):
            return compute(operator, [evaluate(a, before, after) for a in arguments])
        case _:
            message = f"{type(node).__name__} is not ground"
            raise ValueError(message)
