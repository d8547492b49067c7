"""The page of proofs: what is searched, what is proved and for which sizes, what is only tested."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import fivestate.spec
from fivestate.checker.prove.catalog import THEOREMS
from fivestate.checker.prove.safety import CACHE
from fivestate.checker.prove.theorem import Result
from fivestate.spec.language.errors import ModelError
from fivestate.spec.language.properties import Kind, Property
from fivestate.spec.models import HOLDS, LARGE

NAME = "spec/PROOFS.md"
MARKED = re.compile(
    r"(?P<open><!-- proofs: (?P<name>(?!end )[a-z ]+) -->\n)(?P<body>.*?)"
    r"(?P<close><!-- proofs: end -->)",
    re.DOTALL,
)
SECONDS = re.compile(r"\| *[0-9.]+ *\|$", re.MULTILINE)


def path() -> Path:
    """Return where the page is.

    Raises:
        ModelError: this is no checkout.
    """
    root = Path(fivestate.spec.__file__).resolve().parents[1]
    if not (root / "pyproject.toml").is_file():
        raise ModelError("prove --write needs a checkout; what is installed cannot be rewritten")
    return root / NAME


def render(text: str, results: list[Result]) -> str:
    """Return a page with everything between its markers rendered anew.

    Raises:
        ModelError: a section is unknown or missing.
    """
    sections: dict[str, Callable[[], Iterator[str]]] = {
        "theorems": lambda: theorems(results),
        "clauses": clauses,
        "lemmas": lemmas,
    }
    found = [match["name"] for match in MARKED.finditer(text)]
    if sorted(found) != sorted(sections):
        wanted = ", ".join(sections)
        raise ModelError(
            f"{NAME} has the sections {', '.join(found)}: it needs {wanted}, each once"
        )

    def rendered(match: re.Match[str]) -> str:
        body = "\n".join(sections[match["name"]]())
        return f"{match['open']}\n{body}\n\n{match['close']}"

    return MARKED.sub(rendered, text)


def same(one: str, other: str) -> bool:
    """Say whether two pages agree in everything but how long z3 took."""
    return SECONDS.sub("|", one) == SECONDS.sub("|", other)


def theorems(results: list[Result]) -> Iterator[str]:
    """Yield the table of theorems."""
    yield "| clause | theorem | says | verdict | for | seconds |"
    yield "| --- | --- | --- | --- | --- | ---: |"
    for result in results:
        theorem = THEOREMS[result.theorem]
        verdict = f"{result.verdict}, by a counterexample" if theorem.fails else result.verdict
        cells = (theorem.clause, f"`{theorem.name}`", theorem.sentence, verdict, theorem.scope)
        yield f"| {' | '.join(map(_cell, cells))} | {result.seconds:.2f} |"


def clauses() -> Iterator[str]:
    """Yield the table of clauses: in how many models searched, by which theorems proved."""
    yield "| clause | property | kind | searched in | proved |"
    yield "| --- | --- | --- | --- | --- |"
    machines = {model.machine.name: model.machine for model in HOLDS}
    for machine in machines.values():
        for claim in sorted(machine.claims, key=lambda claim: claim.clause):
            if claim.kind is Kind.WITNESS:
                continue
            models = [m for m in (*HOLDS, *LARGE) if m.machine is machine and claim in m.claims]
            proved = _proved(claim) if machine is CACHE.machine else "no"
            name = f"`{claim.name}` of {machine.name}"
            yield f"| {claim.clause} | {name} | {claim.kind} | {_models(len(models))} | {proved} |"
    arithmetic = [theorem for theorem in THEOREMS.values() if theorem.questions is not None]
    for clause in sorted({theorem.clause for theorem in arithmetic}):
        names = ", ".join(f"`{each.name}`" for each in arithmetic if each.clause == clause)
        yield f"| {clause} | arithmetic | theorem | not at all: no state | {names} |"


def lemmas() -> Iterator[str]:
    """Yield the lemmas and laws, with what they say."""
    for source in CACHE.lemmas:
        claim = source.trace(CACHE.machine.state)
        yield f"- {claim.clause} `{claim.name}`: {claim.sentence}"
    yield ""
    yield "Taken for granted of the settings, and true in every model that is shipped:"
    yield ""
    for source in CACHE.laws:
        law = source.trace(CACHE.machine.state)
        yield f"- {law.clause} `{law.name}`: {law.sentence}"


def _proved(claim: Property) -> str:
    theorem = THEOREMS.get(claim.name)
    return "no" if theorem is None or theorem.safety != CACHE.name else "for any size"


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
