"""Promela's words: names, constants, types and expressions for one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from fivestate.checker.export.bounds import bounds
from fivestate.checker.export.names import Names
from fivestate.spec.language.model import CellInfo, Model
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.trees import (
    Apply,
    Boolean,
    Cell,
    Enumerated,
    Literal,
    Maybe,
    Node,
    Type,
)

_WORDS = """
active assert atomic bit bool break byte chan d_step do else empty enabled eval false fi
for full get_priority goto hidden if in init inline int len local ltl mtype nempty never
nfull notrace np_ od of pc_value pid printf printm priority proctype provided return run
select set_priority short show skip timeout trace true typedef unless unsigned xr xs
always eventually until stronguntil weakuntil release implies equivalent next
auto case char const continue default double enum extern float long main register
restrict signed sizeof static struct switch union void volatile while
"""
RESERVED = frozenset(_WORDS.split())
"""Promela's own words, and C's, since every variable becomes a field of a C structure."""

_INFIX = {
    "or": ("||", 1),
    "and": ("&&", 2),
    "==": ("==", 3),
    "!=": ("!=", 3),
    "<": ("<", 4),
    "<=": ("<=", 4),
    ">": (">", 4),
    ">=": (">=", 4),
    "+": ("+", 5),
    "-": ("-", 5),
    "*": ("*", 6),
    "//": ("/", 6),
}
"""Promela's operators, and how closely each binds."""

_UNARY, _CLOSED = 7, 8

_MACROS = {
    "MIN": "#define MIN(a, b) ((a) < (b) -> (a) : (b))",
    "MAX": "#define MAX(a, b) ((a) > (b) -> (a) : (b))",
    # C rounds towards zero, the specification down
    "FLOOR": "#define FLOOR(a, b) ((a) >= 0 -> (a) / (b) : -(((b) - 1 - (a)) / (b)))",
}


class Words:
    """What the things of a model are called in Promela, and how its trees are written."""

    def __init__(self, model: Model) -> None:
        self.model = model
        names = Names({*RESERVED, *_MACROS, "NOTHING", "end"})
        self.process = names.give(model.machine.name)
        self.cells = [names.give(cell.name) for cell in model.cells]
        kinds = dict.fromkeys(cell.type for cell in model.cells)
        self._enums: dict[type[Enum], list[str]] = {}
        self._atoms: dict[type[Sort], list[str]] = {}
        for kind in kinds:
            match kind:
                case Enumerated(enum):
                    self._enums[enum] = [names.give(f"{enum.__name__}_{m.name}") for m in enum]
                case Maybe(sort):
                    codes = model.elements(sort)
                    self._atoms[sort] = [names.give(f"{sort.letter}{code}") for code in codes]
                case _:
                    pass
        self._saved = names.give("was")

    def saved(self, number: int) -> str:
        """Return the name of the variable that keeps a value from before a step."""
        return f"{self._saved}{number}"

    def definitions(self, body: str) -> Iterator[str]:
        """Yield the names of values, and the operators Promela lacks and ``body`` uses."""
        for members in self._enums.values():
            for code, name in enumerate(members):
                yield f"#define {name} {code}"
        if self._atoms:
            yield "#define NOTHING 0"
        for atoms in self._atoms.values():
            for code, name in enumerate(atoms):
                yield f"#define {name} {code + 1}"
        for name, macro in _MACROS.items():
            if f"{name}(" in body:
                yield macro

    def literal(self, value: int, kind: Type) -> str:
        """Return a value as it is written."""
        match kind:
            case Boolean():
                return "true" if value else "false"
            case Enumerated(enum) if enum in self._enums:
                return self._enums[enum][value]
            case Maybe(sort) if sort in self._atoms:
                return self._atoms[sort][value - 1] if value else "NOTHING"
            case _:
                return str(value)

    def text(
        self,
        node: Node,
        instead: Mapping[int, str] | None = None,
        *,
        conjunct: bool = False,
    ) -> str:
        """Return a tree as an expression; ``instead`` renames cells.

        What is to stand beside ``&&`` is a ``conjunct``.
        """
        return _within(self._write(node, instead or {}), 2 if conjunct else 0)

    def _write(self, node: Node, instead: Mapping[int, str]) -> tuple[str, int]:
        """Return an expression and how closely its outermost operator binds."""
        match node:
            case Literal(value, kind):
                return self.literal(value, kind), _CLOSED if value >= 0 else 0
            case Cell(position):
                return instead.get(position, self.cells[position]), _CLOSED
            case Apply(operator, arguments):
                return self._apply(operator, [self._write(a, instead) for a in arguments], node)
            case _:
                message = f"{type(node).__name__} is not ground"
                raise ValueError(message)

    def _apply(self, operator: str, parts: list[tuple[str, int]], node: Apply) -> tuple[str, int]:
        match operator:
            case "not":  # "!!" is a word of its own
                return f"!{_within(parts[0], _CLOSED)}", _UNARY
            case "implies":
                return f"!{_within(parts[0], _CLOSED)} || {_within(parts[1], 1)}", 1
            case "ite":
                texts = [_within(part, 2) for part in parts]
                return "({} -> {} : {})".format(*texts), _CLOSED
            case "just":
                return f"{_within(parts[0], 5)} + 1", 5
            case "min" | "max":
                return f"{operator.upper()}({parts[0][0]}, {parts[1][0]})", _CLOSED
            case "//" if not self._plainly(node.arguments[1], 1):
                raise ValueError("Promela divides by what may be no positive number")
            case "//" if not self._plainly(node.arguments[0], 0):
                return f"FLOOR({parts[0][0]}, {parts[1][0]})", _CLOSED
        sign, level = _INFIX[operator]
        # a - (b - c) needs its brackets, and so does (a == b) == c to be read at all
        inner = level if operator in ("and", "or", "+", "*") else level + 1
        first = level if operator in ("-", "//") else inner
        texts = [_within(part, inner if at else first) for at, part in enumerate(parts)]
        return f" {sign} ".join(texts), level

    def _plainly(self, node: Node, low: int) -> bool:
        """Say whether the declared ranges alone tell that a value is at least ``low``."""
        inside = bounds(self.model, node)
        return inside is not None and inside[0] >= low


def _within(part: tuple[str, int], level: int) -> str:
    """Return an expression, in brackets if it binds less closely than ``level``."""
    text, own = part
    return text if own >= level else f"({text})"


def declared(cell: CellInfo) -> str:
    """Return the smallest of Promela's types that holds a cell."""
    if isinstance(cell.type, Boolean):
        return "bool"
    if cell.low >= 0 and cell.high < 1 << 8:
        return "byte"
    return "short" if -(1 << 15) <= cell.low and cell.high < 1 << 15 else "int"
