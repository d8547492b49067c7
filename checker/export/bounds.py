"""Bounds: between which numbers the value of a ground tree must lie."""

from __future__ import annotations

from fivestate.spec.language.ground import MEANING
from fivestate.spec.language.model import Model
from fivestate.spec.language.trees import Apply, Boolean, Cell, Literal, Node

Bounds = tuple[int, int]


def bounds(model: Model, node: Node) -> Bounds | None:
    """Return bounds of a tree's value, as far as the declared ranges tell; else nothing."""
    match node:
        case Literal(value):
            return value, value
        case Cell(position):
            cell = model.cells[position]
            return cell.low, cell.high
        case Apply("ite", (_, then, otherwise)):
            return _hull(bounds(model, then), bounds(model, otherwise))
        case Apply("just", (inner,)):
            return _corners("+", bounds(model, inner), (1, 1))
        case Apply("+" | "-" | "*" | "min" | "max" as operator, (one, other)):
            return _corners(operator, bounds(model, one), bounds(model, other))
        case Apply("//", (one, Literal(divisor))) if divisor > 0:
            inside = bounds(model, one)
            return inside and (inside[0] // divisor, inside[1] // divisor)
        case Apply(_, _, Boolean()):
            return 0, 1
        case _:
            return None


def _hull(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


def _corners(operator: str, one: Bounds | None, other: Bounds | None) -> Bounds | None:
    """Return the extremes; each of these operators takes them in corners of the box."""
    if one is None or other is None:
        return None
    values = [MEANING[operator](a, b) for a in one for b in other]
    return min(values), max(values)
