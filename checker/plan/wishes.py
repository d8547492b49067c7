"""Wishes: what is asked of a plan, each a number with its unit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace

from fivestate.spec.language.errors import ModelError, did_you_mean
from fivestate.spec.reuse.geometry import Geometry

TOKENS = {"tokens": 1}
ENTRIES = {"entries": 1}
BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
RATE = {f"{unit}/s": size for unit, size in BYTES.items()}
TIME = {"us": 10**3, "ms": 10**6, "s": 10**9}
PERCENT = {"%": 1}
COUNT = {"": 1}

UNITS: dict[str, dict[str, int]] = {
    "shortest_prompt": TOKENS,
    "kernel_block": ENTRIES,
    "block": TOKENS,
    "padding": PERCENT,
    "memory": BYTES,
    "load_back": TIME,
    "ttft": TIME,
    "requests": COUNT,
    "ranks": COUNT,
    "context": TOKENS,
    "question": TOKENS,
    "in_flight": TOKENS,
    "period": TOKENS,
    "bandwidth": RATE,
    "prefill": {"tokens/s": 1},
    "hits": PERCENT,
    "loads": PERCENT,
    "share": PERCENT,
}
"""What can be written before ``=``, and in which units; times become nanoseconds."""


@dataclass(frozen=True)
class Setting:
    """The load and the machine that a plan is made for.

    Attributes:
        requests: requests that run at once.
        ranks: ranks over which the blocks of entries are spread (DCP).
        context: tokens of the shared prefix, and of the longest sequence.
        question: tokens behind it.
        in_flight: tokens that one step may write for a request.
        period: tokens from one window checkpoint to the next.
        bandwidth: bytes a second from the tier below the device.
        prefill: tokens a second.
        hits: percent of requests whose prefix is on the device.
        loads: percent of requests whose prefix is in the tier below; the others miss.
        share: percent of requests that a wish for time to first token is about.
    """

    requests: int = 1
    ranks: int = 1
    context: int = 131_072
    question: int = 256
    in_flight: int = 8_192
    period: int = 8_192
    bandwidth: int = 25_000_000_000
    prefill: int = 10_000
    hits: int = 60
    loads: int = 25
    share: int = 95

    def __post_init__(self) -> None:
        """Check the shares.

        Raises:
            ModelError: they are more than everything.
        """
        if self.hits + self.loads > 100 or self.share > 100:
            shown = f"hits = {self.hits}%, loads = {self.loads}%, share = {self.share}%"
            raise ModelError(f"{shown}: hits and loads together, and share: 100% or less")


@dataclass(frozen=True)
class Wish:
    """One wish that a plan must meet.

    Attributes:
        name: what is limited.
        group: the group it is about; all of them where it is empty.
        value: the limit, in the smallest unit.
        text: as it was written, or where it comes from.
    """

    name: str
    group: str
    value: int
    text: str


@dataclass(frozen=True)
class Wishes:
    """Everything that is asked of a plan."""

    limits: tuple[Wish, ...] = ()
    setting: Setting = field(default_factory=Setting)


def read_wishes(texts: Iterable[str], geometry: Geometry, *, free: bool = False) -> Wishes:
    """Return the wishes as written, ``shortest_prompt=4096tokens`` or ``block.c128=256tokens``.

    Unless block sizes are ``free``, those of the geometry are wishes too.

    Raises:
        ModelError: a name or group is unknown, a unit is wrong, or a number is not positive.
    """
    limits: list[Wish] = []
    setting = Setting()
    known_settings = {each.name for each in fields(Setting)}
    changed: dict[str, int] = {}
    for text in texts:
        wish = _read(text, geometry)
        if wish.name in known_settings:
            changed[wish.name] = wish.value
        else:
            limits.append(wish)
    setting = replace(setting, **changed)
    fixed = {wish.group for wish in limits if wish.name == "block"}
    if not free:
        limits += [
            Wish("block", g.name, g.block_size, f"block.{g.name}={g.block_size}tokens, as it is")
            for g in geometry.groups
            if g.name not in fixed
        ]
    return Wishes(tuple(limits), setting)


def _read(text: str, geometry: Geometry) -> Wish:
    where, separator, quantity = text.partition("=")
    name, _, group = where.strip().partition(".")
    if not separator:
        raise ModelError(f"wish {text!r}: NAME=NUMBER and a unit is allowed")
    if name not in UNITS:
        raise ModelError(f"wish {text!r}: unknown name {name!r}; {did_you_mean(name, UNITS)}")
    if name == "block" and not group:
        raise ModelError(f"wish {text!r}: say which group: block.GROUP=NUMBERtokens")
    if group and name not in {"block", "kernel_block"}:
        raise ModelError(f"wish {text!r}: {name} is not about one group")
    if group:
        geometry.group(group)
    units = UNITS[name]
    shown = " or ".join(unit or "no unit" for unit in units)
    found = re.fullmatch(r"\s*(\d[\d_]*)\s*([A-Za-z%/]*)\s*", quantity)
    if found is None:
        raise ModelError(f"wish {text!r}: {quantity!r}: a whole number and {shown} is allowed")
    number, unit = int(found[1]), found[2]
    if unit not in units:
        raise ModelError(f"wish {text!r}: unit {unit or 'none'!r}: {shown} is allowed for {name}")
    least = 0 if units is PERCENT else 1
    if number < least:
        raise ModelError(f"wish {text!r}: {number}: {least} or more is allowed")
    return Wish(name, group, number * units[unit], text.strip())
