"""What the models of the allocator have in common: groups, features, and how much room there is."""

from __future__ import annotations

from enum import Enum

from fivestate.spec.language.settings import Setting
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

FEEDS: dict[tuple[Enum, Enum], bool] = {
    (COMPRESSED, WINDOW): True,
    (COMPRESSED, INDEXER): True,
    (COMPRESSED, TAIL): True,
    (WINDOW, TAIL): True,
}
"""What is made from what: entries first, the window by replay, the tail from both."""

FOUR: tuple[Enum, ...] = (COMPRESSED, TAIL, WINDOW, INDEXER)
"""The groups that live on the device."""

ENTRIES: dict[Enum, bool] = {COMPRESSED: True}

ENTRIES_AND_WINDOW: dict[Enum, bool] = {COMPRESSED: True, WINDOW: True}

ROOM_FOR_ONE: dict[Enum, int] = {COMPRESSED: 2}
"""What an admission asks for at most: a cell and a private frame."""

ONE_INDEX_AT_A_TIME: dict[Enum, int] = {COMPRESSED: 2, INDEXER: 2}

ONE_AT_A_TIME: dict[Enum, int] = {COMPRESSED: 2, WINDOW: 2}

ONE_INDEX_AND_WINDOW_AT_A_TIME: dict[Enum, int] = {COMPRESSED: 2, WINDOW: 2, INDEXER: 2}
"""Caps that just hold one admission."""

ROOM_FOR_TWO_CELLS: dict[Enum, int] = {COMPRESSED: 2}

TWO_COPIES: dict[Enum, int] = {COMPRESSED: 2}

NOTHING_PRIVATE: dict[Enum, int] = {COMPRESSED: 0}

ROOM_FOR_TWO: dict[Enum, int] = {COMPRESSED: 4}

ROOM_FOR_THREE: dict[Enum, int] = {COMPRESSED: 4, TAIL: 4}

OFF: dict[str, Setting] = {
    "hash_only": False,
    "aborts": False,
    "stores": False,
    "disk": False,
    "storable": ENTRIES,
    "budget": 1,
    "misfits": False,
    "layouts": False,
    "weights": False,
    "crashes": False,
    "graphs": False,
    "forks": False,
    "reindexes": False,
    "prefetches": False,
}
"""Every feature switched off: a model names the ones it explores together."""


def cache(
    prefixes: int,
    groups: tuple[Enum, ...],
    requests: int = 2,
    **features: Setting,
) -> dict[str, Setting]:
    """Return the settings of a cache with room for two requests, and these features."""
    return {
        **OFF,
        "prefix": prefixes,
        "group": groups,
        "request": requests,
        "cap": dict.fromkeys(groups, 3),
        "private": dict.fromkeys(groups, 1),
        "reserve": dict.fromkeys(groups, 0),
        "host": dict.fromkeys(groups, 8),
        "slots": 2,
        "feeds": FEEDS,
        **features,
    }
