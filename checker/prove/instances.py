"""Ground instances: a quantified problem with only those instances that can matter.

Left to itself, z3 instantiates without end: from a request it gets to its prefix, from there to
whoever recovers it, and on. A step speaks of few elements, so those are the only ones that are
put in. Every instance follows from what it is an instance of, so what is proved is proved; what
is not proved this way is looked at again in a universe of few elements.
"""

from __future__ import annotations

import itertools
from copy import copy
from dataclasses import dataclass, field
from enum import Enum

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.signature import Expression, enumeration, z3_sort
from fivestate.checker.prove.universe import Body, Count
from fivestate.checker.prove.walking import constants, uses
from fivestate.spec.language.settings import sort_setting
from fivestate.spec.language.sorts import Sort

DEEPEST = 2
"""Exceptions to what is said of exceptions to what a problem says are not named any more."""


@dataclass(frozen=True)
class Definition:
    """A name for *body is true of every element*, of which the free elements are parameters."""

    name: Expression
    free: tuple[Expression, ...]
    element: Expression
    true: Template
    false: Template

    @property
    def sort(self) -> Expression:
        """The z3 sort of the elements that are meant."""
        return self.element.sort()


@dataclass(frozen=True)
class Use:
    """A definition at some elements, where it is taken to be true, or to be false."""

    name: Expression
    true: bool

    def at(self, pairs: list[tuple[Expression, Expression]]) -> Use:
        """Return the same at other elements."""
        return Use(z3.substitute(self.name, *pairs), self.true)


@dataclass(frozen=True)
class Template:
    """A condition that is taken to be true, its free elements, and the definitions in it."""

    condition: Expression
    free: tuple[Expression, ...]
    uses: tuple[Use, ...]

    def at(self, elements: tuple[Expression, ...]) -> Template:
        """Return the instance at some elements."""
        pairs = list(zip(self.free, elements, strict=True))
        if not pairs:
            return self
        uses = tuple(use.at(pairs) for use in self.uses)
        return Template(z3.substitute(self.condition, *pairs), (), uses)


@dataclass
class AnySize:
    """Sorts of atoms have any finite number of elements; what is said of all has a name.

    A count becomes an unknown number, the same for the same condition; what is known of it is
    said by the laws of counting.

    Attributes:
        only: the members of an enum that there are; all of them, if empty.
        definitions: the names, by the ids of their declarations.
        counts: the counts.
        steps: which count a step makes of which.
    """

    only: tuple[Enum, ...] = ()
    definitions: dict[int, Definition] = field(default_factory=dict[int, Definition])
    counts: dict[tuple[int, int], Count] = field(
        default_factory=dict[tuple[int, int], Count],
    )
    steps: dict[tuple[int, int], tuple[Count, Count]] = field(
        default_factory=dict[tuple[int, int], tuple[Count, Count]],
    )
    _by_body: dict[int, Definition] = field(default_factory=dict[int, Definition])

    def copy(self) -> AnySize:
        """Return a universe that knows the same names and learns others on its own."""
        known = dict(self.definitions), dict(self.counts), dict(self.steps), dict(self._by_body)
        return AnySize(self.only, *known)

    def elements(self, sort: type[Sort]) -> tuple[Expression, ...] | None:
        """Return the members of an enum; nothing for atoms and numbers."""
        if sort.of is None:
            return None
        members = zip(sort.of, enumeration(sort.of)[1], strict=True)
        return tuple(name for member, name in members if not self.only or member in self.only)

    def forall(self, sort: type[Sort], name: str, body: Body) -> Expression:
        """Return the name of what is said of every element."""
        element = z3.Const(f"every {name}", z3_sort(sort.element_type()))
        holds = z3.simplify(body(element))
        known = self._by_body.get(holds.get_id())
        if known is None:
            free = tuple(x for x in constants(holds) if not x.eq(element))
            kinds = (x.sort() for x in free)
            label = f"all {len(self.definitions)}"
            named = z3.Function(label, *kinds, z3.BoolSort())(*free)
            true, false = (
                Template(said, (*free, element), self.uses(said)) for said in (holds, z3.Not(holds))
            )
            known = Definition(named, free, element, true, false)
            self._by_body[holds.get_id()] = known
            self.definitions[named.decl().get_id()] = known
        return known.name

    def definition(self, use: Use) -> Definition:
        """Return the definition that is used."""
        return self.definitions[use.name.decl().get_id()]

    def uses(self, condition: Expression) -> tuple[Use, ...]:
        """Return the definitions in a condition that is taken to be true."""
        return tuple(Use(name, true) for name, true in uses(condition, self.definitions))

    def count(self, sort: type[Sort], holds: Body) -> Expression:
        """Return the unknown number of elements of which ``holds`` is true."""
        element = z3.Const(f"a counted {sort_setting(sort)}", z3_sort(sort.element_type()))
        condition = z3.simplify(holds(element))
        key = element.get_id(), condition.get_id()
        if key not in self.counts:
            number = z3.Int(f"count {len(self.counts)}")
            self.counts[key] = Count(sort, element, condition, number)
        return self.counts[key].number

    def follow(self, before: Expression, after: Expression) -> None:
        """Take note that a step makes one count of another."""
        by_number = {count.number.get_id(): count for count in self.counts.values()}
        key = before.get_id(), after.get_id()
        self.steps[key] = by_number[before.get_id()], by_number[after.get_id()]


