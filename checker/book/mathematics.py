"""Trees as mathematics: ``∀ g ∈ Group: free[g] ≥ missing(p, g) + PRIVATE[g]``.

Parentheses stand only where the order of precedence needs them; ``device′[p, g]`` is a cell
behind the step. An operator that the language does not have is the name of a definition.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from fivestate.spec.language.trees import (
    Apply,
    Atom,
    Boolean,
    Bound,
    Cell,
    Constant,
    Enumerated,
    Literal,
    May,
    Maybe,
    Node,
    Quantified,
    Read,
    Took,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 92
"""A line longer than this is broken."""

SENTENCE, IMPLIES, OR, AND, COMPARE, ADD, MULTIPLY, NAME = range(8)
"""Precedence, the loosest first; what starts with a sign (∀, if) is a SENTENCE."""

_INFIX = {
    "implies": ("⇒", IMPLIES, OR, SENTENCE),
    "or": ("∨", OR, AND, AND),
    "and": ("∧", AND, COMPARE, COMPARE),
    "==": ("=", COMPARE, ADD, ADD),
    "!=": ("≠", COMPARE, ADD, ADD),
    "<": ("<", COMPARE, ADD, ADD),
    "<=": ("≤", COMPARE, ADD, ADD),
    ">": (">", COMPARE, ADD, ADD),
    ">=": ("≥", COMPARE, ADD, ADD),
    "+": ("+", ADD, ADD, MULTIPLY),
    "-": ("−", ADD, ADD, MULTIPLY),
    "*": ("·", MULTIPLY, MULTIPLY, NAME),
}
"""For each operator its sign, its level, and the levels its first and its other sides need."""

_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_QUANTIFIERS = {"forall": "∀", "exists": "∃"}


def text(node: Node, least: int = SENTENCE) -> str:
    """Return a tree on one line, in parentheses if it is looser than ``least``."""
    phrase, level = _phrase(node)
    return phrase if level >= least else f"({phrase})"


def lines(node: Node, width: int = WIDTH) -> list[str]:
    """Return a tree on as many lines as it needs; where it is broken, indentation groups."""
    return _block(node, SENTENCE, width)


def cell(name: str, indices: tuple[Node, ...], *, after: bool = False) -> str:
    """Return the name of a variable's cell."""
    shown = ", ".join(text(index) for index in indices)
    return f"{name}{'′' if after else ''}" + (f"[{shown}]" if indices else "")


def _phrase(node: Node) -> tuple[str, int]:
    """Return a tree's text and its level."""
    match node:
        case Literal():
            return _literal(node), NAME
        case Bound(name):
            return name, NAME
        case Constant(name, indices):
            return cell(name, indices), NAME
        case Read(name, indices, _, after):
            return cell(name, indices, after=after), NAME
        case Cell(position, _, after):
            return f"cell{'′' if after else ''}[{position}]", NAME
        case May(action, arguments):
            return f"may {action}({', '.join(map(text, arguments))})", NAME
        case Took(actions):
            names = sorted(actions)
            one = f"step = {names[0]}"
            return one if len(names) == 1 else f"step ∈ {{{', '.join(names)}}}", COMPARE
        case Quantified():
            head, body = _quantified(node)
            match node.quantifier:
                case "count":
                    return f"#{{{head}: {text(body)}}}", NAME
                case "total":
                    return f"Σ({head}: {text(body)})", NAME
                case _:
                    return f"{head}: {text(body)}", SENTENCE
        case Apply(operator, arguments):
            return _applied(operator, arguments)


def _applied(operator: str, arguments: tuple[Node, ...]) -> tuple[str, int]:
    match operator, arguments:
        case "just", (inner,):
            return _phrase(inner)
        case "not", (Apply("or", sides),) if len(one_of := tuple(_gather(sides))) == 1:
            phrase, level = _phrase(one_of[0])
            return phrase.replace("∈", "∉", 1), level
        case "not", (inner,):
            return f"¬{text(inner, NAME)}", NAME
        case "//", (one, other):
            return f"⌊{text(one, MULTIPLY)} / {text(other, NAME)}⌋", NAME
        case "ite", (condition, then, otherwise):
            either = f"if {text(condition, IMPLIES)} then {text(then, IMPLIES)}"
            return f"{either} else {text(otherwise)}", SENTENCE
        case "or", _ if len(gathered := tuple(_gather(arguments))) < len(arguments):
            return _phrase(_either(gathered))
        case "in", (one, *others):
            return f"{text(one, ADD)} ∈ {{{', '.join(map(text, others))}}}", COMPARE
        case _, (one, other) if operator in _MIRRORED and _reads_better_behind(one, other):
            return _applied(_MIRRORED[operator], (other, one))
        case _ if operator in _INFIX:
            sign, level, first, rest = _INFIX[operator]
            shown = [text(side, rest if at else first) for at, side in enumerate(arguments)]
            return f" {sign} ".join(shown), level
        case _, ():
            return operator, NAME
        case _:
            return f"{operator}({', '.join(map(text, arguments))})", NAME


