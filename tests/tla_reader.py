"""A reader of the TLA+ we write: enough of the language to search what a module says.

TLC is not at hand everywhere; this reads the text, not the trees it was written from, with a
parser that others maintain. It is strict where TLC is: a name may not hide another, values of
different kinds are not compared, an action gives every variable exactly one next value.
"""

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

tree_sitter: Any = pytest.importorskip("tree_sitter")
grammar: Any = pytest.importorskip("tree_sitter_tlaplus")

Names = Mapping[str, Any]

ARITHMETIC: dict[str, Callable[[int, int], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "\\div": lambda a, b: a // b,
    "..": lambda a, b: frozenset(range(a, b + 1)),
}
SETS: dict[str, Callable[[Any, Any], Any]] = {
    "\\in": lambda a, b: a in b,
    "\\cup": lambda a, b: a | b,
    "\\X": lambda a, b: frozenset(itertools.product(a, b)),
}


@dataclass(frozen=True)
class Searched:
    """What a search of a module has found."""

    distinct: int
    transitions: int
    depth: int
    firings: Counter[str]
    violated: set[str]
    refuted: set[str]


def inside(node: Any) -> list[Any]:
    """Return what a node is made of, without comments and punctuation."""
    return [child for child in node.children if child.is_named and child.type != "comment"]


def text(node: Any) -> str:
    """Return a node as it stands in the module."""
    return str(node.text.decode())


def unchanged(node: Any) -> list[str]:
    """Return the variables that stand between ``<<`` and ``>>``."""
    return [text(part) for part in inside(node) if part.type == "identifier_ref"]


def truth(value: Any) -> bool:
    """Return a value that has to be true or false."""
    assert isinstance(value, bool)
    return value


def constant(value: str) -> Any:
    """Return a value of the configuration; what is no literal is a model value."""
    if value.startswith("{"):
        return frozenset(constant(part.strip()) for part in value[1:-1].split(","))
    if value.startswith('"'):
        return value[1:-1]
    if value in ("TRUE", "FALSE"):
        return value == "TRUE"
    return int(value) if value.lstrip("-").isdigit() else ("model value", value)


class Module:
    """A module with its configuration."""

    def __init__(self, module: str, configuration: str) -> None:
        with warnings.catch_warnings(action="ignore"):  # the grammar is older than the parser
            parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))
        root = parser.parse(module.encode()).root_node
        assert not root.has_error
        self.variables: list[str] = []
        self.operators: dict[str, tuple[list[str], Any]] = {}
        declared: list[str] = []
        for part in inside(inside(root)[0]):
            names = [text(child) for child in inside(part) if child.type == "identifier"]
            if part.type == "variable_declaration":
                self.variables = names
            elif part.type == "constant_declaration":
                declared = names
            elif part.type == "operator_definition":
                assert names[0] not in self.operators
                self.operators[names[0]] = names[1:], inside(part)[-1]
        lines = self._section(configuration, "CONSTANTS")
        fixed = dict(line.split(" = ") for line in lines)
        self.constants = {name: constant(value) for name, value in fixed.items()}
        assert list(self.constants) == declared
        self.invariants = self._section(configuration, "INVARIANTS")
        self.properties = self._section(configuration, "PROPERTIES")
        self.witnesses = re.findall(r"\\\* INVARIANT (\w+)", configuration)
        self._taken = {*self.variables, *self.constants, *self.operators}
        for parameters, _ in self.operators.values():
            assert not self._taken & {*parameters}

    @staticmethod
    def _section(configuration: str, head: str) -> list[str]:
        found = re.search(rf"^{head}\n((?:    .*\n)*)", configuration, re.MULTILINE)
        return [line.strip() for line in found[1].splitlines()] if found else []

    def search(self) -> Searched:
        """Search every state breadth first, and judge what the configuration asks for."""
        steps = {name: self._step_formula(name) for name in self.properties}
        first = self._first()
        seen = {self._key(first)}
        level, depth, firings = [first], -1, Counter[str]()
        violated: set[str] = set()
        refuted: set[str] = set()
        while level:
            depth, reached = depth + 1, []
            for state in level:
                violated |= {name for name in self.invariants if not self._holds(name, state)}
                refuted |= {name for name in self.witnesses if not self._holds(name, state)}
                for action, after in self._successors(state):
                    firings[action] += 1
                    violated |= {
                        name
                        for name, formula in steps.items()
                        if not self._truth(formula, {}, state, after)
                    }
                    if self._key(after) not in seen:
                        seen.add(self._key(after))
                        reached.append(after)
            level = reached
        return Searched(len(seen), firings.total(), depth, firings, violated, refuted)

    def _step_formula(self, name: str) -> Any:
        step = next(n for n in inside(self.operators[name][1]) if n.type == "step_expr_or_stutter")
        return inside(step)[0]

    def _holds(self, name: str, state: Names) -> bool:
        return self._truth(self.operators[name][1], {}, state)

    def _key(self, state: Names) -> tuple[Any, ...]:
        values = (state[name] for name in self.variables)
        return tuple(tuple(v.items()) if isinstance(v, dict) else v for v in values)

    def _first(self) -> Names:
        conjuncts = (inside(item)[-1] for item in inside(self.operators["Init"][1]))
        pairs = (inside(conjunct) for conjunct in conjuncts)
        state = {text(name): self._value(value, {}, {}) for name, _, value in pairs}
        assert list(state) == self.variables
        return state

    def _successors(self, state: Names) -> Iterator[tuple[str, Names]]:
        for item in inside(self.operators["Next"][1]):
            call = inside(item)[-1]
            if call.type == "bounded_quantification":
                for names in self._bindings(call, {}, state, None):
                    yield from self._step(inside(call)[-1], names, state)
            else:
                yield from self._step(call, {}, state)

    def _step(self, call: Any, names: Names, state: Names) -> Iterator[tuple[str, Names]]:
        name, *arguments = inside(call) if call.type == "bound_op" else [call]
        parameters, body = self.operators[text(name)]
        values = [self._value(argument, names, state) for argument in arguments]
        names = dict(zip(parameters, values, strict=True))
        after: dict[str, Any] = {}
        for conjunct in (inside(item)[-1] for item in inside(body) if item.type == "conj_item"):
            parts = inside(conjunct)
            if conjunct.type == "bound_prefix_op" and text(parts[0]) == "UNCHANGED":
                given = {variable: state[variable] for variable in unchanged(parts[1])}
            elif parts and parts[0].type == "bound_postfix_op":
                given = {text(inside(parts[0])[0]): self._value(parts[2], names, state)}
            elif self._truth(conjunct, names, state):
                continue
            else:
                return
            assert not after.keys() & given.keys()
            after |= given
        assert {*after} == {*self.variables}
        yield text(name), after

    def _bindings(
        self,
        node: Any,
        names: Names,
        state: Names,
        after: Names | None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the names around ``node`` with a choice of what it binds itself."""
        own: list[str] = []
        sets: list[list[Any]] = []
        for bound in (child for child in inside(node) if child.type == "quantifier_bound"):
            *identifiers, _, elements = inside(bound)
            own += [text(identifier) for identifier in identifiers]
            sets += [sorted(self._value(elements, names, state, after), key=repr)] * len(
                identifiers
            )
        assert not {*own} & {*names, *self._taken}
        for choice in itertools.product(*sets):
            yield {**names, **dict(zip(own, choice, strict=True))}

    def _truth(self, node: Any, names: Names, state: Names, after: Names | None = None) -> bool:
        return truth(self._value(node, names, state, after))

    def _value(self, node: Any, names: Names, state: Names, after: Names | None = None) -> Any:
        def value(child: Any) -> Any:
            return self._value(child, names, state, after)

        parts = inside(node)
        match node.type:
            case "parentheses" | "conj_item" | "disj_item":
                return value(parts[-1])
            case "conj_list":
                return all(truth(value(part)) for part in parts)
            case "disj_list":
                return any(truth(value(part)) for part in parts)
            case "nat_number":
                return int(text(node))
            case "string":
                return text(node)[1:-1]
            case "boolean":
                return text(node) == "TRUE"
            case "boolean_set":
                return frozenset({True, False})
            case "identifier_ref":
                return self._named(text(node), names, state, after)
            case "bound_postfix_op":  # a prime
                assert after is not None
                return after[text(parts[0])]
            case "bound_prefix_op" if text(parts[0]) == "UNCHANGED":
                assert after is not None
                return all(state[name] == after[name] for name in unchanged(parts[1]))
            case "bound_prefix_op" if text(parts[0]) == "ENABLED":
                return any(True for _ in self._step(parts[1], names, state))
            case "bound_prefix_op":
                inner = value(parts[1])
                return not truth(inner) if text(parts[0]) == "~" else -inner
            case "bound_infix_op":
                return self._infix(parts, value)
            case "if_then_else":
                return value(parts[1] if truth(value(parts[0])) else parts[2])
            case "bound_op":
                return self._call(parts, names, state, after)
            case "finite_set_literal":
                return frozenset(value(part) for part in parts)
            case "function_evaluation":
                return value(parts[0])[arguments([value(part) for part in parts[1:]])]
            case "except":
                return self._except(parts, value)
            case "set_of_functions":
                return tuple(value(part) for part in (parts[0], parts[2]))
        bodies = self._bindings(node, names, state, after)
        if node.type == "bounded_quantification":
            truths = (self._truth(parts[-1], inner, state, after) for inner in bodies)
            return all(truths) if text(parts[0]) == "\\A" else any(truths)
        own = len([part for part in parts if part.type == "quantifier_bound"])
        if node.type == "function_literal":
            return {
                arguments(list(inner.values())[-own:]): self._value(parts[-1], inner, state, after)
                for inner in bodies
            }
        assert node.type == "set_filter", node.type
        return frozenset(
            list(inner.values())[-1]
            for inner in bodies
            if self._truth(parts[-1], inner, state, after)
        )

    def _named(self, name: str, names: Names, state: Names, after: Names | None) -> Any:
        for known in (names, state, self.constants):
            if name in known:
                return known[name]
        parameters, body = self.operators[name]
        assert not parameters
        return self._value(body, {}, state, after)

    def _call(self, parts: list[Any], names: Names, state: Names, after: Names | None) -> Any:
        values = [self._value(part, names, state, after) for part in parts[1:]]
        if text(parts[0]) == "Cardinality":
            return len(values[0])
        if text(parts[0]) == "Sum":  # recursive in the module
            return sum(values[0].values())
        parameters, body = self.operators[text(parts[0])]
        return self._value(body, dict(zip(parameters, values, strict=True)), state, after)

    def _infix(self, parts: list[Any], value: Callable[[Any], Any]) -> Any:
        left, sign, right = value(parts[0]), text(parts[1]), parts[2]
        match sign:
            case "=>":
                return not truth(left) or truth(value(right))
            case "/\\":
                return truth(left) and truth(value(right))
            case "\\/":
                return truth(left) or truth(value(right))
            case "=" | "#":
                other = value(right)
                assert type(left) is type(other), text(parts[0])
                return (left == other) == (sign == "=")
            case "\\in" if right.type == "set_of_functions":
                domain, values = value(right)
                return {*left} == {*domain} and {*left.values()} <= values
            case _ if sign in ARITHMETIC:
                other = value(right)
                assert type(left) is int
                assert type(other) is int
                return ARITHMETIC[sign](left, other)
            case _:
                return SETS[sign](left, value(right))

    def _except(self, parts: list[Any], value: Callable[[Any], Any]) -> Any:
        changed = dict(value(parts[0]))
        for update in parts[1:]:
            where, new = inside(update)
            key = arguments([value(part) for part in inside(inside(where)[0])])
            assert key in changed
            changed[key] = value(new)
        return changed


def arguments(values: list[Any]) -> Any:
    """Return what a function is applied to: with several arguments, a tuple."""
    return values[0] if len(values) == 1 else tuple(values)
