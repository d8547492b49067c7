"""Conditions that are true less often than a given one: each differs from it in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fivestate.spec.language.trees import (
    Apply,
    Boolean,
    Enumerated,
    Integer,
    Literal,
    Node,
    Quantified,
    Read,
    walk,
)

Variant = tuple[str, Node]
"""What was done, in a few words, and the condition that comes of it."""

_STRICT = {">=": ">", "<=": "<"}
_LOOSE = {strict: loose for loose, strict in _STRICT.items()}


def tightened(node: Node) -> Iterator[Variant]:
    """Yield conditions that imply ``node``."""
    match node:
        case Apply("and", parts):
            yield from _inside(node, parts, tightened)
        case Apply("or", parts):
            yield from _without_one(node, parts)
            yield from _inside(node, [p for p in parts if not _is_plain(p)], tightened)
        case Apply("implies", (condition, consequence)):
            yield "always", consequence
            yield from _inside(node, (consequence,), tightened)
            yield from _inside(node, (condition,), loosened)
        case Apply("not", (inner,)):
            yield from _inside(node, (inner,), loosened)
        case Apply("ite", (_, then, otherwise), Boolean()):
            yield from _inside(node, (then, otherwise), tightened)
        case Apply(">=" | "<=" as operator, sides, kind):
            yield f"{operator} to {_STRICT[operator]}", Apply(_STRICT[operator], sides, kind)
        case Apply(">" | "<" as operator, (one, other), kind):
            step = Literal(1 if operator == ">" else -1, Integer())
            further = Apply("+", (other, step), Integer())
            yield f"{operator} by one more", Apply(operator, (one, further), kind)
        case Quantified("forall" | "exists", _, body):
            yield from _inside(node, (body,), tightened)
        case _:
            pass


def loosened(node: Node) -> Iterator[Variant]:
    """Yield conditions that ``node`` implies."""
    match node:
        case Apply("and", parts):
            yield from _without_one(node, parts)
            yield from _inside(node, [p for p in parts if not _is_plain(p)], loosened)
        case Apply("or", parts):
            yield from _inside(node, parts, loosened)
        case Apply("implies", (condition, consequence)):
            yield from _inside(node, (condition,), tightened)
            yield from _inside(node, (consequence,), loosened)
        case Apply("not", (inner,)):
            yield from _inside(node, (inner,), tightened)
        case Apply(">" | "<" as operator, sides, kind):
            yield f"{operator} to {_LOOSE[operator]}", Apply(_LOOSE[operator], sides, kind)
        case Quantified("forall" | "exists", _, body):
            yield from _inside(node, (body,), loosened)
        case _:
            pass


def _inside(
    node: Node,
    parts: tuple[Node, ...] | list[Node],
    change: Callable[[Node], Iterator[Variant]],
) -> Iterator[Variant]:
    """Yield ``node`` with one of ``parts``, which stand directly in it, changed."""
    for part in parts:
        for says, changed in change(part):
            yield says, _with(node, part, changed)


def _with(node: Node, part: Node, changed: Node) -> Node:
    match node:
        case Apply(_, arguments):
            at = next(at for at, argument in enumerate(arguments) if argument is part)
            return replace(node, arguments=(*arguments[:at], changed, *arguments[at + 1 :]))
        case Quantified():
            return replace(node, body=changed)
        case _:
            raise ValueError(f"{type(node).__name__} has no parts")


def _without_one(node: Apply, parts: tuple[Node, ...]) -> Iterator[Variant]:
    for at, part in enumerate(parts):
        rest = (*parts[:at], *parts[at + 1 :])
        left = rest[0] if len(rest) == 1 else replace(node, arguments=rest)
        yield f"without {_shown(part)}", left


def _is_plain(node: Node) -> bool:
    """Say whether nothing could be tightened inside, as in a member of ``is_in``."""
    return isinstance(node, Apply) and node.operator in ("==", "!=")


def _shown(node: Node) -> str:
    """Return a few words for a condition: a value's name, or the variables that it reads."""
    match node:
        case Apply("==", (_, Literal(value, Enumerated(enum)))):
            return list(enum)[value].name
        case Apply("!=", (_, Literal(value, Enumerated(enum)))):
            return f"not {list(enum)[value].name}"
        case Apply("not", (inner,)):
            return f"not {_shown(inner)}"
        case Apply("and", parts):
            return " & ".join(_shown(part) for part in parts)
        case _:
            names = dict.fromkeys(n.variable for n in walk(node) if isinstance(n, Read))
            return ", ".join(names) or "a case"
