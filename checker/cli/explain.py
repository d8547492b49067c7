"""``fivestate explain``: the verdict on one prefix, why, what comes first, and the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fivestate.spec.reuse import Line, Plan, Verdict


def explain(
    geometry: Annotated[
        str, typer.Argument(help="A geometry by name, a .toml file, or a model's config.json.")
    ],
    fork: Annotated[int, typer.Option(min=0, help="Tokens that the prompt shares.")],
    available: Annotated[Path, typer.Option(help="A TOML file: what exists of the prefix.")],
    prompt: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of the whole prompt; by default it goes on."),
    ] = None,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Allow a replay of the last window alone.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Say what a hash hit is worth: verdict, reasons, recovery, alternatives, and the ledger."""
    import json as writer

    from fivestate.spec.reuse import Asked, Policy, classify, ledger
    from fivestate.spec.reuse.availability_file import read_case
    from fivestate.spec.reuse.fields import read_text
    from fivestate.spec.reuse.files import load_geometry
    from fivestate.spec.reuse.holdings import hold

    shape = load_geometry(geometry)
    case = read_case(read_text(available), str(available), shape)
    asked = Asked(fork, prompt, case.identity)
    policy = Policy(approximate=approximate)
    verdict = classify(shape, asked, case.availability, case.consumer, policy)
    holdings = tuple(
        hold(shape, copies, case.consumer, rank)
        for rank, copies in enumerate(case.availability.ranks)
    )
    lines = ledger(holdings, verdict.resume)
    if json:
        typer.echo(writer.dumps(to_dict(verdict, lines), indent=2, ensure_ascii=False))
        return
    for line in _lines(verdict, lines):
        typer.echo(line)


def to_dict(verdict: Verdict, lines: tuple[Line, ...]) -> dict[str, Any]:
    """Return what a program reads."""
    numbers = verdict.numbers
    return {
        "verdict": verdict.kind.value,
        "exact": verdict.exact,
        **_plan(verdict.plan),
        "reasons": [
            {
                "clause": reason.clause,
                "reason": reason.why.value,
                "value": reason.value,
                "group": reason.group,
                "rank": reason.rank,
            }
            for reason in verdict.reasons
        ],
        "tokens": {name: getattr(numbers, name) for name in numbers.__slots__},
        "alternatives": [_plan(plan) for plan in verdict.beaten],
        "ledger": [
            {
                "group": line.group,
                "rank": line.rank,
                "start": line.span.start,
                "end": line.span.end,
                "form": None if line.form is None else line.form.name,
                "tier": None if line.tier is None else line.tier.name,
                "needed": line.needed,
                "before_use": [means.value for means in line.before],
            }
            for line in lines
        ],
    }


def _plan(plan: Plan) -> dict[str, Any]:
    cost = plan.cost
    return {
        "resume": plan.resume,
        "steps": [str(step) for step in plan.steps],
        "cost": {name: getattr(cost, name) for name in cost.__slots__},
    }


def _lines(verdict: Verdict, lines: tuple[Line, ...]) -> Iterator[str]:
    numbers = verdict.numbers
    kind = "" if verdict.exact else ", approximate"
    yield f"{verdict.kind.value}, resume at {verdict.resume:,}{kind}"
    yield (
        f"tokens: matched {numbers.matched:,}, feasible {numbers.feasible:,}, "
        f"recoverable {numbers.recoverable:,}, used {numbers.used:,} of {numbers.prompt:,}"
    )
    for reason in verdict.reasons:
        yield f"because {reason}"
    for number, step in enumerate(verdict.plan.steps, 1):
        yield f"  {number}. {step}"
    yield f"cost: {_cost(verdict.plan)}"
    for plan in verdict.beaten:
        yield f"beaten: resume at {plan.resume:,}, {_cost(plan)}"
    if verdict.resume:
        yield "ledger:"
    for line in lines if verdict.resume else ():
        form = line.form.name if line.form is not None else "gone" if line.needed else "not needed"
        before = ", ".join(means.value for means in line.before)
        where = "" if line.tier is None else f" {line.tier.name}"
        rank = f"rank {line.rank} " if line.rank else ""
        text = f"  {rank}{line.group:<15}{line.span!s:<20}{form}{where}"
        yield f"{text}  first: {before}" if before else text


def _cost(plan: Plan) -> str:
    cost = plan.cost
    return (
        f"{cost.nanoseconds / 1e6:,.3f} ms: {cost.load_bytes:,} bytes loaded, "
        f"{cost.repack_bytes:,} rearranged, {cost.replay_tokens:,} tokens replayed, "
        f"{cost.recompute_tokens:,} computed"
    )