class Grounding:
    """Instances of conditions at all elements that a problem speaks of.

    Attributes:
        facts: what may be told to a solver.
    """

    def __init__(self, universe: AnySize) -> None:
        self.universe = universe
        self.facts: list[Expression] = []
        self._terms: dict[str, list[Expression]] = {}
        self._named: dict[str, list[Expression]] = {}
        self._depth: dict[int, int] = {}
        self._general: list[Template] = []
        self._used: dict[tuple[int, bool], Use] = {}
        self._waiting: list[Use] = []

    def copy(self, universe: AnySize) -> Grounding:
        """Return a grounding that knows the same and learns on its own; its facts start empty."""
        other = Grounding(universe)
        knows = vars(other)
        for name in ("_terms", "_named"):
            knows[name] = {sort: list(terms) for sort, terms in vars(self)[name].items()}
        for name in ("_depth", "_used", "_general"):
            knows[name] = copy(vars(self)[name])
        return other

    def terms(self, sort: Expression) -> list[Expression]:
        """Return the elements of a sort that the problem speaks of."""
        return self._terms.setdefault(sort.name(), [])

    def add(self, term: Expression, depth: int = 0) -> None:
        """Take note of an element that the problem speaks of."""
        if term.get_id() not in self._depth:
            self._add_term(term, depth)
            self._settle()

    def exception(self, label: str, sort: Expression) -> Expression:
        """Return a new element: an exception to something, if there is one.

        No instance of a general condition is put in for it.
        """
        element = z3.Const(f"{label}: exception", sort)
        if element.get_id() not in self._depth:
            self._add_term(element, DEEPEST, general=False)
            self._settle()
        return element

    def always(self, condition: Expression, free: tuple[Expression, ...]) -> None:
        """Take a condition for granted, for every choice of its free elements."""
        template = Template(condition, free, self.universe.uses(condition))
        self._general.append(template)
        for elements in itertools.product(*(self._named.get(x.sort().name(), []) for x in free)):
            self._instance(template, elements)
        self._settle()

    def tell(self, condition: Expression) -> None:
        """Take a condition of known elements for granted."""
        for term in constants(condition):
            self.add(term)
        self.facts.append(condition)
        self._waiting += self.universe.uses(condition)
        self._settle()

    def _instance(self, template: Template, elements: tuple[Expression, ...]) -> None:
        instance = template.at(elements)
        self.facts.append(instance.condition)
        self._waiting += instance.uses

    def _settle(self) -> None:
        """Define what is used and not defined yet, until nothing new comes up."""
        while self._waiting:
            use = self._waiting.pop()
            key = use.name.get_id(), use.true
            if key in self._used:
                continue
            self._used[key] = use
            definition = self.universe.definition(use)
            if use.true:
                for term in list(self.terms(definition.sort)):
                    self._define(use, definition, term)
                continue
            deep = 1 + max((self._depth.get(x.get_id(), 0) for x in use.name.children()), default=0)
            if deep <= DEEPEST:
                label = f"{use.name}: exception"
                exception = z3.Const(label, definition.sort)
                self._define(use, definition, exception)
                self._add_term(exception, deep)

    def _define(self, use: Use, definition: Definition, element: Expression) -> None:
        """Say what a definition means for one element."""
        template = definition.true if use.true else definition.false
        instance = template.at((*use.name.children(), element))
        name = use.name if use.true else z3.Not(use.name)
        self.facts.append(z3.Implies(name, instance.condition))
        self._waiting += instance.uses

    def _add_term(self, term: Expression, depth: int, *, general: bool = True) -> None:
        self._depth[term.get_id()] = depth
        self.terms(term.sort()).append(term)
        for use in list(self._used.values()):
            definition = self.universe.definition(use)
            if use.true and definition.sort == term.sort():
                self._define(use, definition, term)
        if not general:
            return
        self._named.setdefault(term.sort().name(), []).append(term)
        for template in self._general:
            choices = itertools.product(
                *(self._named.get(x.sort().name(), []) for x in template.free)
            )
            for elements in choices:
                if any(element.eq(term) for element in elements):
                    self._instance(template, elements)
