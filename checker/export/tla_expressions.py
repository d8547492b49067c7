"""TLA+'s expressions: trees as they are written, quantifiers and all, laid out in lines."""

from __future__ import annotations

from collections.abc import Mapping

from fivestate.checker.export.settled import Settler
from fivestate.checker.export.tla_words import Words
from fivestate.spec.language.model import Model
from fivestate.spec.language.trees import (
    Apply,
    Bound,
    Constant,
    Literal,
    May,
    Node,
    Quantified,
    Read,
    Took,
)

_INFIX = {
    "implies": ("=>", 1),
    "or": ("\\/", 2),
    "and": ("/\\", 2),
    "==": ("=", 4),
    "!=": ("#", 4),
    "<": ("<", 4),
    "<=": ("<=", 4),
    ">": (">", 4),
    ">=": (">=", 4),
    "+": ("+", 5),
    "-": ("-", 5),
    "*": ("*", 6),
    "//": ("\\div", 6),
}
"""TLA+'s operators, and how closely each binds; where two bind alike, brackets must tell."""

_QUANTIFIER = {"forall": "\\A", "exists": "\\E"}
_OPEN, CLOSED = 0, 9
BESIDE_EQUALS = _INFIX["=="][1] + 1
"""What stands beside ``=`` on one line: a conjunction there would be taken for the next."""

_WIDTH = 100


