"""Scenarios: faults reported in public, read from a file that nobody retypes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from fivestate.spec.language import ModelError
from fivestate.spec.language.errors import did_you_mean
from fivestate.spec.reuse.classify import Kind
from fivestate.spec.reuse.spans import Span


@dataclass(frozen=True)
class Scenario:
    """One fault: what happened, in a few lines, and what would have been right.

    The fields are those of the file; ``state``, ``layer`` and ``invariant`` say what it is about.
    """

    id: str
    source: tuple[str, ...]
    status: str
    title_paraphrase: str
    root_cause: str
    state: str
    layer: str
    invariant: str
    kind: str
    scenario: tuple[str, ...]
    right_verdict: str
    why: str
    confidence: str

    @cached_property
    def right(self) -> str:
        """The right verdict, without what a naive rule says and without what a wrong one breaks."""
        text = re.split(r"Naive|VIOLATION|HIT ->|\. HIT|; HIT", self.right_verdict)[0]
        return text.strip()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The verdicts that the file calls right, in its order."""
        return tuple(Kind[name] for name in re.findall(r"\b(MISS|PARTIAL|HIT)\b", self.right))

    @property
    def resume(self) -> int:
        """The resume point that the file gives.

        Raises:
            ModelError: it gives none.
        """
        found = re.search(r"resume=(\d+)", self.right)
        if found is None:
            raise ModelError(f"scenario {self.id}: right_verdict gives no resume=")
        return int(found[1])

    @property
    def spans(self) -> tuple[Span, ...]:
        """The ranges ``first..last`` that the file gives, in its order."""
        pairs = re.findall(r"(\d+)\.\.(\d+)", self.right_verdict)
        return tuple(Span(int(first), int(last) + 1) for first, last in pairs)

    def number(self, pattern: str) -> int:
        """Return the number that stands in ``right_verdict`` where ``pattern`` has its group.

        Raises:
            ModelError: there is none.
        """
        found = re.search(pattern, self.right_verdict)
        if found is None:
            raise ModelError(f"scenario {self.id}: right_verdict has nothing like {pattern!r}")
        return int(found[1])


def read_scenarios(text: str) -> dict[str, Scenario]:
    """Return the scenarios of a file, one JSON object a line, by their ids.

    Raises:
        ModelError: a line is no object, or a field is unknown, missing or of another type.
    """
    read: dict[str, Scenario] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            scenario = _scenario(line, f"line {number}")
            if scenario.id in read:
                raise ModelError(f"line {number}: id = {scenario.id!r} is there twice")
            read[scenario.id] = scenario
    return read


def _scenario(line: str, where: str) -> Scenario:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise ModelError(f"{where} is not JSON: {error}") from None
    if not isinstance(entry, dict):
        raise ModelError(f"{where}: an object is allowed, and {type(entry).__name__} is given")
    known = {field.name: str(field.type) for field in fields(Scenario)}
    for name in entry:
        if name not in known:
            raise ModelError(f"{where}: unknown field {name!r}; {did_you_mean(name, known)}")
    values: dict[str, Any] = {n: _field(entry, n, kind, where) for n, kind in known.items()}
    return Scenario(**values)


def _field(entry: dict[str, object], name: str, kind: str, where: str) -> str | tuple[str, ...]:
    if name not in entry:
        raise ModelError(f"{where}: field {name!r} is missing")
    value = entry[name]
    if kind == "str" and isinstance(value, str):
        return value
    if kind != "str" and isinstance(value, list):
        lines = tuple(_strings(value))
        if len(lines) == len(value):
            return lines
    allowed = "a string" if kind == "str" else "a list of strings"
    raise ModelError(f"{where}: {name} = {value!r}: {allowed} is allowed")


def _strings(values: list[object]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))
