"""What exists of a prefix, from a TOML file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from fivestate.spec.language import ModelError
from fivestate.spec.reuse.availability import Abi, Availability, Extent, Identity, Place, Tier
from fivestate.spec.reuse.checks import Consumer
from fivestate.spec.reuse.fields import (
    flag,
    member,
    numbers,
    read_toml,
    table,
    text,
    whole,
    words,
)
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.spans import Span

R = TypeVar("R", Abi, Place, Identity)

TOP = ("copy", "known", "identity", "asked", "kernel", "converters")
COPY = ("group", "start", "end", "tier", "rank", "generation", "abi", "place")


@dataclass(frozen=True)
class Case:
    """What a file says: what exists of a prefix, who asks, and what will read the bytes."""

    availability: Availability
    identity: Identity
    consumer: Consumer


def read_case(content: str, name: str, geometry: Geometry) -> Case:
    """Return what a TOML text says exists of a prefix, and who asks for it.

    One table ``[[copy]]`` a copy: ``group``, ``start`` and ``end`` in tokens, and where they are
    not the usual ones ``tier``, ``rank``, ``generation``, ``abi`` and ``place``. Beside them
    ``known``, ``identity`` of what is stored, ``asked`` of the asking prefix, ``kernel`` with
    what the kernels assume, and ``converters``, pairs of layouts.

    Raises:
        ModelError: it is not TOML, or a field is unknown, missing, or out of its range.
    """
    top = table(read_toml(content, name), TOP, name)
    ranks: dict[int, dict[str, tuple[Extent, ...]]] = {0: {}}
    entries = top.get("copy", [])
    if not isinstance(entries, list):
        raise ModelError(f"{name}: copy = {entries!r}: tables [[copy]] are allowed")
    for number, given in enumerate(entries, 1):
        where = f"{name}, copy {number}"
        entry = table(given, COPY, where)
        of_rank = ranks.setdefault(whole(entry, "rank", where, 0), {})
        group = geometry.group(text(entry, "group", where)).name
        of_rank[group] = (*of_rank.get(group, ()), _extent(entry, where))
    if sorted(ranks) != list(range(len(ranks))):
        shown = ", ".join(map(str, sorted(ranks)))
        raise ModelError(f"{name}: rank = {shown}: every rank from 0 on is needed")
    return Case(
        Availability(
            tuple(ranks[rank] for rank in sorted(ranks)),
            _identity(top.get("identity", {}), f"{name}: identity"),
            flag(top, "known", name, default=True),
        ),
        _identity(top.get("asked", top.get("identity", {})), f"{name}: asked"),
        Consumer(_record(Abi, top.get("kernel", {}), f"{name}: kernel"), _converters(top, name)),
    )


def _identity(value: object, where: str) -> Identity:
    entry = dict(table(value, _names(Identity), where))
    if "tokens" in entry:
        entry["tokens"] = tuple(numbers(entry, "tokens", where))
    return _record(Identity, entry, where)


def _converters(top: dict[str, Any], name: str) -> frozenset[tuple[str, str]]:
    pairs = top.get("converters", [])
    if not isinstance(pairs, list):
        raise ModelError(f"{name}: converters = {pairs!r}: a list of pairs is allowed")
    found: set[tuple[str, str]] = set()
    for number, pair in enumerate(pairs, 1):
        layouts = words({"pair": pair}, "pair", f"{name}, converter {number}")
        if len(layouts) != 2:
            raise ModelError(f"{name}: converters: {pair!r}: two layouts are allowed")
        found.add((layouts[0], layouts[1]))
    return frozenset(found)


def _extent(entry: dict[str, Any], where: str) -> Extent:
    place = entry.get("place")
    return Extent(
        Span(whole(entry, "start", where), whole(entry, "end", where)),
        member(Tier, entry.get("tier", "DEVICE"), "tier", where),
        _record(Abi, entry.get("abi", {}), f"{where}: abi"),
        None if place is None else _record(Place, place, f"{where}: place"),
        whole(entry, "generation", where, 0),
    )


def _record(kind: type[R], value: object, where: str) -> R:
    entry = table(value, _names(kind), where)
    for field in fields(kind):
        if field.name not in entry:
            continue
        if str(field.type) == "int":
            whole(entry, field.name, where)
        elif str(field.type).startswith("str"):
            text(entry, field.name, where)
    try:
        return kind(**entry)
    except TypeError:
        needed = ", ".join(name for name in _names(kind) if name not in entry)
        raise ModelError(f"{where}: missing: {needed}") from None


def _names(kind: type[R]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
