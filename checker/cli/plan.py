"""``fivestate plan``: block sizes for a geometry and wishes, or the wishes that conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fivestate.checker.plan.report import Report


def plan(
    geometry: Annotated[
        str | None,
        typer.Argument(help="A geometry by name, a .toml file, or a model's config.json."),
    ] = None,
    wish: Annotated[
        list[str] | None,
        typer.Option(
            "--wish", "-w", help="shortest_prompt=4096tokens, kernel_block=64entries, memory=80GiB."
        ),
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="Choose block sizes; else those of the geometry stay.")
    ] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="Prove what holds at every position, with z3.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List geometries and wishes.")] = False,
) -> None:
    """Choose block sizes that meet every wish, and say what they cost; or say which conflict.

    Exits with 1 where wishes conflict, and names exactly those.
    """
    import json as writer

    from fivestate.checker.plan.proofs import proofs
    from fivestate.checker.plan.report import plan as find
    from fivestate.checker.plan.report import to_dict
    from fivestate.checker.plan.solve import Conflict
    from fivestate.checker.plan.wishes import read_wishes
    from fivestate.spec.language.errors import ModelError
    from fivestate.spec.reuse.files import load_geometry

    if listed:
        for line in _listing():
            typer.echo(line)
        return
    if geometry is None:
        raise ModelError("plan needs a geometry: give a name or a file, or --list to see names")
    shape = load_geometry(geometry)
    wishes = read_wishes(wish or [], shape, free=free)
    found = find(shape, wishes)
    proved = list(proofs(found.geometry)) if prove and not isinstance(found, Conflict) else []
    if json:
        table = to_dict(found, wishes)
        if prove:
            table["proofs"] = [
                {"claim": p.claim, "proved": p.proved, "counterexample": p.counterexample}
                for p in proved
            ]
        typer.echo(writer.dumps(table, indent=2, ensure_ascii=False))
    elif isinstance(found, Conflict):
        typer.echo(f"CONFLICT: {', '.join(each.text for each in found.wishes)}")
        typer.echo(f"because {found.because}")
    else:
        for line in _lines(found):
            typer.echo(line)
        for each in proved:
            verdict = "PROVED " if each.proved else "REFUTED"
            typer.echo(f"{verdict} {each.claim} {each.counterexample}".rstrip())
    if isinstance(found, Conflict) or not all(each.proved for each in proved):
        raise typer.Exit(1)


def _listing() -> Iterator[str]:
    from fivestate.checker.plan.wishes import UNITS
    from fivestate.spec.reuse.files import presets

    yield f"geometries: {', '.join(presets())}"
    for name, units in UNITS.items():
        yield f"wish {name}=NUMBER{'|'.join(units)}"


def _lines(found: Report) -> Iterator[str]:
    cost, geometry = found.capacity, found.geometry
    yield f"{geometry.name}: {geometry.source}"
    yield (
        f"hashes every {geometry.hash_block_size:,} tokens, hits every {found.hit_tokens:,}; "
        f"nothing is reused of a prompt under {found.shortest_prompt:,} tokens"
    )
    yield ""
    header = ("group", "state", "block", "entries", "page bytes", "padding", "for a hit", "cap")
    yield "{:<15}{:<11}{:>7}{:>9}{:>12}{:>9}{:>11}{:>8}".format(*header)
    for each in found.options:
        g = each.group
        hit = f"{g.hit_blocks} blocks" if g.hit_blocks else "prefix"
        yield (
            f"{g.name:<15}{g.state.name:<11}{g.block_size:>7,}{g.entries_per_block:>9,}"
            f"{g.page_size_bytes:>12,}{g.padding_bytes:>9,}{hit:>11}{each.cap_blocks:>8,}"
        )
    yield ""
    yield (
        f"{float(cost.bytes_per_token):,.2f} bytes a token "
        f"({float(cost.bytes_per_token_padded):,.2f} padded), "
        f"{cost.bytes_per_request:,} bytes a request beside it"
    )
    load_ms = cost.load_nanoseconds / 1e6
    yield f"loading the shared prefix: {cost.load_bytes:,} bytes, {load_ms:,.1f} ms"
    for first in cost.first_token:
        wait_ms = first.nanoseconds / 1e6
        yield f"first token, {first.kind:<8}{first.percent:>3}%: {wait_ms:>12,.1f} ms"
    for each_bill in cost.windows:
        kind = "exact" if each_bill.exact else "approximate"
        yield (
            f"windows, {each_bill.keep.value:<15}{each_bill.stored_bytes:>16,} bytes stored, "
            f"{each_bill.replay_tokens:>6,} tokens replayed, {kind}"
        )
    enough = cost.scheme_a.enough_below_tokens
    if enough is not None:
        yield (
            f"scheme A: {cost.scheme_a.bytes_per_token:,} bytes a token; enough up to "
            f"{enough:,} tokens, where it takes no more memory"
        )
    for warning in found.warnings:
        yield f"warning: {warning}"
