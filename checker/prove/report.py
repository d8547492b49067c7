"""What ``fivestate prove`` says: a line a theorem, counterexamples, JSON, and the table."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.text import Text

from fivestate.checker.prove.catalog import THEOREMS
from fivestate.checker.prove.theorem import Result, Theorem
from fivestate.checker.verdicts import Verdict, worst

COLOURS = {
    Verdict.PROVED: "green",
    Verdict.REFUTED: "bold red",
    Verdict.UNDETERMINED: "yellow",
}


def lines(results: list[Result], seconds: float) -> Iterator[Text]:
    """Yield a line a theorem, then what was found against them, then the whole in one line."""
    width = max((len(result.theorem) for result in results), default=0)
    for result in results:
        text = Text(f"{THEOREMS[result.theorem].clause:<5} {result.theorem:<{width}}  ")
        text.append(f"{result.verdict:<13}", COLOURS[result.verdict])
        text.append(f"{result.seconds:>6.2f} s")
        yield text
    for result in results:
        if result.told:
            yield Text()
            says = "shown" if result.verdict is Verdict.PROVED else result.verdict
            colour = COLOURS[result.verdict]
            theorem = THEOREMS[result.theorem]
            yield Text(f"{theorem.clause} {theorem.name}: {says}", colour)
            yield Text(f"  {theorem.sentence}", "dim")
            for line in result.told:
                yield Text(f"  {line}")
    yield closing(results, seconds)


def closing(results: list[Result], seconds: float) -> Text:
    """Return the last line: the verdict on everything that was asked."""
    verdict = worst(result.verdict for result in results)
    count = sum(result.verdict is verdict for result in results)
    if verdict is Verdict.PROVED:
        text = Text("ok: ", "bold green")
        text.append(f"{count} {_theorems(count)} PROVED, {seconds:.1f} s", "default")
        return text
    text = Text(f"{verdict}: ", COLOURS[verdict])
    text.append(f"{count} of {len(results)} {_theorems(len(results))}, {seconds:.1f} s", "default")
    return text


def listed(theorem: Theorem) -> Text:
    """Return a theorem with its sentence and scope."""
    text = Text(f"{theorem.clause:<5} {theorem.name}\n")
    text.append(f"      {theorem.sentence}\n", "default")
    text.append(f"      {theorem.scope}", "dim")
    return text


def to_json(results: list[Result]) -> str:
    """Return the results as JSON; the keys are part of the command line's promise."""
    theorems = [
        {
            "clause": THEOREMS[result.theorem].clause,
            "name": result.theorem,
            "verdict": result.verdict,
            "seconds": round(result.seconds, 3),
            "scope": THEOREMS[result.theorem].scope,
            "told": list(result.told),
        }
        for result in results
    ]
    return json.dumps({"theorems": theorems}, indent=2, ensure_ascii=False) + "\n"


def _theorems(count: int) -> str:
    return "theorem" if count == 1 else "theorems"
