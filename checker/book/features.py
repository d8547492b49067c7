"""Which features are explored together: the shipped models and what each of them fixes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fivestate.checker.book.markdown import code, prose, table
from fivestate.checker.book.words import Words
from fivestate.spec.language.declare import Switch
from fivestate.spec.language.settings import Setting, sort_setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from enum import Enum

    from fivestate.spec.language.machine import Machine
    from fivestate.spec.language.model import Model

YES, NO = "yes", "–"


def models(holds: Sequence[Model], fails: Sequence[Model]) -> str:
    """Return the table of models: what each shows, and what it must come to."""
    rows = [(model, "PROVED") for model in holds] + [(model, "REFUTED") for model in fails]
    return table(
        ("model", "machine", "must be", "shows"),
        ((code(model.name), model.machine.name, verdict, _shows(model)) for model, verdict in rows),
    )


def settings(machine: Machine, shipped: Sequence[Model]) -> str:
    """Return the table of what each model fixes, a column a model."""
    words = Words(machine)
    says = {
        sort_setting(sort): f"{'members' if sort.of else 'number'} of {code(sort.__name__)}"
        for sort in machine.sorts
    }
    says |= {declared.name: declared.says for declared in words.constants.values()}
    names = [name for name in says if any(name in model.settings for model in shipped)]
    return table(
        ("setting", "meaning", *(code(model.name) for model in shipped)),
        (
            (code(name), says[name], *(_shown(model.settings.get(name)) for model in shipped))
            for name in names
        ),
    )


def together(machine: Machine, proved: Sequence[Model]) -> Iterator[str]:
    """Return in how many of the models two features are switched on together."""
    constants = Words(machine).constants.values()
    switches = [declared.name for declared in constants if isinstance(declared, Switch)]
    used = [name for name in switches if any(model.settings[name] for model in proved)]
    if len(used) > 1:
        rows = [(code(one), *(_count(one, other, used, proved) for other in used)) for one in used]
        yield "Of the models that must be PROVED, so many have both of two features on:"
        yield table(("", *map(code, used)), rows)
    if never := [code(name) for name in switches if name not in used]:
        yield f"Switched on in no model that must be PROVED: {', '.join(never)}."


def _count(one: str, other: str, used: list[str], models: Sequence[Model]) -> str:
    if used.index(other) < used.index(one):
        return ""
    both = sum(bool(model.settings[one] and model.settings[other]) for model in models)
    return str(both) if both else NO


def _shows(model: Model) -> str:
    shows = prose(model.says)
    if model.start_says:
        shows += f" Starts where {model.start_says}."
    if model.refines is not None:
        shows += f" Refines {model.refines.abstract.name} ({model.refines.clause})."
    return shows


def _shown(setting: Setting | None) -> str:
    match setting:
        case None:
            return ""
        case bool():
            return YES if setting else NO
        case int():
            return str(setting)
        case tuple():
            return ", ".join(member.name for member in setting)
        case Mapping():
            return _entries(setting)


def _entries(setting: Mapping[Enum, int] | Mapping[tuple[Enum, Enum], bool]) -> str:
    """Show one number if it is every member's; of a relation, what is related."""
    values = set(setting.values())
    if all(isinstance(value, bool) for value in values):
        return ", ".join(_key(key) for key, value in setting.items() if value) or NO
    if len(values) == 1:
        return str(*values)
    return ", ".join(f"{_key(key)} {value}" for key, value in setting.items())


def _key(key: Enum | tuple[Enum, Enum]) -> str:
    members = key if isinstance(key, tuple) else (key,)
    return " → ".join(member.name for member in members)
