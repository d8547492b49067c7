"""Promela: a model as one process with one loop, for Spin.

The state of the process is the state of the model and nothing else: one variable a cell, no
channel, and a program counter that only knows the loop. So Spin has to count what we count.
Each step is a ``d_step``: its guards are asked and its effects done in one indivisible move.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from enum import Enum

from fivestate.checker.export.bounds import bounds
from fivestate.checker.export.promela_words import Words, declared
from fivestate.checker.export.simultaneous import sequenced
from fivestate.checker.export.substitute import behind
from fivestate.spec.language.ground import fold
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.steps import Step
from fivestate.spec.language.tracing import Action
from fivestate.spec.language.trees import TRUE, Apply, Boolean, Integer, Literal, Node

_INSIDE = " " * 8
_WIDTH = 100
_STEP = re.compile(r"  :: d_step \{ /\* (.*) \*/$")


def export(model: Model, properties: bool = False) -> str:  # noqa: FBT001, FBT002 -- an option
    """Return ``model`` as Promela.

    A value that leaves its declared range is an assertion violated, always. With ``properties``
    an invariant is too, asked once in every state, and a step property, asked in every step.
    """
    words = Words(model)
    body = [*_variables(words), "", f"active proctype {words.process}()", "{"]
    body += ["end:  /* it may stop in any state */", "  do"]
    for action in model.actions:
        body += _action(words, action, properties=properties)
    if properties:
        body += _invariants(words)
    body += ["  od", "}", ""]
    return "\n".join([*_head(model), *words.definitions("\n".join(body)), *body])


def steps_by_line(text: str) -> dict[int, str]:
    """Return the line on which each step of an exported model stands, and how it is written."""
    found = ((number, _STEP.match(line)) for number, line in enumerate(text.splitlines(), 1))
    return {number: step[1] for number, step in found if step is not None}


def _head(model: Model) -> list[str]:
    lines = [f"/* {model.name}: {_comment(model.says)}"]
    lines += [f" * {name}: {_setting(value)}" for name, value in sorted(model.settings.items())]
    if model.start:
        lines.append(f" * It starts where {_comment(model.start_says)}.")
    return [*lines, " */", ""]


def _variables(words: Words) -> Iterator[str]:
    model = words.model
    for name, variable in model.variables.items():
        yield ""
        yield f"/* {name}: {_comment(variable.says)} */"
        for at, cell in enumerate(model.cells):
            if cell.variable == name:
                value = words.literal(model.initial[at], cell.type)
                yield f"{declared(cell)} {words.cells[at]} = {value};"
    saved = max((len(sequenced(step.updates).saved) for step in model.steps), default=0)
    if saved:
        # Spin refuses hidden variables in a breadth-first search
        yield ""
        yield "/* Values from before a step; 0 between steps, so that they add no states. */"
        yield from (f"int {words.saved(number)} = 0;" for number in range(saved))


def _action(words: Words, action: Action, *, properties: bool) -> Iterator[str]:
    yield ""
    yield f"  /* {action.clause} {action.name}: {_comment(action.sentence)} */"
    for step in words.model.steps:
        if step.action is action and step.possible:
            yield f"  :: d_step {{ /* {step.label} */"
            yield from _guards(words, step)
            yield from _asserted(words, "in_range", _ranges(words.model, step))
            if properties:
                for name, conditions in _step_properties(words.model, step):
                    yield from _asserted(words, name, conditions)
            for line in _assignments(words, step):
                yield from _wrapped(f"{line};")
            yield "     }"


def _guards(words: Words, step: Step) -> Iterator[str]:
    asked = [(name, condition) for name, condition in step.guards if condition != TRUE]
    for number, (name, condition) in enumerate(asked, 1):
        # the operator ends the line: where a statement could end, Spin takes it as ended
        glue = "&&" if number < len(asked) else "->"
        yield from _wrapped(f"{words.text(condition, conjunct=True)} {glue}", name)
    if not asked:
        yield f"{_INSIDE}true ->"


def _assignments(words: Words, step: Step) -> Iterator[str]:
    order = sequenced(step.updates)
    saved = {at: words.saved(number) for number, at in enumerate(order.saved)}
    for at, name in saved.items():
        yield f"{name} = {words.cells[at]}"
    instead: dict[int, str] = {}
    for at, node in order.updates:
        yield f"{words.cells[at]} = {words.text(node, instead)}"
        if at in saved:
            instead[at] = saved[at]
    for name in saved.values():
        yield f"{name} = 0"


def _ranges(model: Model, step: Step) -> Iterator[Node]:
    """Yield what must be true for no value to leave its range, unless it is plain."""
    for at, node in step.updates:
        cell = model.cells[at]
        known = bounds(model, node)
        if isinstance(cell.type, Integer):
            if known is None or known[0] < cell.low:
                yield Apply(">=", (node, Literal(cell.low, Integer())), Boolean())
            if known is None or known[1] > cell.high:
                yield Apply("<=", (node, Literal(cell.high, Integer())), Boolean())


def _step_properties(model: Model, step: Step) -> Iterator[tuple[str, list[Node]]]:
    updates = dict(step.updates)
    for claim in model.claims:
        if claim.kind is Kind.STEP:
            cases = model.cases(claim, step.during)
            yield claim.name, [behind(case.condition, updates) for case in cases]


def _asserted(words: Words, name: str, conditions: Iterable[Node]) -> Iterator[str]:
    for condition in conditions:
        if condition != TRUE:
            yield from _wrapped(f"assert({words.text(condition)});", name)


def _invariants(words: Words) -> Iterator[str]:
    """Yield a move for each invariant that only a state which breaks it can make."""
    for claim in words.model.claims:
        if claim.kind is Kind.INVARIANT:
            cases = [case.condition for case in words.model.cases(claim)]
            broken = [fold("not", (case,), Boolean()) for case in cases if case != TRUE]
            if broken:
                yield ""
                yield f"  /* {claim.clause} {claim.name}: {_comment(claim.sentence)} */"
                yield "  :: d_step {"
                yield from _wrapped(" ||\n".join(map(words.text, broken)) + " ->")
                yield f"{_INSIDE}assert(false);"
                yield "     }"


def _wrapped(text: str, note: str = "") -> Iterator[str]:
    """Break long lines, never before an operator (see ``_guards``), and add a comment."""
    glued = re.sub(r" (&&|\|\||->|[=!<>]=|[-+*/<>:])(?=\s|$)", "\0\\1", text)
    if note:
        glued += f" /*\0{note}\0*/"
    for line in glued.splitlines():
        for part in textwrap.wrap(
            line,
            _WIDTH,
            initial_indent=_INSIDE,
            subsequent_indent=f"{_INSIDE}   ",
            break_long_words=False,
            break_on_hyphens=False,
        ):
            yield part.replace("\0", " ")


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


def _setting(value: object) -> str:
    match value:
        case Enum():
            return value.name
        case dict():
            entries = (f"{_setting(k)} {_setting(v)}" for k, v in value.items())
            return ", ".join(entries) or "nothing"
        case tuple():
            return " ".join(_setting(member) for member in value)
        case _:
            return str(value)
