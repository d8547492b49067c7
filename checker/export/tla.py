"""TLA+: a model as a module and its configuration, for TLC.

Written from the trees before they are grounded, so that quantifiers stay quantifiers and every
action is one operator. A model's sizes are constants in the configuration; its tables are
definitions, for a configuration holds no functions; its switches decide what the module
contains. An atom is a model value, a member of an enum a string.

What may be done is ENABLED. Two things TLA+ does not say: an escape, because from each state only
what *must* happen can be asked, and that a step changes something, because it does not see steps
that do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from fivestate.checker.export.tla_declarations import (
    ascii_only,
    definitions,
    initial,
    note,
    type_ok,
    variables,
)
from fivestate.checker.export.tla_expressions import Expressions
from fivestate.checker.export.tla_steps import action_lines
from fivestate.checker.export.tla_words import Words, holds_maybe
from fivestate.spec.language.model import Model
from fivestate.spec.language.properties import Kind, Property
from fivestate.spec.language.trees import (
    Apply,
    Boolean,
    Node,
    Quantified,
)

_HELP = {
    "Max": "Max(a, b) == IF a >= b THEN a ELSE b",
    "Min": "Min(a, b) == IF a <= b THEN a ELSE b",
    "Sum": "RECURSIVE Sum(_, _)\n"
    "Sum(f, S) == IF S = {} THEN 0\n"
    "             ELSE LET x == CHOOSE e \\in S : TRUE IN f[x] + Sum(f, S \\ {x})",
}
"""What TLA+ lacks and a module defines where it needs it."""


def export(model: Model) -> tuple[str, str]:
    """Return ``model`` as a TLA+ module and as the configuration for TLC.

    The module has to be stored under its own name, which its first line says.
    """
    words = Expressions(model)
    steps = [[*note(f"{a.clause}: {a.sentence}"), *action_lines(words, a)] for a in model.actions]
    claims = [list(_claim(words, claim)) for claim in model.claims]
    written = "\n".join(line for part in (*steps, *claims) for line in part)
    head = f" MODULE {words.module} "
    parts = [
        [f"{head:-^80}", *note(f"{model.name}: {model.says}")],
        ["EXTENDS Integers, FiniteSets"],
        _constants(words),
        [*definitions(words), *(line for name, line in _HELP.items() if f"{name}(" in written)],
        list(variables(words)),
        list(type_ok(words)),
        list(initial(words)),
        *steps,
        list(_next(words)),
        *claims,
        ["=" * 80],
    ]
    module = "\n\n".join("\n".join(part) for part in parts if part)
    return module + "\n", "\n".join(_configuration(words)) + "\n"


def module_name(model: Model) -> str:
    """Return the name under which the module has to be stored, with ``.tla`` behind it."""
    return Words(model).module


def _fixed(words: Expressions) -> Iterator[tuple[str, str]]:
    """Yield what the configuration fixes: names and values."""
    model = words.model
    if holds_maybe(model):
        yield "NOTHING", "NOTHING"
    if model.start:  # its values name atoms
        yield from ((atom, atom) for atom in words.atoms.values())
    for sort, name in words.sorts.items():
        if sort.low is None:
            members = (words.literal(code, sort.element_type()) for code in model.elements(sort))
            yield name, f"{{{', '.join(members)}}}"
    for constant in model.machine.constants:
        if constant.name in words.constants and not constant.indices:
            value = model.constant(constant.name, ())
            yield words.constants[constant.name], words.literal(value, constant.type)


def _constants(words: Expressions) -> list[str]:
    names = list(dict.fromkeys(name for name, _ in _fixed(words)))
    return (
        ["CONSTANTS", *(f"    {name}," for name in names[:-1]), f"    {names[-1]}"] if names else []
    )


def _next(words: Expressions) -> Iterator[str]:
    yield "Next =="
    for action in words.model.actions:
        call = words.call(action.name, [words.bound(b.name) for b in action.parameters])
        over = words.over(*action.parameters)
        yield f"    \\/ \\E {over} : {call}" if over else f"    \\/ {call}"
    yield ""
    yield "Spec == Init /\\ [][Next]_vars"


def _claim(words: Expressions, claim: Property) -> Iterator[str]:
    name = words.claims[claim.name]
    yield from note(f"{claim.clause}: {claim.sentence}")
    body = _quantified(words, claim)
    match claim.kind:
        case Kind.INVARIANT:
            yield f"{name} =="
            yield from (f"    {line}" for line in words.block(body, 4))
        case Kind.STEP:
            lines = words.block(body, 7)
            yield f"{name} =="
            yield f"    [][{lines[0]}"
            yield from (f"       {line}" for line in lines[1:])
            yield "      ]_vars"
        case Kind.WITNESS:
            yield f"\\* It does happen: TLC has to refute No{name}."
            yield f"No{name} =="
            yield from _negated(words, body)
        case _:
            yield "\\* From every such state a way leads out; TLA+ has no formula for that."
            parameters = [words.bound(bound.name) for bound in claim.parameters]
            yield f"{name}({', '.join(parameters)}) ==" if parameters else f"{name} =="
            yield from (f"    {line}" for line in words.block(words.settle(claim.condition), 4))


def _negated(words: Expressions, body: Node) -> list[str]:
    negation = Apply("not", (body,), Boolean())
    return [f"    {line}" for line in words.block(negation, 4)]


def _quantified(words: Expressions, claim: Property) -> Node:
    quantifier = "exists" if claim.kind is Kind.WITNESS else "forall"
    body = words.settle(claim.condition)
    for bound in reversed(claim.parameters):
        body = Quantified(quantifier, bound, body, Boolean())
    return body


def _configuration(words: Expressions) -> Iterator[str]:
    yield f"\\* {ascii_only(words.model.name)}: {ascii_only(words.model.says)}"
    yield "SPECIFICATION Spec"
    yield "CHECK_DEADLOCK FALSE"
    fixed = list(_fixed(words))
    if fixed:
        yield "CONSTANTS"
        yield from (f"    {name} = {value}" for name, value in fixed)
    of = {kind: [c for c in words.model.claims if c.kind is kind] for kind in Kind}
    yield "INVARIANTS"
    yield "    TypeOK"
    yield from (f"    {words.claims[claim.name]}" for claim in of[Kind.INVARIANT])
    if of[Kind.STEP]:
        yield "PROPERTIES"
        yield from (f"    {words.claims[claim.name]}" for claim in of[Kind.STEP])
    for claim in of[Kind.WITNESS]:
        yield f"\\* INVARIANT No{words.claims[claim.name]} \\* to be refuted"
