"""Needs: what must be there is exactly what attention, or a later fold, reads (S-1 to S-4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.numbers import Numbers, product_order, symbolic
from fivestate.checker.prove.signature import Expression, numbers
from fivestate.checker.prove.theorem import Question, theorem
from fivestate.spec import need
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Shape

EVERY = "all positions; every group of every preset, and any sizes"
SIZES = "all positions, all sizes"


@theorem("S-0", SIZES)
def products_are_ordered(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Products by a positive number are ordered as what is multiplied, and that number apart.

    What z3 is reminded of where blocks of an unknown size are counted.
    """
    del geometries
    factor, one, other, more = numbers("factor one other more")
    reached = z3.substitute(product_order(factor, one, other), (other, one + more))
    yield Question("above", (factor >= 1, more >= 1), reached, {"factor": factor})
    reached = z3.substitute(product_order(factor, one, other), (one, other + more))
    yield Question("below", (factor >= 1, more >= 0), reached, {"factor": factor})


@theorem("S-1", EVERY)
def entries_needed_are_entries_read(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A token is needed compressed iff an entry that a query may read has folded it."""
    for where, n, group in _groups(geometries, Shape.PREFIX):
        position, token, entry = (n.z3(n.new(x)) for x in ("position", "token", "entry"))
        ratio = n.z3(group.ratio)
        folded_by = z3.And(entry * ratio <= token, token < (entry + 1) * ratio)
        complete = (entry + 1) * ratio <= position
        inside = _needed(n, group, token)
        n.ordered(ratio, entry)
        yield Question(where, (*n.given, folded_by), inside == complete, _shown())


@theorem("S-3", EVERY)
def window_needed_is_window_read(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A window's row is needed iff the next query reads it: the last W rows, its own included."""
    for where, n, group in _groups(geometries, Shape.RUN):
        position, token = n.z3(n.new("position")), n.z3(n.new("token"))
        read = z3.And(token < position, position - token < n.z3(group.window))
        inside = _needed(n, group, token)
        yield Question(where, tuple(n.given), inside == read, _shown())


@theorem("S-3", EVERY)
def chunk_needed_is_chunk_read(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A row of a chunked window is needed iff it lies before the query in the query's own chunk."""
    for where, n, group in _groups(geometries, Shape.CHUNK):
        position, token = n.z3(n.new("position")), n.z3(n.new("token"))
        chunk, other, size = n.z3(n.new("chunk")), n.z3(n.new("other")), n.z3(group.window)
        placed = (
            z3.And(chunk * size <= position, position < (chunk + 1) * size),
            z3.And(other * size <= token, token < (other + 1) * size),
        )
        read = z3.And(token < position, other == chunk)
        inside = _needed(n, group, token)
        n.ordered(size, chunk, other)
        yield Question(where, (*n.given, *placed), inside == read, _shown())


@theorem("S-2", EVERY)
def tail_needed_is_read_by_a_fold(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A raw row is needed iff a fold that is still to come reads it, look-back included."""
    for where, n, group in _groups(geometries, Shape.OPEN_GROUP):
        position, token = n.z3(n.new("position")), n.z3(n.new("token"))
        folded, own, fold = (n.z3(n.new(x)) for x in ("folded", "own", "fold"))
        ratio = n.z3(group.ratio)
        placed = (
            z3.And(folded * ratio <= position, position < (folded + 1) * ratio),
            z3.And(own * ratio <= token, token < (own + 1) * ratio),
        )
        inside = _needed(n, group, token)

        read = partial(_reads, n, group, folded)
        n.ordered(ratio, folded, own, fold)
        some = z3.Or(read(own), read(folded))
        given = (*n.given, *placed)
        yield Question(f"{where}, needed is read", (*given, inside), some, _shown())
        yield Question(f"{where}, read is needed", (*given, read(fold)), inside, _shown())


@theorem("S-4", "all positions; every preset with an index")
def index_needs_rows_for_its_entries(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """An index is needed for exactly the tokens whose entries are."""
    for geometry in geometries:
        for group in geometry.groups:
            owner = geometry.owner(group)
            if owner is None or group.shape is not Shape.PREFIX:
                continue
            n = Numbers()
            position = n.new("position")
            rows, of = n.span(group.need(position)), n.span(owner.need(position))
            same = z3.And(rows[0] == of[0], rows[1] == of[1])
            where = f"{geometry.name}, {group.name}"
            yield Question(where, tuple(n.given), same, {"position": n.z3(position)})


@theorem("S-1", EVERY)
def snapshot_needs_everything(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A snapshot must have taken in every token before the position, and none behind it."""
    for where, n, group in _groups(geometries, Shape.POINT):
        position, token = n.z3(n.new("position")), n.z3(n.new("token"))
        claim = _needed(n, group, token) == (token < position)
        yield Question(where, tuple(n.given), claim, _shown())


@theorem("S-1", SIZES)
def visible_entries_are_counted(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """An entry is visible to a query iff its number is below the number of visible entries."""
    del geometries
    n = Numbers()
    entry, query, ratio = n.new("entry"), n.new("query"), n.new("ratio", 1)
    seen, counted = (
        n.z3(need.visible(entry, query, ratio)),
        n.z3(need.visible_entries(query, ratio)),
    )
    shown = {"entry": n.z3(entry), "query": n.z3(query), "ratio": n.z3(ratio)}
    yield Question("", tuple(n.given), seen == (n.z3(entry) < counted), shown)


@theorem("S-1", SIZES)
def nobody_sees_the_future(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """No entry that a query sees has folded a token behind the query (B22)."""
    del geometries
    n = Numbers()
    entry, query, ratio, token = n.new("entry"), n.new("query"), n.new("ratio", 1), n.new("token")
    z_entry, z_ratio, z_token = n.z3(entry), n.z3(ratio), n.z3(token)
    given = (
        *n.given,
        n.z3(need.visible(entry, query, ratio)),
        z_entry * z_ratio <= z_token,
        z_token < (z_entry + 1) * z_ratio,
    )
    shown = {"entry": z_entry, "query": n.z3(query), "token": z_token, "ratio": z_ratio}
    yield Question("", given, z_token <= n.z3(query), shown)


@theorem("S-2", EVERY)
def tail_is_empty_iff_nothing_overlaps(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """On a boundary behind the first group, the tail is empty iff the look-back is 0."""
    for where, n, group in _groups(geometries, Shape.OPEN_GROUP):
        times = n.new("times", 1)
        start, end = n.span(group.need(times * group.ratio))
        claim = (start == end) == (n.z3(group.lookback) == 0)
        shown = {"ratio": n.z3(group.ratio), "look-back": n.z3(group.lookback), "tail from": start}
        yield Question(where, tuple(n.given), claim, shown)


@theorem("S-2", SIZES)
def forms_partition_the_prefix(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Each token before a position is in exactly one form, folded or raw, and the tail joins."""
    del geometries
    n = Numbers()
    position, ratio = n.new("position"), n.new("ratio", 1)
    lookback, token = n.new("lookback"), n.z3(n.new("token"))
    end = n.z3(need.entries_end(position, ratio))
    folded = need.entries(position, ratio)
    kept = n.z3(need.tail_start(folded, ratio, lookback))
    whole = z3.And(0 <= token, token < end)
    raw = z3.And(end <= token, token < n.z3(position))
    claim = z3.And(
        z3.Xor(whole, raw) == (token < n.z3(position)),
        z3.Not(z3.And(whole, raw)),
        end <= n.z3(position),
        z3.And(0 <= kept, kept <= end),
    )
    yield Question("", tuple(n.given), claim, _shown())


@theorem("S-0", EVERY)
def what_is_needed_lies_before(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """What a group needs, and what it does not need before and behind it, partition the prefix."""
    for shape in Shape:
        for where, n, group in _groups(geometries, shape):
            position = n.new("position")
            start, end = n.span(group.need(position))
            claim = z3.And(0 <= start, start <= end, end <= n.z3(position))
            yield Question(where, tuple(n.given), claim, {"position": n.z3(position)})


def _groups(
    geometries: tuple[Geometry, ...],
    shape: Shape,
) -> Iterator[tuple[str, Numbers, CacheGroup]]:
    """Yield every group of a shape, each with numbers of its own, and one of any size."""
    for geometry in geometries:
        for group in geometry.groups:
            if group.shape is shape:
                yield f"{geometry.name}, {group.name}", Numbers(), group
    numbers = Numbers()
    yield f"any {shape.value}", numbers, symbolic(numbers, shape)


def _needed(n: Numbers, group: CacheGroup, token: Expression) -> Expression:
    start, end = n.span(group.need(n.new("position")))
    return z3.And(start <= token, token < end)


def _reads(n: Numbers, group: CacheGroup, folded: Expression, entry: Expression) -> Expression:
    """Say that the fold of an entry, when ``folded`` there are, reads a token that is there."""
    position, token = n.z3(n.new("position")), n.z3(n.new("token"))
    first = entry * n.z3(group.ratio) - n.z3(group.lookback)
    last = (entry + 1) * n.z3(group.ratio) - 1
    return z3.And(entry >= folded, token < position, first <= token, token <= last)


def _shown() -> dict[str, Expression]:
    return {name: z3.Int(name) for name in ("position", "token")}


THEOREMS = (
    products_are_ordered,
    entries_needed_are_entries_read,
    window_needed_is_window_read,
    chunk_needed_is_chunk_read,
    tail_needed_is_read_by_a_fold,
    index_needs_rows_for_its_entries,
    snapshot_needs_everything,
    visible_entries_are_counted,
    nobody_sees_the_future,
    tail_is_empty_iff_nothing_overlaps,
    forms_partition_the_prefix,
    what_is_needed_lies_before,
)
