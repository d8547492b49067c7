"""``fivestate mutants``: machines with one fault each, and which property notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from fivestate.checker.mutants.mutant import Mutant
    from fivestate.checker.mutants.outcome import Outcome
    from fivestate.checker.mutants.run import Progress
    from fivestate.checker.mutants.score import Line
    from fivestate.spec.language.model import Model


def mutants(
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", "-k", help="A kind of fault, as in the table; again for more."),
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option("--action", "-a", help="Faults of this action; again for more."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model to ask; again for more. Default: all."),
    ] = None,
    liveness: Annotated[
        bool,
        typer.Option(help="Ask liveness about what nothing else has noticed."),
    ] = True,
    soundness: Annotated[
        bool,
        typer.Option(help="Ask further models until soundness alone has noticed, too."),
    ] = True,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Processes. Default: the processor's cores."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="Exit 1 if a mutant survives that was caught in this file (--json)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show every mutant."),
    ] = False,
) -> None:
    """Break the specification in every way that can be listed, and see who notices.

    Without options: every mutant, asked of every model that must hold. Ctrl-C stops and reports
    what is known by then.
    """
    from rich.console import Console

    from fivestate.checker.cli.interrupt import interruptible
    from fivestate.checker.mutants import score
    from fivestate.checker.mutants.outcome import Fate
    from fivestate.checker.mutants.run import Run, cores, live

    models = _models(model)
    chosen = _mutants(kind, action, {each.machine.name for each in models})
    before = _baseline(baseline)
    out = Console(soft_wrap=True, highlight=False)
    with interruptible() as interrupted, _progress() as progress:
        run = Run(jobs or cores(), live if liveness else None, soundness, interrupted, progress)
        outcomes = run.judge(chosen, models)
    fallen = score.worse(before, outcomes)
    if json:
        typer.echo(score.to_json(outcomes), nl=False)
    else:
        for each in outcomes if verbose else _to_look_at(outcomes):
            out.print(_line(each))
        out.print(_table(outcomes))
        for sentence in fallen:
            out.print(f"worse: {sentence}")
    survived = score.count(outcomes, Fate.SURVIVED)
    unknown = score.count(outcomes, Fate.UNKNOWN)
    raise typer.Exit(1 if survived or fallen else 2 if unknown else 0)


def _mutants(
    kinds: list[str] | None,
    actions: list[str] | None,
    machines: set[str],
) -> list[Mutant]:
    """Return the mutants that are asked for, of the machines whose models are asked.

    Raises:
        ModelError: there is no such kind or action, or nothing is left.
    """
    from fivestate.checker.mutants.every import MACHINES, every_mutant
    from fivestate.checker.mutants.mutant import Kind
    from fivestate.spec.language.errors import ModelError, did_you_mean

    known = {action.name for machine in MACHINES for action in machine.actions}
    for what, names, allowed in (
        ("kind", kinds, {str(each) for each in Kind}),
        ("action", actions, known),
    ):
        for name in names or []:
            if name not in allowed:
                raise ModelError(f"no {what} {name!r}; {did_you_mean(name, allowed)}")
    chosen = [
        mutant
        for mutant in every_mutant()
        if mutant.machine.name in machines
        and (kinds is None or mutant.kind in kinds)
        and (actions is None or not mutant.actions.keys().isdisjoint(actions))
    ]
    if not chosen:
        raise ModelError("no mutant is of that kind and of that action")
    return chosen


def _models(names: list[str] | None) -> list[Model]:
    """Return the models that are asked for.

    Raises:
        ModelError: there is no such model among those that must hold.
    """
    from fivestate.spec.language.errors import ModelError, did_you_mean
    from fivestate.spec.models import HOLDS

    known = {model.name: model for model in HOLDS}
    for name in names or []:
        if name not in known:
            raise ModelError(f"no model {name!r} that must hold; {did_you_mean(name, known)}")
    return list(HOLDS) if names is None else [known[name] for name in dict.fromkeys(names)]


def _baseline(path: Path | None) -> dict[str, Line]:
    """Return the score to compare with.

    Raises:
        ModelError: it cannot be read.
    """
    from fivestate.checker.mutants import score
    from fivestate.spec.language.errors import ModelError

    if path is None:
        return {}
    try:
        return score.load(path)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ModelError(str(error)) from None


def _to_look_at(outcomes: Iterable[Outcome]) -> list[Outcome]:
    from fivestate.checker.mutants.outcome import Fate

    return [outcome for outcome in outcomes if outcome.fate is not Fate.CAUGHT]


def _line(outcome: Outcome) -> Text:
    """Return one line: the mutant, what became of it, and who noticed."""
    from rich.text import Text

    from fivestate.checker.mutants.outcome import Fate

    colours = {
        Fate.CAUGHT: "green",
        Fate.EQUIVALENT: "yellow",
        Fate.SURVIVED: "bold red",
        Fate.UNKNOWN: "yellow",
    }
    text = Text(f"{outcome.mutant.name:<48} ")
    text.append(f"{outcome.fate:<11}", colours[outcome.fate])
    caught = outcome.caught_by
    if caught is not None:
        after = "" if caught.length is None else f" after {caught.length} steps"
        alone = "; soundness alone does, too" if outcome.sound else ""
        text.append(f"{caught.name}{after} in {outcome.slice}{alone}", "dim")
    elif outcome.open:
        text.append(f"stopped in {', '.join(outcome.open)}", "dim")
    return text


def _table(outcomes: Sequence[Outcome]) -> Table:
    """Return the counts by kind."""
    from rich.table import Table

    from fivestate.checker.mutants.mutant import Kind
    from fivestate.checker.mutants.outcome import Fate
    from fivestate.checker.mutants.score import count

    table = Table("kind", box=None, show_footer=True)
    for heading in ("mutants", *Fate, "by soundness alone"):
        table.add_column(str(heading), justify="right")
    groups = {kind: [o for o in outcomes if o.mutant.kind is kind] for kind in Kind}
    rows = {str(kind): group for kind, group in groups.items() if group}
    for name, group in {**rows, "all": list(outcomes)}.items():
        alone = sum(outcome.sound is True for outcome in group)
        counts = (len(group), *(count(group, fate) for fate in Fate), alone)
        table.add_row(name, *(f"{number:,}" for number in counts))
    return table


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show what is asked of whom on the error stream, if it is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("") as status:

        def progress(model: str, done: int, of: int) -> None:
            status.update(f"{model}: {done:,} of {of:,} mutants")

        if not console.is_terminal:
            status.stop()
        yield progress
