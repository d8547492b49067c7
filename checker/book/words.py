"""The words of a machine's source: its constants and definitions, found again in its trees.

A tree has no trace of the helper that built it: ``usable(s, p, g)`` in the source is its body in
the tree. Where a tree contains a body, the helper's name stands again, so that the document reads
as the source does.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from fivestate.checker.book.definitions import Definition, definitions
from fivestate.spec.language.declare import Relation, Size, Switch, Table
from fivestate.spec.language.properties import changes
from fivestate.spec.language.tracing import ActionSource, docstring
from fivestate.spec.language.trees import Apply, Constant, Node, Quantified, Read

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from fivestate.spec.language.machine import Machine

Declared = Switch | Size | Table | Relation


class Words:
    """What the source of a machine calls things.

    Args:
        machine: the machine.
        more: further functions of its source, such as a refinement's mapping.
    """

    def __init__(self, machine: Machine, *more: Callable[..., object]) -> None:
        self.machine = machine
        self.modules = _modules(machine, *more)

    @cached_property
    def constants(self) -> dict[str, Declared]:
        """The constants a model fixes, by their names in the source."""
        used = {constant.name for constant in self.machine.constants}
        found: dict[str, Declared] = {}
        for module in self.modules:
            for name, value in vars(module).items():
                if isinstance(value, Switch | Size | Table | Relation) and value.name in used:
                    found.setdefault(name, value)
        return found

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The helpers that are worth a name, in the order of the source."""
        found: dict[str, Definition] = {}
        for module in self.modules:
            for definition in definitions(module, self.machine.state):
                found.setdefault(definition.name, definition)
        places = list(dict.fromkeys(each.module for each in found.values()))
        return tuple(sorted(found.values(), key=lambda d: (places.index(d.module), d.line)))

    @property
    def places(self) -> tuple[str, ...]:
        """The modules that the machine and its definitions are written in."""
        written = (module.__name__ for module in self.modules)
        return tuple(dict.fromkeys([*written, *(each.module for each in self.definitions)]))

    def spoken(self, node: Node, but: Definition | None = None) -> Node:
        """Return ``node`` in the words of the source, ``but`` not in those of one definition."""
        known = [each for each in self._by_size if but is None or each.size < but.size]
        return self._spoken(node, known)

    @cached_property
    def _by_size(self) -> list[Definition]:
        state = self.machine.state
        body = changes(state(), state(after=True)).node
        some = Definition("changes", (), docstring(changes)[0], body, changes.__module__, 0)
        return sorted((*self.definitions, some), key=lambda each: -each.size)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {declared.name: name for name, declared in self.constants.items()}

    def _spoken(self, node: Node, known: list[Definition]) -> Node:
        for definition in known:
            applied = definition.applied(node)
            if applied is not None:
                inner = tuple(self._spoken(argument, known) for argument in applied.arguments)
                return replace(applied, arguments=inner)
        match node:
            case Constant(name, indices):
                inner = tuple(self._spoken(index, known) for index in indices)
                return replace(node, name=self._names.get(name, name), indices=inner)
            case Read(indices=indices):
                inner = tuple(self._spoken(index, known) for index in indices)
                return replace(node, indices=inner)
            case Apply(("and" | "or") as operator, arguments):
                gathered = _in_parts(operator, arguments, known)
                inner = tuple(self._spoken(part, known) for part in gathered)
                return replace(node, arguments=inner)
            case Apply(arguments=arguments):
                inner = tuple(self._spoken(argument, known) for argument in arguments)
                return replace(node, arguments=inner)
            case Quantified(body=body):
                return replace(node, body=self._spoken(body, known))
            case _:
                return node


def _in_parts(
    operator: str,
    arguments: tuple[Node, ...],
    known: list[Definition],
) -> tuple[Node, ...]:
    """Put a definition's name where its conjuncts, or disjuncts, stand among others."""
    for definition in known:
        body = definition.body
        if not isinstance(body, Apply) or body.operator != operator:
            continue
        length = len(body.arguments)
        for at in range(len(arguments) - length + 1):
            part = replace(body, arguments=arguments[at : at + length])
            applied = definition.applied(part)
            if applied is not None:
                rest = (*arguments[:at], applied, *arguments[at + length :])
                return _in_parts(operator, rest, known)
    return arguments


def _modules(machine: Machine, *more: Callable[..., object]) -> tuple[ModuleType, ...]:
    """Return the modules a machine is written in, that of its variables first."""
    parts: list[type | Callable[..., object]] = [machine.state]
    parts += [each.function for each in machine.next if isinstance(each, ActionSource)]
    parts += [each.function for each in machine.properties]
    names = dict.fromkeys(part.__module__ for part in (*parts, *more))
    return tuple(sys.modules[name] for name in names)