def _reads_better_behind(one: Node, other: Node) -> bool:
    """Say whether ``other`` is what a comparison speaks of, and ``one`` what it is compared with.

    Python asks an element or a size on the right of a comparison first, and mirrors it.
    """
    match one:
        case Apply("just", _) | Bound(type=Atom()) | Constant(indices=()):
            return not isinstance(other, Bound | Constant | Literal)
        case _:
            return False


def _literal(node: Literal) -> str:
    match node.type:
        case Boolean():
            return "true" if node.value else "false"
        case Enumerated(enum):
            return list(enum)[node.value].name
        case Atom(sort):
            return f"{sort.letter}{node.value}"
        case Maybe(sort):
            return f"{sort.letter}{node.value - 1}" if node.value else "NOTHING"
        case _:
            return str(node.value).replace("-", "−")


def _quantified(node: Quantified) -> tuple[str, Node]:
    """Return ``∀ p ∈ Prefix, g ∈ Group`` and the body: one head for quantifiers of one kind."""
    bounds, body = [node.bound], node.body
    while (
        isinstance(body, Quantified)
        and body.quantifier == node.quantifier
        and node.quantifier in _QUANTIFIERS
    ):
        bounds.append(body.bound)
        body = body.body
    ranges = ", ".join(f"{bound.name} ∈ {bound.sort.__name__}" for bound in bounds)
    sign = _QUANTIFIERS.get(node.quantifier)
    return f"{sign} {ranges}" if sign else ranges, body


def _gather(arguments: tuple[Node, ...]) -> Iterator[Node]:
    """Join ``x = A ∨ x = B`` into ``x ∈ {A, B}``."""
    for subject, group in groupby(arguments, key=_subject):
        run = list(group)
        if subject is None or len(run) == 1:
            yield from run
        else:
            values = (node.arguments[1] for node in run if isinstance(node, Apply))
            yield Apply("in", (subject, *values), Boolean())


def _subject(node: Node) -> Node | None:
    match node:
        case Apply("==", (subject, Literal())):
            return subject
        case _:
            return None


def _either(arguments: tuple[Node, ...]) -> Node:
    return arguments[0] if len(arguments) == 1 else Apply("or", arguments, Boolean())


def _block(node: Node, least: int, width: int) -> list[str]:
    """Return a tree on one line if it fits, else broken at its outermost operator."""
    line = text(node, least)
    if len(line) <= width:
        return [line]
    match node:
        case Apply("or", arguments) if len(gathered := tuple(_gather(arguments))) < len(arguments):
            return _block(_either(gathered), least, width)
        case Apply(("and" | "or") as operator, arguments):
            sign, _, least, _ = _INFIX[operator]
            return [
                line
                for argument in arguments
                for line in _hang(f"{sign} ", _block(argument, least, width - 2))
            ]
        case Apply("ite", _):
            return _choice(node, width)
        case Apply("not", (inner,)):
            return _hang("¬ ", _block(inner, NAME, width - 2))
        case Apply(operator, (one, other)) if operator in _INFIX:
            sign, _, first, rest = _INFIX[operator]
            return [
                *_block(one, first, width),
                *_hang(f"{sign} ", _block(other, rest, width - 2)),
            ]
        case Quantified(quantifier) if quantifier in _QUANTIFIERS:
            head, body = _quantified(node)
            return [f"{head}:", *_hang("  ", _block(body, SENTENCE, width - 2))]
        case _:
            return [line]


def _choice(node: Node, width: int) -> list[str]:
    """Return ``if … then … else if … then … else …``, each part on lines of its own."""
    block: list[str] = []
    head = "if "
    while isinstance(node, Apply) and node.operator == "ite":
        condition, then, node = node.arguments
        block += _hang(head, _block(condition, IMPLIES, width - len(head)))
        block += _hang("then ", _block(then, IMPLIES, width - 5))
        head = "else if "
    return block + _hang("else ", _block(node, SENTENCE, width - 5))


def _hang(head: str, block: list[str]) -> list[str]:
    """Put ``head`` before the first line and as much space before the others."""
    return [f"{' ' * len(head) if at else head}{line}" for at, line in enumerate(block)]
