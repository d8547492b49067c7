"""Clauses: each action, each property, with its normative sentence, in mathematics."""

from __future__ import annotations

import inspect
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

from fivestate.checker.book import mathematics
from fivestate.checker.book.markdown import anchor, code, fenced, paragraphs, prose, table
from fivestate.spec.language.properties import Kind, Property
from fivestate.spec.language.tracing import EVERY, docstring
from fivestate.spec.language.trees import TRUE, Bound, Quantified, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fivestate.checker.book.definitions import Definition
    from fivestate.checker.book.words import Words
    from fivestate.spec.language.machine import Refinement
    from fivestate.spec.language.tracing import Action, Effect
    from fivestate.spec.language.trees import Node

KINDS = {
    Kind.INVARIANT: "always",
    Kind.STEP: "at every step",
    Kind.WITNESS: "is reached",
    Kind.ESCAPE: "is left again",
}
"""What is claimed of the formula, in the words of the headings."""

PERMISSION = "P"
"""The letter of what has to be possible."""

_LETTERS = "SHIALWPRD"


def order(clause: str) -> tuple[int, int]:
    """Return where a clause stands in the book, by its letter and then by its number."""
    letter, number = clause.split("-")
    return (_LETTERS + letter).index(letter), int(number)


def action(traced: Action, words: Words) -> Iterator[str]:
    """Return the paragraphs of an action."""
    head = signature(traced.name, traced.parameters)
    yield f"{anchor(traced.clause)}\n#### {traced.clause} {head}"
    yield f"**{prose(traced.sentence)}**"
    yield from paragraphs(traced.reasons)
    yield f"{_declared(traced)} {_given(traced.given, words)}".strip()
    width = max((len(guard.name) for guard in traced.guards), default=0)
    lines = ["guards"]
    for guard in traced.guards:
        lines += _hung(f"  {guard.name:<{width}}  ", words.spoken(guard.condition))
    if not traced.guards:
        lines.append("  none")
    yield fenced([*lines, "effects", *effects(traced.effects, words)])


def effects(assigned: Iterable[Effect], words: Words) -> Iterator[str]:
    """Return the lines of simultaneous effects, those of one ``each`` together."""
    for over, group in groupby(assigned, key=lambda effect: effect.over):
        indent = "  "
        if over:
            ranges = ", ".join(f"{bound.name} ∈ {bound.sort.__name__}" for bound in over)
            yield f"  for all {ranges}"
            indent = "    "
        for effect in group:
            cell = mathematics.cell(effect.variable, effect.indices)
            yield from _hung(f"{indent}{cell} ≔ ", words.spoken(effect.value))


def claims(listed: Iterable[Property], words: Words) -> Iterator[str]:
    """Return the paragraphs of properties, in the order of their clauses."""
    ordered = sorted(listed, key=lambda each: order(each.clause))
    for (clause, name), group in groupby(ordered, key=lambda each: (each.clause, stem(each))):
        claim, *others = group
        permission = clause.startswith(PERMISSION)
        before = f"{anchor(clause)}\n" if permission else ""
        head = signature(name, claim.parameters)
        says = "is possible" if permission else KINDS[claim.kind]
        yield f"{before}#### {clause} {head}: {says}"
        yield f"**{prose(claim.sentence)}**"
        yield from paragraphs(claim.reasons)
        if claim.given != TRUE:
            yield _given(claim.given, words)
        yield fenced(_ways([claim, *others], words) if claim.way else formula(claim, words))


def permissions(listed: Iterable[Property]) -> str:
    """Return the table of what has to be possible: each sentence, and in which ways."""
    ordered = sorted(listed, key=lambda each: order(each.clause))
    groups = (list(group) for _, group in groupby(ordered, key=lambda each: each.clause))
    return table(
        ("clause", "is possible", "each of"),
        (
            (
                f"[{group[0].clause}](#{group[0].clause.lower()})",
                prose(group[0].sentence),
                ", ".join(claim.way.replace("_", " ") for claim in group),
            )
            for group in groups
        ),
    )


