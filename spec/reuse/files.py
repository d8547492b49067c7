"""Geometries from files: the shipped ones, TOML, and a model's ``config.json``."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from fivestate.spec.language import ModelError
from fivestate.spec.language.errors import did_you_mean
from fivestate.spec.reuse.fields import flag, member, read_text, read_toml, table, whole, words
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Role
from fivestate.spec.reuse.huggingface import from_config
from fivestate.spec.vocabulary import CacheState

PRESETS = files("fivestate.spec.reuse") / "presets"


def presets() -> tuple[str, ...]:
    """Return the names of the geometries that are shipped."""
    names = (file.name for file in PRESETS.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def preset(name: str) -> Geometry:
    """Return a geometry that is shipped.

    Raises:
        ModelError: there is none of this name.
    """
    if name not in presets():
        raise ModelError(f"no geometry {name!r}; {did_you_mean(name, presets())}")
    return read_geometry((PRESETS / f"{name}.toml").read_text("utf-8"), name)


def load_geometry(name: str) -> Geometry:
    """Return a shipped geometry by its name, or what a ``.toml`` or ``.json`` file describes.

    Raises:
        ModelError: there is no such geometry or file, or the file does not describe one.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return read_geometry(read_text(path), path.stem)
    if path.suffix != ".json":
        return preset(name)
    try:
        config = json.loads(read_text(path))
    except ValueError as error:
        raise ModelError(f"{name} is not JSON: {error}") from None
    return from_config(config, path.stem)


def read_geometry(text: str, name: str) -> Geometry:
    """Return the geometry that a TOML text describes, one table ``[group.NAME]`` a group.

    Raises:
        ModelError: it is not TOML, or a field is unknown, missing, or out of its range.
    """
    top = table(read_toml(text, name), {"says", "source", "draft_lookback", "group"}, name)
    tables = top.get("group", {})
    if not isinstance(tables, dict):
        raise ModelError(f"{name}: group = {tables!r}: tables [group.NAME] are allowed")
    lookback = whole(top, "draft_lookback", name, 0)
    groups = tuple(_group(entry, of, name) for of, entry in tables.items())
    return Geometry(name, groups, lookback, str(top.get("source", "")))


def unverified(geometry: Geometry) -> tuple[str, ...]:
    """Return the figures of a geometry that were not read in a primary source."""
    return tuple(
        f"{group.name}.{name} = {getattr(group, name)}"
        for group in geometry.groups
        for name in group.unverified
    )


def _group(entry: object, of: str, name: str) -> CacheGroup:
    where = f"{name}, group {of!r}"
    known = {field.name for field in fields(CacheGroup)} - {"name"}
    values: dict[str, Any] = {**table(entry, known, where), "name": of}
    for needed in ("state", "block_size"):
        if needed not in values:
            raise ModelError(f"{where}: field {needed!r} is missing")
    values["state"] = member(CacheState, values["state"], "state", where)
    values["role"] = member(Role, values.get("role", "required"), "role", where)
    for name_of_flag in ("recurrent", "chunked"):
        values[name_of_flag] = flag(values, name_of_flag, where, default=False)
    values["unverified"] = tuple(words(values, "unverified", where))
    for tagged in values["unverified"]:
        if tagged not in known:
            raise ModelError(f"{where}: unverified = {tagged!r}; {did_you_mean(tagged, known)}")
    return CacheGroup(**values)
