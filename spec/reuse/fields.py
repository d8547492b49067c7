"""Fields of a file: read strictly, refused by name, with the value and what is allowed."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from fivestate.spec.language import ModelError
from fivestate.spec.language.errors import did_you_mean

E = TypeVar("E", bound=Enum)
Entry = Mapping[str, Any]


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ModelError(f"cannot read {path}: it is not UTF-8 text") from None


def read_toml(text: str, name: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises:
        ModelError: it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{name} is not TOML: {error}") from None


def table(value: object, known: Collection[str], where: str) -> dict[str, Any]:
    """Return a table that has no field but the known ones.

    Raises:
        ModelError: it is no table, or it has another field.
    """
    if not isinstance(value, dict):
        raise ModelError(f"{where} = {value!r}: a table is allowed")
    for name in value:
        if name not in known:
            raise ModelError(f"{where}: unknown field {name!r}; {did_you_mean(name, known)}")
    return value


def whole(entry: Entry, name: str, where: str, default: int | None = None, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        ModelError: it is missing, or something else.
    """
    value = entry.get(name, default)
    if value is None:
        raise ModelError(f"{where}: field {name!r} is missing: a whole number is needed")
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        allowed = f"a whole number, {least} or more, is allowed"
        raise ModelError(f"{where}: {name} = {value!r}: {allowed}")
    return value


def numbers(entry: Entry, name: str, where: str) -> list[int]:
    """Return a list of whole numbers.

    Raises:
        ModelError: it is missing, or something else.
    """
    value = entry.get(name)
    if value is None:
        raise ModelError(f"{where}: field {name!r} is missing: a list of numbers is needed")
    if not isinstance(value, list) or not all(type(item) is int and item >= 0 for item in value):
        raise ModelError(f"{where}: {name} = {value!r}: a list of whole numbers is allowed")
    return value


def words(entry: Entry, name: str, where: str) -> list[str]:
    """Return a list of strings; none where there is no such field.

    Raises:
        ModelError: it is something else.
    """
    value = entry.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ModelError(f"{where}: {name} = {value!r}: a list of strings is allowed")
    return value


def text(entry: Entry, name: str, where: str) -> str:
    """Return a string.

    Raises:
        ModelError: it is missing, or something else.
    """
    value = entry.get(name)
    if not isinstance(value, str):
        raise ModelError(f"{where}: {name} = {value!r}: a string is needed")
    return value


def flag(entry: Entry, name: str, where: str, *, default: bool) -> bool:
    """Return a truth value.

    Raises:
        ModelError: it is something else.
    """
    value = entry.get(name, default)
    if not isinstance(value, bool):
        raise ModelError(f"{where}: {name} = {value!r}: true or false is allowed")
    return value


def member(kind: type[E], value: object, name: str, where: str) -> E:
    """Return the member of an enum that is written as its name, in any case.

    Raises:
        ModelError: it has no such member.
    """
    known = {each.name: each for each in kind}
    if isinstance(value, str) and value.upper() in known:
        return known[value.upper()]
    message = f"{where}: {name} = {value!r} is unknown"
    raise ModelError(f"{message}; {did_you_mean(str(value).upper(), known)}")