def stem(claim: Property) -> str:
    """Return the name of the function that a property was written as."""
    return claim.name.removesuffix(f"_{claim.way}") if claim.way else claim.name


def _ways(listed: list[Property], words: Words) -> list[str]:
    """Return the lines of what one sentence asks for, each under its name."""
    width = max(len(claim.way) for claim in listed)
    lines: list[str] = []
    for claim in listed:
        used = {node for node in walk(claim.condition) if isinstance(node, Bound)}
        bounds = tuple(bound for bound in claim.parameters if bound in used)
        block = formula(replace(claim, parameters=bounds), words)
        head = f"{claim.way:<{width}}  "
        lines += [f"{' ' * len(head) if at else head}{line}" for at, line in enumerate(block)]
    return lines


def formula(claim: Property, words: Words) -> list[str]:
    """Return the lines of a property, its parameters quantified as its kind reads them."""
    node = words.spoken(claim.condition)
    quantifier = "exists" if claim.kind is Kind.WITNESS else "forall"
    for bound in reversed(claim.parameters):
        node = Quantified(quantifier, bound, node, node.type)
    return mathematics.lines(node)


def refinement(claim: Refinement, words: Words) -> Iterator[str]:
    """Return the paragraphs of a refinement: the simpler machine's variables, computed."""
    simple = claim.abstract.name
    yield f"{anchor(claim.clause)}\n#### {claim.clause} {claim.name}: refines {simple}"
    yield f"**{prose(claim.sentence)}**"
    yield fenced([simple, *effects(claim.effects, words)])


def definition(defined: Definition, words: Words) -> Iterator[str]:
    """Return the lines of a definition: what its name stands for, and its sentence."""
    names = ", ".join(bound.name for bound in defined.parameters)
    head = f"{defined.name}({names})" if names else defined.name
    yield from _hung(f"{head} ≔ ", words.spoken(defined.body, defined))
    if defined.sentence:
        yield f"    {' '.join(defined.sentence.split()).replace('``', '')}"


def function(clause: str, checked: Callable[..., object]) -> Iterator[str]:
    """Return the paragraphs of a clause that is a pure function of the source."""
    names = ", ".join(inspect.signature(checked).parameters)
    sentence, reasons = docstring(checked)
    yield f"{anchor(clause)}\n### {clause} {checked.__name__}({names})"
    yield f"**{prose(sentence)}**"
    yield from paragraphs(reasons.partition("Args:")[0])
    yield f"Written in {place(checked.__module__)}."


def signature(name: str, parameters: Iterable[Bound]) -> str:
    """Return ``admit(r: Request, p: Prefix)``, or the name alone where there is no parameter."""
    shown = ", ".join(f"{bound.name}: {bound.sort.__name__}" for bound in parameters)
    return f"{name}({shown})" if shown else name


def place(module: str) -> str:
    """Return the file of a module, as code: ``spec/sequence.py``."""
    path = module.removeprefix("fivestate.").replace(".", "/")
    return code(f"{path}.py")


def _hung(head: str, node: Node) -> Iterator[str]:
    """Yield a tree behind ``head``; where it takes more lines, they hang below the first."""
    room = max(mathematics.WIDTH - len(head), 40)
    for at, line in enumerate(mathematics.lines(node, room)):
        yield f"{' ' * len(head) if at else head}{line}"


def _declared(traced: Action) -> str:
    match traced.state:
        case Enum():
            declared = f"Declared for {traced.state.name}"
        case str() if traced.state == EVERY:
            declared = "Declared for every state"
        case _:
            declared = f"Declared for the state {code(traced.state)}"
    marks = ", ".join(mark.name for mark in traced.marks)
    return f"{declared}; marks {marks}." if marks else f"{declared}."


def _given(condition: Node, words: Words) -> str:
    if condition == TRUE:
        return ""
    return f"In models where {code(mathematics.text(words.spoken(condition)))}."
