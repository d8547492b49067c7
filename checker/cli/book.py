"""``fivestate book``: the specification as a document."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

SHOWN = 40
"""So many lines of a difference are shown."""


def book(
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit 1 if a file says something else than the spec."),
    ] = False,
    write: Annotated[
        bool,
        typer.Option("--write", help="Rewrite the files; only in a checkout."),
    ] = False,
) -> None:
    """Render the specification as Markdown: every clause, with its sentence and mathematics.

    Without options: print it.
    """
    from fivestate.checker.book.files import checkout, pages
    from fivestate.checker.cli.files import write_whole
    from fivestate.spec.language.errors import ModelError

    if check and write:
        raise ModelError("book either checks or writes: give --check or --write, not both")
    if write and checkout() is None:
        raise ModelError("book --write needs a checkout; what is installed cannot be rewritten")
    rendered = pages()
    if not check and not write:
        typer.echo("\n".join(page.rendered for page in rendered), nl=False)
        return
    stale = [page for page in rendered if page.stale]
    for page in stale:
        if write:
            write_whole(page.path, page.rendered)
            typer.echo(f"written: {page.name}")
            continue
        difference = list(page.differences())
        for line in islice(difference, SHOWN):
            typer.echo(line)
        if len(difference) > SHOWN:
            typer.echo(f"… and {len(difference) - SHOWN} lines more")
        typer.echo(f"stale: {page.name}; rewrite it with: fivestate book --write")
    if not stale:
        typer.echo(f"ok: {', '.join(page.name for page in rendered)} say what the spec says")
    elif check:
        raise typer.Exit(1)
