"""Sorts: what actions and quantifiers range over."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from fivestate.spec.language.errors import SpecError
from fivestate.spec.language.terms import Term, lift
from fivestate.spec.language.trees import Atom, Bound, Enumerated, Integer, Node, Type


class Sort(Term):
    """A finite set of things; a model says how many there are.

    Three kinds, by the class arguments::

        class Request(Sort, letter="r"): ...                   # atoms r0, r1, ...
        class Group(Sort, letter="g", of=CacheState): ...      # a model's choice of members
        class Entry(Sort, letter="i", low=0, high=N - 1): ...  # whole numbers

    The class names the sort; its instances are the terms that stand for one element.
    """

    letter: ClassVar[str]
    of: ClassVar[type[Enum] | None] = None
    low: ClassVar[Node | None] = None
    high: ClassVar[Node | None] = None

    def __init_subclass__(
        cls,
        *,
        letter: str,
        of: type[Enum] | None = None,
        low: Term | int | None = None,
        high: Term | int | None = None,
    ) -> None:
        if (low is None) != (high is None) or (of is not None and low is not None):
            message = f"sort {cls.__name__}: give nothing, or of=, or both low= and high="
            raise SpecError(message)
        cls.letter, cls.of = letter, of
        if low is not None and high is not None:
            cls.low, cls.high = lift(low, Integer()), lift(high, Integer())

    @classmethod
    def element_type(cls) -> Type:
        """Return the type of the sort's elements."""
        if cls.of is not None:
            return Enumerated(cls.of)
        return Integer() if cls.low is not None else Atom(cls)

    @classmethod
    def named(cls, name: str) -> Bound:
        """Return the tree of an element that is only known by its name."""
        return Bound(name, cls, cls.element_type())
