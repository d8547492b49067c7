"""Declarations: the variables of a machine and the constants a model fixes."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, NoReturn, Protocol, Self, overload

from fivestate.spec.language.errors import SpecError, did_you_mean
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.terms import NOTHING, Term, Value, lift
from fivestate.spec.language.trees import (
    Boolean,
    Bound,
    Constant,
    Enumerated,
    Integer,
    Literal,
    Maybe,
    Node,
    Range,
    Read,
    Type,
)

BOOL = Boolean()
Index = Term | Enum | int
Domain = Boolean | Range | Maybe | type[Enum]


def within(low: Term | int, high: Term | Table | int) -> Range:
    """Declare whole numbers from ``low`` to ``high``; the bounds may use a model's constants.

    A table as ``high`` is read at the cell's own indices.
    """
    if isinstance(high, Table):
        high = high[tuple(sort(sort.named(sort.letter)) for sort in high.over)]
    return Range(lift(low, Integer()), lift(high, Integer()))


def maybe(sort: type[Sort]) -> Maybe:
    """Declare an element of ``sort`` or ``NOTHING``."""
    return Maybe(sort)


class Switch(Term):
    """A feature that a model turns on or off."""

    def __init__(self, name: str, says: str) -> None:
        super().__init__(Constant(name, (), Boolean(), 0, 1))
        self.name, self.says = name, says


class Size(Term):
    """A whole number from ``low`` to ``high`` that a model fixes."""

    def __init__(self, name: str, says: str, low: int, high: int) -> None:
        super().__init__(Constant(name, (), Integer(), low, high))
        self.name, self.says = name, says


class Indexed:
    """What is a value only once it is indexed: to compare it as it stands is a mistake."""

    def _forgotten(self, *_: object) -> NoReturn:
        raise SpecError("a cell is meant, and its index is missing: write name[...]")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __invert__ = __bool__ = _forgotten
    __hash__ = object.__hash__


class Table(Indexed):
    """Whole numbers from ``low`` to ``high`` that a model fixes for each element of sorts."""

    def __init__(self, name: str, says: str, *over: type[Sort], low: int = 0, high: int) -> None:
        self.name, self.says, self.over, self.low, self.high = name, says, over, low, high

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Term:
        indices = lift_indices(self.name, self.over, index)
        return Term(Constant(self.name, indices, Integer(), self.low, self.high))


class Relation(Indexed):
    """Truth values that a model, or nature, fixes for each element of sorts."""

    def __init__(self, name: str, says: str, *over: type[Sort]) -> None:
        self.name, self.says, self.over = name, says, over

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Term:
        indices = lift_indices(self.name, self.over, index)
        return Term(Constant(self.name, indices, Boolean(), 0, 1))


class Variable:
    """A variable: what it means, the sorts that index it, its domain and its first value.

    A model has it only where ``given`` is true of its constants; elsewhere it is its first value.
    A ``ghost`` is what the machine speaks of and nobody in it knows: no guard reads it.
    """

    name: str

    def __init__(
        self,
        says: str,
        *over: type[Sort],
        of: Domain,
        initial: Value | Table,
        given: Term | bool = True,
        ghost: bool = False,
    ) -> None:
        self.says, self.over, self.of, self.initial = says, over, of, initial
        self.ghost = ghost
        self.given = lift(given, Boolean())

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def type(self) -> Type:
        """The type of one cell."""
        return value_type(self.of)

    @property
    def range(self) -> Range | None:
        """The declared bounds, where the variable holds numbers."""
        return self.of if isinstance(self.of, Range) else None

    def initial_at(self, *bounds: Bound) -> Node:
        """Return the first value of the cell with these indices."""
        if isinstance(self.initial, Table):
            return self.initial[tuple(Term(bound) for bound in bounds)].node
        return lift(self.initial, self.type)


class Watcher(Protocol):
    """Whoever traces: told of every assignment."""

    def assigned(self, variable: Variable, indices: tuple[Node, ...], value: Node) -> None:
        """Take note that a cell gets a value in this step."""


class State:
    """The variables of a machine, read and assigned like attributes while it is traced."""

    variables: ClassVar[dict[str, Variable]] = {}
    _watcher: Watcher | None
    _after: bool

    def __init__(self, watcher: Watcher | None = None, *, after: bool = False) -> None:
        object.__setattr__(self, "_watcher", watcher)
        object.__setattr__(self, "_after", after)

    def __init_subclass__(cls) -> None:
        declared = {n: v for n, v in vars(cls).items() if isinstance(v, Variable)}
        cls.variables = {**cls.variables, **declared}

    def __getattr__(self, name: str) -> Term:
        message = f"{type(self).__name__} has no variable {name!r}; "
        raise SpecError(message + did_you_mean(name, self.variables))

    def __setattr__(self, name: str, value: object) -> None:
        variable = self.variables.get(name)
        if isinstance(variable, Scalar):
            object.__setattr__(self, name, value)
        elif variable is not None:
            message = f"{name} is indexed by {_sorts(variable.over)}: assign to {name}[...]"
            raise SpecError(message)
        else:
            self.__getattr__(name)


class Scalar(Variable):
    """A variable with one cell."""

    def __init__(
        self,
        says: str,
        *,
        of: Domain,
        initial: Value,
        given: Term | bool = True,
        ghost: bool = False,
    ) -> None:
        super().__init__(says, of=of, initial=initial, given=given, ghost=ghost)

    @overload
    def __get__(self, instance: None, owner: type[State]) -> Self: ...
    @overload
    def __get__(self, instance: State, owner: type[State]) -> Term: ...
    def __get__(self, instance: State | None, owner: type[State]) -> Self | Term:
        if instance is None:
            return self
        return Cells(instance, self).read(())

    def __set__(self, instance: State, value: Value) -> None:
        Cells(instance, self).write((), value)


class Array(Variable):
    """A variable with a cell for each element of one sort, or each pair of two."""

    def __init__(
        self,
        says: str,
        *over: type[Sort],
        of: Domain,
        initial: Value | Table,
        given: Term | bool = True,
        ghost: bool = False,
    ) -> None:
        if len(over) not in (1, 2):
            message = f"an array is indexed by one sort or two, not {len(over)}"
            raise SpecError(message)
        super().__init__(says, *over, of=of, initial=initial, given=given, ghost=ghost)

    @overload
    def __get__(self, instance: None, owner: type[State]) -> Self: ...
    @overload
    def __get__(self, instance: State, owner: type[State]) -> Cells: ...
    def __get__(self, instance: State | None, owner: type[State]) -> Self | Cells:
        return self if instance is None else Cells(instance, self)

    def __set__(self, instance: State, value: object) -> None:
        message = f"{self.name} is indexed by {_sorts(self.over)}: assign to {self.name}[...]"
        raise SpecError(message)


class Cells(Indexed):
    """The cells of one variable in one state."""

    def __init__(self, state: State, variable: Variable) -> None:
        self._state, self._variable = state, variable

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Term:
        return self.read(lift_indices(self._variable.name, self._variable.over, index))

    def __setitem__(self, index: Index | tuple[Index, ...], value: Value) -> None:
        self.write(lift_indices(self._variable.name, self._variable.over, index), value)

    def read(self, indices: tuple[Node, ...]) -> Term:
        """Return the value of one cell."""
        after: bool = self._state._after  # noqa: SLF001 -- Cells is State's own view
        return Term(Read(self._variable.name, indices, self._variable.type, after))

    def write(self, indices: tuple[Node, ...], value: Value) -> None:
        """Assign one cell; the watcher decides whether that is allowed here."""
        watcher: Watcher | None = self._state._watcher  # noqa: SLF001 -- see read
        name = self._variable.name
        if watcher is None:
            message = f"{name} is assigned in a property: a property only reads"
            raise SpecError(message)
        try:
            node = lift(value, self._variable.type)
        except SpecError as error:
            message = f"{name}: {error}"
            raise SpecError(message) from None
        watcher.assigned(self._variable, indices, node)


def value_type(domain: Domain) -> Type:
    """Return the type of the values in a domain."""
    match domain:
        case Range():
            return Integer()
        case Boolean() | Maybe():
            return domain
        case _:
            return Enumerated(domain)


def lift_indices(
    name: str,
    over: tuple[type[Sort], ...],
    index: Index | tuple[Index, ...],
) -> tuple[Node, ...]:
    """Return the trees of the indices of ``name``, checked against the sorts that index it."""
    given = index if isinstance(index, tuple) else (index,)
    if len(given) != len(over):
        message = f"{name} is indexed by {_sorts(over)}, and {len(given)} indices are given"
        raise SpecError(message)
    return tuple(_lift_index(name, sort, each) for sort, each in zip(over, given, strict=True))


def _lift_index(name: str, sort: type[Sort], index: Index) -> Node:
    kind = sort.element_type()
    try:
        node = lift(index, kind)
    except SpecError as error:
        message = f"{name}[...]: {error}"
        raise SpecError(message) from None
    if isinstance(node, Bound) and node.sort is not sort:
        message = f"{name}[...] wants an element of {sort.__name__}, not of {node.sort.__name__}"
        raise SpecError(message)
    if not isinstance(node, Bound | Literal):
        message = (
            f"{name}[...] is indexed by a computed value: take it as a parameter and require it"
        )
        raise SpecError(message)
    return node


def _sorts(over: tuple[type[Sort], ...]) -> str:
    return ", ".join(sort.__name__ for sort in over) or "nothing"


__all__ = [
    "BOOL",
    "NOTHING",
    "Array",
    "Relation",
    "Scalar",
    "Size",
    "State",
    "Switch",
    "Table",
    "Variable",
    "maybe",
    "within",
]
