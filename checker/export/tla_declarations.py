"""TLA+'s declarations: sets, tables and variables, what they may be and what they are at first."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

from fivestate.checker.export.tla_expressions import Expressions
from fivestate.spec.language.declare import Variable
from fivestate.spec.language.settings import table_key
from fivestate.spec.language.trees import Boolean, Bound, Constant, Enumerated, Maybe


def definitions(words: Expressions) -> Iterator[str]:
    """Yield the sets of values, and the tables that a model fixes."""
    model = words.model
    for enum, name in words.enums.items():
        members = ", ".join(f'"{member.name}"' for member in enum)
        yield f"{name} == {{{members}}}"
    for sort, name in words.sorts.items():
        if sort.low is not None and sort.high is not None:
            yield f"{name} == {words.text(sort.low, 9)}..{words.text(sort.high, 9)}"
    tables = {c.name: c for c in model.machine.constants if c.indices}
    for constant in tables.values():
        yield from _table(words, constant)


def _table(words: Expressions, constant: Constant) -> Iterator[str]:
    setting = words.model.settings[constant.name]
    entries = setting.items() if isinstance(setting, Mapping) else ()
    kinds = [index.type for index in constant.indices]
    enums = [words.enums[kind.enum] for kind in kinds if isinstance(kind, Enumerated)]
    own = [words.bound(f"{name[0].lower()}{at}") for at, name in enumerate(enums, 1)]
    over = ", ".join(f"{n} \\in {enum}" for n, enum in zip(own, enums, strict=True))
    yield f"{words.constants[constant.name]} == [{over} |->"
    for key, value in entries:
        codes = zip(own, table_key(key), kinds, strict=True)
        where = " /\\ ".join(f"{n} = {words.literal(code, kind)}" for n, code, kind in codes)
        yield f"    IF {where} THEN {words.literal(int(value), constant.type)} ELSE"
    yield f"    {words.literal(0, constant.type)}]"


def variables(words: Expressions) -> Iterator[str]:
    """Yield the variables, each with what it means."""
    declared = words.model.variables
    yield "VARIABLES"
    for number, (name, own) in enumerate(words.variables.items(), 1):
        comma = "," if number < len(declared) else ""
        yield f"    {own}{comma}  \\* {ascii_only(declared[name].says)}"
    yield ""
    yield f"vars == <<{', '.join(words.variables.values())}>>"


def type_ok(words: Expressions) -> Iterator[str]:
    """Yield the invariant that every variable keeps to its range."""
    yield "\\* No variable leaves its declared range."
    yield "TypeOK =="
    for name, variable in words.model.variables.items():
        yield f"    /\\ {_type(words, words.variables[name], variable)}"


def _type(words: Expressions, name: str, variable: Variable) -> str:
    bounds = [sort.named(sort.letter) for sort in variable.over]
    declared = variable.range
    if declared is not None:
        values = f"{words.text(declared.low, 9)}..{words.text(declared.high, 9)}"
        cell = f"{name}{words.index(tuple(bounds))} \\in {values}"
        return f"\\A {words.over(*bounds)} : {cell}" if bounds else cell
    match variable.type:
        case Boolean():
            values = "BOOLEAN"
        case Enumerated(enum):
            values = words.enums[enum]
        case Maybe(sort):
            values = f"({words.sorts[sort]} \\cup {{NOTHING}})"
        case other:
            message = f"{name}: {other} is not the type of a variable"
            raise ValueError(message)
    domain = " \\X ".join(words.sorts[sort] for sort in variable.over)
    return f"{name} \\in [{domain} -> {values}]" if domain else f"{name} \\in {values}"


def initial(words: Expressions) -> Iterator[str]:
    """Yield the state in which the model starts."""
    model = words.model
    if model.start:
        yield from note(f"It starts where {model.start_says}.")
    yield "Init =="
    for name, variable in model.variables.items():
        own = words.variables[name]
        bounds = _elements(variable)
        if not variable.over:
            value = words.literal(model.initial[model.positions[name, ()]], variable.type)
            yield f"    /\\ {own} = {value}"
        elif model.start:
            yield f"    /\\ {own} = [{words.over(*bounds)} |->"
            yield from (f"        {line}" for line in _cells(words, name, variable))
        else:
            value = words.text(variable.initial_at(*bounds))
            yield f"    /\\ {own} = [{words.over(*bounds)} |-> {value}]"


def _elements(variable: Variable) -> list[Bound]:
    """Return a name for the element of each sort that indexes a variable."""
    names: list[str] = []
    for sort in variable.over:
        names.append(sort.letter if sort.letter not in names else f"{sort.letter}_other")
    return [sort.named(name) for name, sort in zip(names, variable.over, strict=True)]


def _cells(words: Expressions, name: str, variable: Variable) -> Iterator[str]:
    """Yield the values of an array's cells in the state where the model starts."""
    model, elements = words.model, _elements(variable)
    cells = [at for at, cell in enumerate(model.cells) if cell.variable == name]
    for at in cells[:-1]:
        codes = zip(elements, model.cells[at].indices, strict=True)
        where = " /\\ ".join(f"{words.text(e)} = {words.literal(c, e.type)}" for e, c in codes)
        yield f"IF {where} THEN {words.literal(model.initial[at], variable.type)} ELSE"
    yield f"{words.literal(model.initial[cells[-1]], variable.type)}]"


def note(text: str) -> list[str]:
    r"""Return a comment, each line of which starts with ``\*``."""
    return textwrap.wrap(ascii_only(text), 96, initial_indent="\\* ", subsequent_indent="\\* ")


def ascii_only(text: str) -> str:
    """Return the text without its Chinese terms: older parsers of TLA+ read ASCII only."""
    text = re.sub(r"\s*\([^()]*[^\x00-\x7f][^()]*\)", "", text)
    return re.sub(r"[^\x00-\x7f]+", "?", text)
