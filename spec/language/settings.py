"""Settings: what a model fixes of its machine, checked, and read from text."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from fivestate.spec.language.errors import ModelError, did_you_mean
from fivestate.spec.language.sorts import Sort
from fivestate.spec.language.trees import Boolean, Bound, Constant

if TYPE_CHECKING:
    from fivestate.spec.language.machine import Machine

Setting = bool | int | tuple[Enum, ...] | Mapping[Enum, int] | Mapping[tuple[Enum, Enum], bool]
"""A number of atoms, members of an enum, a constant, or a constant for each member."""

MAX_ATOMS = 8
"""More atoms of one sort than this is a slip of the finger, not a model that can be searched."""
MAX_DIGITS = 18
"""No number that a model fixes is longer."""


def sort_setting(sort: type[Sort]) -> str:
    """Return the name under which a model sets a sort."""
    return sort.__name__.lower()


def table_key(key: Enum | tuple[Enum, ...]) -> tuple[int, ...]:
    """Return the codes of a table's key."""
    members = key if isinstance(key, tuple) else (key,)
    return tuple(list(type(member)).index(member) for member in members)


def check(model: str, machine: Machine, settings: Mapping[str, Setting]) -> None:
    """Refuse settings that do not make a model.

    Raises:
        ModelError: one is unknown, missing or out of its range; the message names it.
    """
    sorts = {sort_setting(sort): sort for sort in machine.sorts if sort.low is None}
    known = {*sorts, *(constant.name for constant in machine.constants)}
    for name in settings:
        if name not in known:
            raise ModelError(f"model {model} has no setting {name!r}; {did_you_mean(name, known)}")
    for name in known:
        if name not in settings:
            raise ModelError(f"model {model} does not set {name!r}")
    for name, sort in sorts.items():
        _check_sort(f"model {model}: {name}", sort, settings[name])
    for constant in machine.constants:
        _check_constant(f"model {model}: {constant.name}", constant, settings)


def parse(text: str, machine: Machine, settings: Mapping[str, Setting]) -> tuple[str, Setting]:
    """Read ``name=value`` and return the name and its new setting.

    Raises:
        ModelError: the text is malformed or names something unknown.
    """
    left, equals, right = text.partition("=")
    name, *path = left.strip().split(".")
    if not equals or not right.strip():
        raise ModelError(f"{text!r} is no setting: write name=value")
    if name not in settings:
        raise ModelError(f"no setting {name!r}; {did_you_mean(name, settings)}")
    old = settings[name]
    if len(path) > isinstance(old, Mapping):
        raise ModelError(f"{left.strip()!r} is no setting: write {name}=value")
    if isinstance(old, tuple):
        return name, tuple(_member(part, _enum(name, machine)) for part in right.split(","))
    value = _number(text, right.strip(), truth=_is_truth(old))
    if not isinstance(old, Mapping):
        return name, value
    table: dict[Enum, int] = {key: entry for key, entry in old.items() if isinstance(key, Enum)}
    if not table:
        raise ModelError(f"{name} is fixed by the specification and cannot be set")
    keys = [_member(part, type(next(iter(table)))) for part in path] or list(table)
    return name, {**table, **dict.fromkeys(keys, value)}


def _is_truth(value: Setting) -> bool:
    """Say that a setting is a truth value, or a relation of them."""
    entries = list(value.values()) if isinstance(value, Mapping) else [value]
    return bool(entries) and all(isinstance(entry, bool) for entry in entries)


def _check_sort(where: str, sort: type[Sort], chosen: Setting) -> None:
    if sort.of is None:
        if not isinstance(chosen, int) or not 1 <= chosen <= MAX_ATOMS:
            raise ModelError(f"{where} = {chosen} is out of range 1..{MAX_ATOMS}")
        return
    members = list(sort.of)
    if not isinstance(chosen, tuple) or not chosen or not set(chosen) <= set(members):
        names = ", ".join(member.name for member in members)
        raise ModelError(f"{where} must name one or more of {names}")
    if len(set(chosen)) != len(chosen):
        raise ModelError(f"{where} names a member twice")


def _check_constant(where: str, constant: Constant, settings: Mapping[str, Setting]) -> None:
    value = settings[constant.name]
    if not isinstance(value, Mapping) or not constant.indices:
        _check_bounds(where, constant, value)
        return
    for key, entry in value.items():
        shown = ".".join(m.name for m in (key if isinstance(key, tuple) else (key,)))
        _check_bounds(f"{where}.{shown}", constant, entry)
    if isinstance(constant.type, Boolean):
        return  # a relation lists what is true; the rest is false
    given = {table_key(key) for key in value}
    for index in constant.indices:
        if isinstance(index, Bound) and index.sort.of is not None:
            chosen = settings[sort_setting(index.sort)]
            for member in chosen if isinstance(chosen, tuple) else ():
                if table_key(member) not in given:
                    raise ModelError(f"{where} has no value for {member.name}")


def _check_bounds(where: str, constant: Constant, value: Setting) -> None:
    if not isinstance(value, int) or not constant.low <= value <= constant.high:
        raise ModelError(f"{where} = {value} is out of range {constant.low}..{constant.high}")


def _enum(name: str, machine: Machine) -> type[Enum]:
    for sort in machine.sorts:
        if sort_setting(sort) == name and sort.of is not None:
            return sort.of
    raise ModelError(f"{name} is no sort with named members")


def _member(text: str, enum: type[Enum]) -> Enum:
    member = {member.name.lower(): member for member in enum}.get(text.strip().lower())
    if member is None:
        names = [member.name for member in enum]
        raise ModelError(f"{text.strip()!r} is no {enum.__name__}; {did_you_mean(text, names)}")
    return member


def _number(text: str, value: str, *, truth: bool) -> int:
    words = {"true": True, "false": False}
    if truth and value.lower() in words:
        return words[value.lower()]
    if truth or not value.isascii() or not value.isdigit() or len(value) > MAX_DIGITS:
        wanted = "true or false" if truth else "a whole number"
        raise ModelError(f"{text!r}: {wanted} is wanted")
    return int(value)
