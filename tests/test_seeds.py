"""Every demand of the articles has its place in the specification, and every place is there.

The articles themselves are not kept here. What has to be listed is written once, below, by id.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fivestate.spec.language import Machine
from fivestate.spec.models import MODELS
from fivestate.spec.reuse import CHECKS
from fivestate.spec.vocabulary import CacheState

ROOT = Path(__file__).parents[1]
SEEDS = (ROOT / "spec/SEEDS.md").read_text("utf-8")
DECISIONS = (ROOT / "spec/DECISIONS.md").read_text("utf-8")
SCENARIOS = tomllib.loads((ROOT / "tests/scenarios/table.toml").read_text("utf-8"))

MUST: dict[str, dict[str, tuple[int, str]]] = {
    "000": {
        "§1": (2, "¶1 ¶2"),
        "§2": (6, "¶2 (1) (2) (3)"),
        "§3": (8, "¶1 ¶2 (1) (2) (3) (4) (5) ¶3"),
        "§4": (5, "¶2 code ¶4"),
        "§5": (5, "¶1 (1) (2) (3) (4)"),
        "§6": (4, "(1) (2) (3) (4)"),
        "§7": (6, "(1) (2) (3) (4) ¶2"),
    },
    "001": {
        "§1": (3, ""),
        "§2": (2, "¶1 ¶2"),
        "§3": (6, ""),
        "§4.1": (7, "¶2 (1) (2) (3) (4) (5)"),
        "§4.2": (12, "¶1 ¶2 (1) (2) (3) (4) ¶3 diagram code ¶5 ¶6"),
        "§4.3": (6, "¶2 (1) (2) (3) (4)"),
        "§4.4": (2, "¶2"),
        "§4.5": (1, ""),
        "§4.6": (1, "-"),
        "§5": (9, "(3) (4) (5) (8)"),
        "§6": (10, "¶1 ¶2"),
        "§7": (4, "(1) (2) (3) (4)"),
        "§8": (8, "(1) (2) (3) (4) (5) (6) (7)"),
        "§9": (2, "¶1 ¶2"),
    },
    "002": {
        "§1": (2, ""),
        "§2": (3, "¶1 ¶2 ¶3"),
        "§3": (5, "(4)"),
        "§4.1": (1, "-"),
        "§4.2": (1, "-"),
        "§4.3": (1, "-"),
        "§4.4": (5, "(1) (2) (3) (4) (5)"),
        "§4.5": (8, "(1) (2) (3) (4) (5) (6) (7) (8)"),
        "§4.6": (1, "-"),
        "§4.7": (1, "-"),
        "§5": (10, "(3) (4) (5) (8)"),
        "§6": (4, "code-A code-B"),
        "§7": (4, "(1) (2) (3) (4)"),
        "§8": (4, "(1) (2) (3) (4)"),
        "§9": (6, "(1) (2) (3) (4) (5) (6)"),
        "§10": (1, "-"),
    },
    "003": {
        "§1": (4, "¶2 ¶3"),
        "§2": (9, "¶3 (1) (2) (3) (4) (5) ¶4"),
        "§3": (1, "-"),
        "§3.1": (2, "¶1 ¶2"),
        "§3.2": (2, "¶1 ¶2"),
        "§3.3": (1, "-"),
        "§3.4": (1, "-"),
        "§3.5": (1, "-"),
        "§4": (1, "-"),
        "§4.1": (1, "-"),
        "§4.2": (1, "-"),
        "§4.3": (1, "-"),
        "§4.4": (1, "-"),
        "§5": (1, "-"),
        "§5.1": (1, "-"),
        "§5.2": (1, "-"),
        "§5.3": (1, "-"),
        "§5.4": (1, "-"),
        "§6": (7, "¶1 (1) (2) (3) (4)"),
    },
}
"""For each section: how many parts it has, and which of them demand something; - is all of it."""

COUNTS = {"000": 31, "001": 45, "002": 43, "003": 32}
"""How many demands each article makes."""


def ids(seed: str, section: str) -> list[str]:
    """Return the ids of a section's demands, as they are written."""
    head = f"{seed} {section}"
    suffixes = MUST[seed][section][1].split()
    words = {"-": "", "code": " code", "code-A": " code A", "code-B": " code B"}
    return [head + words.get(s, f" {s}" if s.isalpha() else s) for s in suffixes]


