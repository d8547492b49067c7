"""Python source for a model: readable, and compiled by Python itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from fivestate.spec.language.ground import evaluate
from fivestate.spec.language.model import Model
from fivestate.spec.language.steps import Step
from fivestate.spec.language.trees import TRUE, Apply, Boolean, Cell, Integer, Literal, Node

Function = Callable[..., Any]

_INFIX = {"and": " and ", "or": " or ", "+": " + ", "*": " * "}


class Writer:
    """Writes expressions over a model's cells, each cell under its printed name."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.names = [_identifier(cell.name) for cell in model.cells]
        if len(set(self.names)) != len(self.names):
            self.names = [f"{name}_{at}" for at, name in enumerate(self.names)]

    def unpack(self, state: str, after: bool = False) -> str:  # noqa: FBT001, FBT002 -- which state
        """Return the statement that gives every cell its name."""
        names = [f"{name}_" if after else name for name in self.names]
        return f"    ({', '.join(names)},) = {state}"

    def expression(self, node: Node) -> str:
        """Return the tree as a Python expression."""
        match node:
            case Literal(value):
                return str(value)
            case Cell(position, _, after):
                return self.names[position] + ("_" if after else "")
            case Apply("not", (inner,)):
                return f"(not {self.expression(inner)})"
            case Apply("implies", (condition, then)):
                return f"(not {self.expression(condition)} or {self.expression(then)})"
            case Apply("ite", (condition, then, otherwise)):
                parts = [self.expression(part) for part in (then, condition, otherwise)]
                return "({} if {} else {})".format(*parts)
            case Apply("just", (inner,)):
                return f"({self.expression(inner)} + 1)"
            case Apply("min" | "max" as name, arguments):
                return f"{name}({', '.join(self.expression(a) for a in arguments)})"
            case Apply(operator, arguments):
                glue = _INFIX.get(operator, f" {operator} ")
                return f"({glue.join(self.expression(a) for a in arguments)})"
            case _:
                message = f"{type(node).__name__} is not ground"
                raise ValueError(message)


def successors_source(model: Model) -> str:
    """Return the source of ``successors(s, out, bad)``.

    It appends ``(step, state behind it)`` to ``out`` for each step whose guards hold in ``s``, or
    the step's number to ``bad`` if a value would leave its declared range.
    """
    writer = Writer(model)
    lines = ["def successors(s, out, bad):", writer.unpack("s")]
    for number, step in enumerate(model.steps):
        if step.possible:
            lines += _step_lines(writer, number, step)
    return "\n".join(lines) + "\n"


def condition_source(model: Model, name: str, conditions: Iterable[Node], *, step: bool) -> str:
    """Return the source of a function that gives the number of the first false condition, or -1.

    The function takes a state, or for a ``step`` the states before and behind it.
    """
    writer = Writer(model)
    lines = [f"def {name}({'s, t' if step else 's'}):", writer.unpack("s")]
    if step:
        lines.append(writer.unpack("t", after=True))
    for number, condition in enumerate(conditions):
        if condition != TRUE:
            lines.append(f"    if not {writer.expression(condition)}: return {number}")
    return "\n".join([*lines, "    return -1"]) + "\n"


def build(source: str, name: str) -> Function:
    """Compile generated source and return the function it defines."""
    scope: dict[str, Any] = {}
    exec(compile(source, f"<generated {name}>", "exec"), scope)  # noqa: S102 -- our own source
    function: Function = scope[name]
    return function


def _step_lines(writer: Writer, number: int, step: Step) -> list[str]:
    model = writer.model
    conditions = [condition for _, condition in step.guards if condition != TRUE]
    values = list(writer.names)
    checks: list[str] = []
    for position, node in step.updates:
        cell = model.cells[position]
        text = writer.expression(node)
        if isinstance(cell.type, Boolean) and not isinstance(node, Literal | Cell):
            text = f"+{text}"
        values[position] = text
        literal = isinstance(node, Literal) and cell.low <= evaluate(node, ()) <= cell.high
        if isinstance(cell.type, Integer) and not literal:
            checks.append(f"{cell.low} <= {text} <= {cell.high}")
    guard = " and ".join(writer.expression(condition) for condition in conditions) or "True"
    lines = [f"    # {step.label}", f"    if {guard}:"]
    append = f"out.append(({number}, ({', '.join(values)},)))"
    if not checks:
        return [*lines, f"        {append}"]
    return [
        *lines,
        f"        if {' and '.join(checks)}: {append}",
        f"        else: bad.append({number})",
    ]


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")