class Expressions(Words):
    """Writes the trees of a model."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.settle = Settler(model).settle

    def text(self, node: Node, level: int = _OPEN) -> str:
        """Return a tree on one line, in brackets if it binds less closely than ``level``."""
        text, own = self._write(node)
        return text if own >= level else f"({text})"

    def block(self, node: Node, column: int, level: int = _OPEN) -> list[str]:
        """Return a tree as lines that are to start at ``column``.

        A conjunction or disjunction that does not fit becomes a list; what is not a list and
        takes several lines is bracketed where ``level`` asks for it.
        """
        text = self.text(node, level)
        lines = None if len(text) + column <= _WIDTH else self._broken(node, column)
        if lines is None:
            return [text]
        own = CLOSED if _is_list(node) else self._write(node)[1]
        if own >= level:
            return lines
        return _closed(_glued("(", self._broken(node, column + 1) or [text]))

    def _broken(self, node: Node, column: int) -> list[str] | None:
        match node:
            case Apply("and" | "or" as operator, arguments):
                sign = _INFIX[operator][0]
                blocks = [self.block(argument, column + 3) for argument in arguments]
                return [line for block in blocks for line in bullet(sign, block)]
            case Apply("implies", (condition, then)):
                first = self.block(condition, column, 2)
                return [*first, *bullet("=>", self.block(then, column + 3, 2))]
            case Apply("ite", (condition, then, otherwise)):
                return [
                    *bullet("IF", self.block(condition, column + 3)),
                    *bullet("THEN", self.block(then, column + 5)),
                    *bullet("ELSE", self.block(otherwise, column + 5)),
                ]
            case Apply("not", (inner,)):
                return _closed(_glued("~(", self.block(inner, column + 2)))
            case Apply("==" | "!=" | "<" | "<=" | ">" | ">=" as operator, (one, other)):
                sign, level = _INFIX[operator]
                first = self.block(one, column, level + 1)
                return [*first, *bullet(sign, self.block(other, column + 3, level + 1))]
            case Apply("+", (one, other)):
                rest = self.block(other, column + 2, _INFIX["+"][1] + 1)
                return [*self.block(one, column, _INFIX["+"][1]), *bullet("+", rest)]
            case Quantified(("forall" | "exists") as quantifier):
                bounds, body = _chain(node)
                head = f"{_QUANTIFIER[quantifier]} {self.over(*bounds)} :"
                return [head, *(f"    {line}" for line in self.block(body, column + 4))]
            case _:
                return None

    def _write(self, node: Node) -> tuple[str, int]:
        match node:
            case Literal(value, kind):
                return self.literal(value, kind), CLOSED if value >= 0 else _OPEN
            case Bound(name):
                return self.bound(name), CLOSED
            case Constant(name, indices):
                return f"{self.constants[name]}{self.index(indices)}", CLOSED
            case Read(variable, indices, _, after):
                prime = "'" if after else ""
                return f"{self.variables[variable]}{prime}{self.index(indices)}", CLOSED
            case Quantified("count", bound, body):
                return f"Cardinality({{{self.over(bound)} : {self.text(body)}}})", CLOSED
            case Quantified("total", bound, body):
                summed = f"[{self.over(bound)} |-> {self.text(body)}]"
                return f"Sum({summed}, {self.sorts[bound.sort]})", CLOSED
            case Quantified(quantifier):
                bounds, body = _chain(node)
                return f"{_QUANTIFIER[quantifier]} {self.over(*bounds)} : {self.text(body)}", _OPEN
            case May(action, arguments):
                if action not in {each.called for each in self.model.actions}:
                    return "FALSE", CLOSED
                called = self.call(action, [self.text(argument) for argument in arguments])
                return f"ENABLED {called}", 3
            case Took(actions):
                return self._took(actions), _OPEN
            case Apply(operator, arguments):
                return self._apply(operator, arguments)
            case _:
                message = f"{type(node).__name__} is ground"
                raise ValueError(message)

    def index(self, indices: tuple[Node, ...]) -> str:
        """Return ``[p, g]``, or nothing for what has no indices."""
        return f"[{', '.join(self.text(index) for index in indices)}]" if indices else ""

    def _apply(self, operator: str, arguments: tuple[Node, ...]) -> tuple[str, int]:
        match operator, arguments:
            case "not", (inner,):
                return f"~{self.text(inner, CLOSED)}", 3
            case "just", (atom,):  # NOTHING is beside the atoms, so an atom is itself
                return self._write(atom)
            case "ite", (condition, then, otherwise):
                parts = [self.text(part, 1) for part in (condition, then, otherwise)]
                return "IF {} THEN {} ELSE {}".format(*parts), _OPEN
            case (("min" | "max"), (one, other)):
                return f"{operator.capitalize()}({self.text(one)}, {self.text(other)})", CLOSED
        sign, level = _INFIX[operator]
        first = level if operator in ("+", "-") else level + 1
        texts = [self.text(a, level + 1 if at else first) for at, a in enumerate(arguments)]
        return f" {sign} ".join(texts), level

    def _took(self, names: frozenset[str]) -> str:
        """Say that the step is one of these actions: that one of them leads where it led."""
        parts: list[str] = []
        for action in self.model.actions:
            if action.name in names:
                own = [self.bound(f"{bound.name}_taken") for bound in action.parameters]
                call = self.call(action.name, own)
                sets = [self.sorts[bound.sort] for bound in action.parameters]
                over = ", ".join(f"{n} \\in {s}" for n, s in zip(own, sets, strict=True))
                parts.append(f"\\E {over} : {call}" if own else call)
        if len(parts) > 1:
            parts = [f"({part})" for part in parts]
        return " \\/ ".join(parts) or "FALSE"


def _glued(sign: str, lines: list[str]) -> list[str]:
    """Return a block with a sign right before it."""
    return [f"{sign}{lines[0]}", *(f"{' ' * len(sign)}{line}" for line in lines[1:])]


def _closed(lines: list[str]) -> list[str]:
    return [*lines[:-1], f"{lines[-1]})"]


def bullet(sign: str, lines: list[str]) -> list[str]:
    """Return a block with a sign before it, its later lines further in than the sign."""
    return [f"{sign} {lines[0]}", *(f"{' ' * len(sign)} {line}" for line in lines[1:])]


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return a tree with free names replaced."""
    match node:
        case Bound(name, sort, kind):
            return Bound(names.get(name, name), sort, kind)
        case Constant(name, indices, kind, low, high):
            return Constant(name, tuple(renamed(i, names) for i in indices), kind, low, high)
        case Read(variable, indices, kind, after):
            return Read(variable, tuple(renamed(i, names) for i in indices), kind, after)
        case Apply(operator, arguments, kind):
            return Apply(operator, tuple(renamed(a, names) for a in arguments), kind)
        case May(action, arguments):
            return May(action, tuple(renamed(a, names) for a in arguments))
        case Quantified(quantifier, bound, body, kind):
            return Quantified(quantifier, bound, renamed(body, names), kind)
        case _:
            return node


def _chain(node: Quantified) -> tuple[list[Bound], Node]:
    """Return what a row of equal quantifiers binds, and what it says of it."""
    bounds, body = [node.bound], node.body
    while isinstance(body, Quantified) and body.quantifier == node.quantifier:
        bounds.append(body.bound)
        body = body.body
    return bounds, body


def _is_list(node: Node) -> bool:
    return isinstance(node, Apply) and node.operator in ("and", "or")
