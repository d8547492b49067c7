"""``fivestate check``: explore models exhaustively and judge every property."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fivestate.checker.exploration import Progress
    from fivestate.spec.language.model import Model

PROGRESS_AFTER_SECONDS = 1.0


def check(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", help="A model by name; again for more. Default: all that must hold."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a setting: request=3, cap.WINDOW=2. Needs one --model."),
    ] = None,
    engine: Annotated[str, typer.Option(help="The engine: auto, or one by name.")] = "auto",
    max_states: Annotated[
        int | None,
        typer.Option(min=1, help="Stop at so many states (UNDETERMINED)."),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Stop each model after so long (UNDETERMINED)."),
    ] = None,
    max_memory: Annotated[
        int | None,
        typer.Option(min=1, help="Stop before a search takes more than so many MiB."),
    ] = None,
    liveness: Annotated[
        bool,
        typer.Option("--liveness", help="Also judge that what waits is served, under fairness."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show every property."),
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the models and leave.")] = False,
) -> None:
    """Explore models exhaustively and judge every property they have.

    Without options: every model that must hold. Ctrl-C stops and reports what was covered.
    """
    from rich.console import Console

    from fivestate.checker.cli import files, machine_readable, text
    from fivestate.checker.cli.interrupt import interruptible
    from fivestate.checker.engines import prepared, select
    from fivestate.checker.exploration import Limits
    from fivestate.checker.judge import check as judge
    from fivestate.checker.verdicts import worst

    out = Console(soft_wrap=True, highlight=False)
    if listed:
        for line in text.listing(_listing()):
            out.print(line)
        return
    models = _models(model, changes or [])
    engines = [select(engine, each) for each in models]
    if junit is not None:
        files.refuse_unwritable(junit)
    limits = Limits(max_states, max_seconds, None if max_memory is None else max_memory << 20)
    reports = []
    with interruptible() as interrupted, prepared(models, engines) as wait_for:
        for number, (each, explore) in enumerate(zip(models, engines, strict=True)):
            if not interrupted.is_set():
                wait_for(number)
            with _progress(each) as progress:
                report = judge(each, explore, limits, interrupted, progress, liveness=liveness)
            reports.append(report)
            if not json:
                out.print(text.summary(report))
                for line in text.properties(report) if verbose else ():
                    out.print(line)
    if json:
        typer.echo(machine_readable.to_json(reports), nl=False)
    else:
        for report in reports:
            for line in text.refutation(report):
                out.print(line)
        out.print(text.closing(reports))
        if model is None:
            out.print("now see one fail: fivestate check --model hash-only")
    if junit is not None:
        files.write_whole(junit, machine_readable.to_junit(reports))
    raise typer.Exit(worst(report.verdict for report in reports).exit_code)


def _models(names: list[str] | None, changes: list[str]) -> list[Model]:
    """Return the models that are asked for.

    Raises:
        ModelError: a name or a setting is wrong.
    """
    from fivestate.spec.language.errors import ModelError
    from fivestate.spec.models import HOLDS

    if names is None:
        if changes:
            raise ModelError("--set needs a --model to change")
        return list(HOLDS)
    if changes and len(names) > 1:
        raise ModelError("--set changes one model: give one --model")
    return [named(name, changes) for name in dict.fromkeys(names)]


def named(name: str, changes: list[str]) -> Model:
    """Return the shipped model of this name, with some settings changed.

    Raises:
        ModelError: the name or a setting is wrong.
    """
    from fivestate.spec.language.errors import ModelError, did_you_mean
    from fivestate.spec.models import MODELS

    if name not in MODELS:
        raise ModelError(f"no model {name!r}; {did_you_mean(name, MODELS)}")
    return MODELS[name].set(*changes)


def _listing() -> Iterator[tuple[str, str, str]]:
    from fivestate.spec.models import MODELS

    for name, model in MODELS.items():
        yield name, f"{len(model.cells)} cells, {len(model.steps)} steps", model.says


@contextmanager
def _progress(model: Model) -> Iterator[Progress]:
    """Show states found so far on the error stream, if it is a terminal and a second has passed."""
    import time

    from rich.console import Console

    console = Console(stderr=True)
    started = time.perf_counter()
    with console.status("") as status:
        status.stop()
        shown = False

        def progress(found: int, explored: int) -> None:
            nonlocal shown
            if not console.is_terminal or time.perf_counter() - started < PROGRESS_AFTER_SECONDS:
                return
            if not shown:
                status.start()
                shown = True
            status.update(f"{model.name}: {found:,} states found, {explored:,} explored")

        yield progress