def every_id() -> list[str]:
    return [each for seed, sections in MUST.items() for s in sections for each in ids(seed, s)]


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the tables below a heading, without the heads of the tables."""
    below = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert below is not None, heading
    lines = [line for line in below[1].splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def machines() -> list[Machine]:
    found = [model.machine for model in MODELS.values()]
    found += [model.refines.abstract for model in MODELS.values() if model.refines is not None]
    return found


@cache
def clauses() -> set[tuple[str, str]]:
    """Return every action, property, refinement and check, with its id."""
    found = {(action.clause, action.name) for m in machines() for action in m.actions}
    found |= {(claim.clause, claim.name) for m in machines() for claim in m.claims}
    claimed = [model.refines for model in MODELS.values() if model.refines is not None]
    found |= {(claim.clause, claim.name) for claim in claimed}
    return found | {(clause, check.__name__) for clause, check in CHECKS}


@cache
def defined(path: str) -> frozenset[str]:
    """Return what a file defines at its top."""
    names: set[str] = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return frozenset(names)


def stands(item: str, subjects: set[str]) -> bool:
    """Say whether a place that a row gives is there."""
    if found := re.fullmatch(r"([A-Z]-\d+) `(\w+)`", item):
        return (found[1], found[2]) in clauses()
    if re.fullmatch(r"S-\d", item):
        return item in {state.value for state in CacheState}
    if found := re.fullmatch(r"D-(\d+)", item):
        return f'<a id="d-{found[1]}"></a>' in DECISIONS
    if found := re.fullmatch(r"model `([\w-]+)`", item):
        return found[1] in MODELS
    if found := re.fullmatch(r"`([\w/]+\.py)` `(\w+)`", item):
        return (ROOT / found[1]).is_file() and found[2] in defined(found[1])
    if re.fullmatch(r"B\d\d", item):
        return any(item in section for section in SCENARIOS.values())
    if found := re.fullmatch(r"later: (\w+)", item):
        return found[1] in subjects
    return False


def wrong(text: str) -> Iterator[str]:
    """Yield what is wrong with the file: demands without one row, places that are not there."""
    given = {seed: rows(text, f"Seed {seed}") for seed in MUST}
    wanted = every_id()
    listed = [row[0] for seed in MUST for row in given[seed]]
    yield from (f"no row: {each}" for each in wanted if each not in listed)
    yield from (f"two rows: {each}" for each in sorted({x for x in listed if listed.count(x) > 1}))
    yield from (f"no demand: {each}" for each in listed if each not in wanted)
    if sorted(listed) == sorted(wanted) and listed != wanted:
        yield "not in the order of the articles"
    subjects = [row[0] for row in rows(text, "Later")]
    used: set[str] = set()
    for seed in MUST:
        for each, says, where in given[seed]:
            items = where.split(", ")
            yield from (f"{each}: no {i!r}" for i in items if not stands(i, set(subjects)))
            yield from (f"{each}: {i!r} twice" for i in sorted(set(items)) if items.count(i) > 1)
            used |= {i.removeprefix("later: ") for i in items if i.startswith("later: ")}
            if not says.endswith("."):
                yield f"{each}: {says!r} is no sentence"
    yield from (f"later, and never used: {each}" for each in subjects if each not in used)
    sections = {(row[0], row[1]): (row[2], row[3]) for row in rows(text, "Sections")}
    for seed, of in MUST.items():
        for section, (parts, _) in of.items():
            numbers = str(parts), str(len(ids(seed, section)))
            if sections.pop((seed, section), None) != numbers:
                yield f"{seed} {section} has {numbers[0]} parts, and {numbers[1]} are listed"
    yield from (f"no section: {each}" for each in sections)


def test_every_demand_has_one_row_and_every_place_is_there() -> None:
    assert list(wrong(SEEDS)) == []


def test_so_many_demands_are_made() -> None:
    counted = {seed: sum(len(ids(seed, s)) for s in sections) for seed, sections in MUST.items()}
    assert counted == COUNTS
    assert len(set(every_id())) == sum(COUNTS.values())
    for sections in MUST.values():
        for parts, listed in sections.values():
            assert len(listed.split()) <= parts


ROW = next(line for line in SEEDS.splitlines() if line.startswith("| 003 §5.1 |"))


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        (f"{ROW}\n", "", "no row: 003 §5.1"),
        (ROW, f"{ROW}\n{ROW}", "two rows: 003 §5.1"),
        ("| 003 §5.1 |", "| 003 §5.9 |", "no demand: 003 §5.9"),
        ("I-1 `claims_at_once`, A-13", "I-1 `claims_at_one`, A-13", "no 'I-1 `claims_at_one`'"),
        ("I-1 `claims_at_once`, A-13", "I-2 `claims_at_once`, A-13", "no 'I-2 `claims_at_once`'"),
        ("H-4 `disjoint`, A-43", "H-4 `disjunct`, A-43", "no 'H-4 `disjunct`'"),
        ("R-1 `as_scheme_a` |", "R-2 `as_scheme_a` |", "no 'R-2 `as_scheme_a`'"),
        ("| S-5, D-1, A-41", "| S-6, D-1, A-41", "no 'S-6'"),
        ("| S-5, D-1, A-41", "| S-5, D-99, A-41", "no 'D-99'"),
        ("model `deep`", "model `deeper`", "no 'model `deeper`'"),
        ("`spec/vocabulary.py` `Copy`", "`spec/vocabulary.py` `Copies`", "`Copies`'"),
        ("`spec/vocabulary.py` `Copy`", "`spec/vocabular.py` `Copy`", "`spec/vocabular.py`"),
        ("`test_without_its_entries_a_prefix_is_a_miss`", "`test_without`", "`test_without`'"),
        ("B83, `impl/rollout.py`", "B84, `impl/rollout.py`", "no 'B84'"),
        ("later: documents |", "later: docu-ments |", "no 'later: docu-ments'"),
        ("B83, `impl/rollout.py`", "B83, B83, `impl/rollout.py`", "'B83' twice"),
        ("I-0 `sound`, B83, `impl/rollout.py` `Rollout`", "", "no ''"),
        ("| documents | who", "| document | who", "later, and never used: document"),
        ("| 002 | §4.5 | 8 | 8 |", "| 002 | §4.5 | 8 | 7 |", "002 §4.5 has 8 parts, and 8"),
        ("| 002 | §4.6 |", "| 002 | §4.8 |", "no section: ('002', '§4.8')"),
    ],
)
def test_a_lost_row_or_a_misspelt_name_is_found(was: str, becomes: str, says: str) -> None:
    assert SEEDS.count(was) >= 1
    found = list(wrong(SEEDS.replace(was, becomes, 1)))
    assert any(says in each for each in found), found


def test_rows_that_change_places_are_found() -> None:
    lines = SEEDS.splitlines()
    at = lines.index(ROW)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    assert list(wrong("\n".join(lines))) == ["not in the order of the articles"]
