"""What a person reads: one line a model, and a story where something is refuted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from fivestate.checker.verdicts import Verdict, worst
from fivestate.spec.language.properties import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fivestate.checker.judge import Judgement, Report
    from fivestate.checker.story import Line

COLOURS = {
    Verdict.PROVED: "green",
    Verdict.REFUTED: "bold red",
    Verdict.UNDETERMINED: "yellow",
}


def summary(report: Report) -> Text:
    """Return one line: the model, the verdict, and how much was searched."""
    found = report.exploration
    text = Text(f"{report.model.name:<18}")
    text.append(f"{report.verdict:<13}", COLOURS[report.verdict])
    text.append(
        f"{found.distinct:>10,} distinct states {found.transitions:>12,} transitions  "
        f"depth {found.depth:>3}  {found.seconds:>6.2f} s  {found.engine}",
    )
    if found.stopped:
        text.append(f"  stopped: {found.stopped}", "yellow")
    return text


def closing(reports: list[Report]) -> Text:
    """Return the last line: the verdict on everything that was asked."""
    verdict = worst(report.verdict for report in reports)
    states = sum(report.exploration.distinct for report in reports)
    properties = sum(len(report.judgements) for report in reports)
    seconds = sum(report.exploration.seconds for report in reports)
    if verdict is Verdict.PROVED:
        text = Text("ok: ", "bold green")
        text.append(f"{_many(len(reports), 'model')} PROVED, ", "default")
    else:
        count = sum(report.verdict is verdict for report in reports)
        text = Text(f"{verdict}: ", COLOURS[verdict])
        text.append(f"{count} of {_many(len(reports), 'model')}, ", "default")
    text.append(f"{properties} properties, {states:,} states, {seconds:.1f} s", "default")
    return text


def properties(report: Report) -> Iterator[Text]:
    """Return one line a property: its clause, name, kind, verdict and sentence."""
    for judgement in report.judgements:
        text = Text(f"  {judgement.clause:<5}{judgement.name:<28}{judgement.kind:<12}")
        text.append(f"{judgement.verdict:<13}", COLOURS[judgement.verdict])
        text.append(judgement.sentence, "dim")
        yield text


def refutation(report: Report) -> Iterator[Text]:
    """Return the story of the most telling refutation, and name the others."""
    if not report.refuted:
        return
    judgement, *others = report.refuted
    yield Text()
    yield Text(_headline(report, judgement), "bold red")
    story = judgement.story
    if story is not None:
        yield Text()
        if report.model.start_says:
            yield Text(f"  start: {report.model.start_says}", "dim")
        width = max((len(line.step) for line in (*story.lines, *story.round)), default=0)
        for number, line in enumerate(story.lines, 1):
            yield _line(number, line, width)
        if judgement.kind is Kind.LIVENESS:
            yield Text("  and then for ever:" if story.round else "  and there it stays.", "red")
        for number, line in enumerate(story.round, len(story.lines) + 1):
            yield _line(number, line, width)
        if story.ends:
            yield Text(f"     {story.ends}", "red")
        yield Text()
    yield Text(f"{judgement.clause} says: {_lower(judgement.sentence)}")
    if others:
        yield Text(f"also refuted: {', '.join(_short(other) for other in others)}")
    if story is not None and story.replay:
        yield Text("replay:")
        for code in story.replay.splitlines():
            yield Text(f"  {code}", "cyan")


def _line(number: int, line: Line, width: int) -> Text:
    text = Text(f"  {number}. {line.clause:<5} {line.step:<{width}}  ")
    changes = (f"{change.cell} {change.before} -> {change.after}" for change in line.changes)
    text.append("; ".join(changes), "dim")
    return text


def _headline(report: Report, judgement: Judgement) -> str:
    name = f"{judgement.clause} {judgement.name}"
    story = judgement.story
    if story is None:
        states = report.exploration.distinct
        return f"{name}: none of {states:,} reachable states is a witness"
    after = f"after {_many(story.length, 'step')}"
    detail = f" ({story.detail})" if story.detail else ""
    match judgement.kind:
        case Kind.ESCAPE:
            return f"{name}: no way leads out {after}{detail}"
        case Kind.LIVENESS:
            return f"{name}: a fair run never gets there, {after}{detail}"
        case Kind.RANGE:
            return f"{name}: a value leaves its range {after}"
        case Kind.REFINEMENT:
            return f"{name} fails {after}: {story.detail}"
        case _:
            return f"{name} is violated {after}{detail}"


def _short(judgement: Judgement) -> str:
    steps = "" if judgement.story is None else f", {_many(judgement.story.length, 'step')}"
    return f"{judgement.name} ({judgement.clause}{steps})"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def listing(names: Iterable[tuple[str, str, str]]) -> Iterator[Text]:
    """Return one line a model: its name, its size, and what it shows."""
    for name, size, says in names:
        text = Text(f"{name:<18}")
        text.append(f"{says}", "default")
        text.append(f"\n{'':<18}{size}", "dim")
        yield text
