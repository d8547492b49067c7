"""Tables of a machine: what it ranges over, what a model fixes, its variables and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fivestate.checker.book import docstrings, mathematics
from fivestate.checker.book.markdown import code, prose, table
from fivestate.checker.book.words import Declared, Words
from fivestate.spec.language.declare import Size, Switch, Table, Variable
from fivestate.spec.language.settings import sort_setting
from fivestate.spec.language.trees import TRUE, Atom, Boolean, Constant, Enumerated, Maybe, Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fivestate.spec.language.machine import Machine
    from fivestate.spec.language.sorts import Sort
    from fivestate.spec.language.trees import Bound, Node, Type


def sorts(machine: Machine, words: Words) -> str:
    """Return the table of what actions and properties range over."""
    return table(
        ("sort", "elements", "meaning"),
        (
            (code(sort.__name__), _elements(sort, words), prose(sort.__doc__ or ""))
            for sort in machine.sorts
        ),
    )


def constants(words: Words) -> str:
    """Return the table of what a model fixes."""
    return table(
        ("constant", "set as", "values", "meaning"),
        (
            (code(_indexed(name, declared)), code(declared.name), _values(declared), declared.says)
            for name, declared in words.constants.items()
        ),
    )


def variables(machine: Machine, words: Words) -> str:
    """Return the table of variables; a ghost is what the machine speaks of but nobody knows."""
    return table(
        ("variable", "values", "at first", "meaning", "ghost"),
        (_variable(variable, words) for variable in machine.state.variables.values()),
    )


def values(machine: Machine) -> Iterator[str]:
    """Return, for each enum that a variable holds, the table of its members."""
    kinds = (variable.type for variable in machine.state.variables.values())
    for enum in dict.fromkeys(kind.enum for kind in kinds if isinstance(kind, Enumerated)):
        says = docstrings.members(enum)
        yield f"{code(enum.__name__)}: {prose(enum.__doc__ or '')}"
        yield table(
            ("value", "meaning"),
            ((code(member.name), prose(says.get(member.name, ""))) for member in enum),
        )


def _variable(variable: Variable, words: Words) -> tuple[str, ...]:
    bounds = tuple(map(_named, variable.over, _letters(variable.over)))
    meaning = variable.says
    if variable.given != TRUE:
        given = mathematics.text(words.spoken(variable.given))
        meaning += f"; in models where {code(given)}"
    return (
        code(mathematics.cell(variable.name, bounds)),
        _domain(variable, words),
        code(mathematics.text(words.spoken(variable.initial_at(*bounds)))),
        meaning,
        "ghost" if variable.ghost else "",
    )


def _domain(variable: Variable, words: Words) -> str:
    match variable.of:
        case Range(low, high):
            return code(f"{_spoken(low, words)} .. {_spoken(high, words)}")
        case _:
            return _type(variable.type)


def _type(kind: Type) -> str:
    match kind:
        case Boolean():
            return code("true, false")
        case Enumerated(enum):
            return code(enum.__name__)
        case Atom(sort):
            return code(sort.__name__)
        case Maybe(sort):
            return code(f"{sort.__name__}, NOTHING")
        case _:
            return "whole numbers"


def _elements(sort: type[Sort], words: Words) -> str:
    if sort.low is not None and sort.high is not None:
        return code(f"{_spoken(sort.low, words)} .. {_spoken(sort.high, words)}")
    setting = code(sort_setting(sort))
    if sort.of is not None:
        members = ", ".join(code(member.name) for member in sort.of)
        return f"those of {members} that {setting} names"
    return f"{code(sort.letter + '0')}, {code(sort.letter + '1')}, …: as many as {setting} says"


def _spoken(node: Node, words: Words) -> str:
    return mathematics.text(words.spoken(node))


def _indexed(name: str, declared: Declared) -> str:
    if isinstance(declared, Switch | Size):
        return name
    return f"{name}[{', '.join(_letters(declared.over))}]"


def _letters(over: tuple[type[Sort], ...]) -> list[str]:
    """Return a name for each index: the letter of its sort, numbered where it comes again."""
    seen: list[str] = []
    for sort in over:
        again = sum(name.startswith(sort.letter) for name in seen)
        seen.append(f"{sort.letter}{again + 1}" if again else sort.letter)
    return seen


def _named(sort: type[Sort], name: str) -> Bound:
    return sort.named(name)


def _values(declared: Declared) -> str:
    match declared:
        case Size(node=Constant(low=low, high=high)) | Table(low=low, high=high):
            return code(f"{low} .. {high}")
        case _:
            return code("true, false")
