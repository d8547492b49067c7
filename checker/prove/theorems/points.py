"""Resume points: the descent that engines use, and the shortcuts that look like it (H-3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import z3  # type: ignore[import-untyped]  # it ships no types

from fivestate.checker.prove.numbers import Numbers
from fivestate.checker.prove.signature import Expression, numbers
from fivestate.checker.prove.theorem import Question, theorem
from fivestate.spec import need
from fivestate.spec.reuse.geometry import Geometry

ANY_SETS = "any number of groups, any sets that contain 0, all positions"
TWO = "two groups, all positions"
Points = Callable[[Expression], Expression]


@theorem("H-3", ANY_SETS)
def descent_passes_no_common_point(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Asking a group for its largest point not above the candidate passes no point all share.

    So the candidate stays at or above the largest common point: the invariant of the descent.
    """
    del geometries
    has = _points("has")
    common, candidate, answer = numbers("common candidate answer")
    given = (has(common), 0 <= common, common <= candidate, *_largest(has, candidate, answer))
    shown = {"common": common, "candidate": candidate, "answer": answer}
    yield Question("", given, common <= answer, shown)


@theorem("H-3", ANY_SETS)
def descent_ends_at_a_common_point(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A candidate that no group lowers is in every group's set."""
    del geometries
    has, candidate = _points("has"), z3.Int("candidate")
    given = (candidate >= 0, *_largest(has, candidate, candidate))
    yield Question("", given, has(candidate), {"candidate": candidate})


@theorem("H-3", ANY_SETS)
def descent_ends(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """An answer is never above the candidate nor below 0, so the descent ends."""
    del geometries
    has = _points("has")
    candidate, answer = numbers("candidate answer")
    given = (candidate >= 0, has(0), *_largest(has, candidate, answer))
    claim = z3.And(0 <= answer, answer <= candidate)
    yield Question("", given, claim, {"candidate": candidate, "answer": answer})


@theorem("H-3", TWO, fails=True)
def least_length_is_not_usable(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """The smallest of the groups' longest lengths need not be in every set (B10)."""
    del geometries
    yield _least_length(closed=False)


@theorem("H-3", f"{TWO}; sets that contain what is below")
def least_length_is_usable_where_sets_are_closed(
    geometries: tuple[Geometry, ...],
) -> Iterator[Question]:
    """Where every set contains all that is below, the smallest of the lengths is in every set."""
    del geometries
    yield _least_length(closed=True)


@theorem("H-3", "one group, all positions, any number of tokens that are peeked at", fails=True)
def peeking_and_dropping_can_miss(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """To look some tokens past the candidate and drop them can answer what is in no set.

    A recurrent snapshot cannot be rewound by the tokens that are dropped (vLLM #43559).
    """
    del geometries
    yield _peek(condition=False)


@theorem("H-3", "one group, all positions; the set also has what is dropped to")
def peeking_and_dropping_is_right_where_rows_can_be_dropped(
    geometries: tuple[Geometry, ...],
) -> Iterator[Question]:
    """Peeking and dropping answers points of the set if from every point so many can be dropped."""
    del geometries
    yield _peek(condition=True)


@theorem("H-3", "all positions, all sizes")
def a_window_is_no_prefix(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """Rows from ``start`` on serve a window just from ``start`` and its width less one on."""
    del geometries
    n = Numbers()
    position, start, window = n.new("position"), n.new("start", 1), n.new("window", 2)
    first = n.z3(need.window_start(position, window))
    served = z3.Or(first >= n.z3(position), first >= n.z3(start))
    late = n.z3(position) >= n.z3(start) + n.z3(window) - 1
    shown = {"position": n.z3(position), "start": n.z3(start), "window": n.z3(window)}
    claim = served == z3.Or(late, n.z3(position) == 0)
    yield Question("", tuple(n.given), claim, shown)


@theorem("H-3", "all positions, all sizes, any number of layers")
def replay_starts_early_enough(geometries: tuple[Geometry, ...]) -> Iterator[Question]:
    """A replay from its start makes rows right in one layer more than a replay of one layer less.

    Rows right from ``first`` on in every layer below make a layer's rows right from ``first`` and
    the window less one on: each layer costs as much, which is what the start allows for.
    """
    del geometries
    n = Numbers()
    first, window, layers = n.new("first"), n.new("window", 1), n.new("layers", 1)
    here = n.z3(need.replay_start(first, window, layers + 1))
    below = n.z3(need.replay_start(first, window, layers))
    claim = z3.Or(here + n.z3(window) - 1 == below, z3.And(here == 0, below <= n.z3(window) - 1))
    shown = {"first": n.z3(first), "window": n.z3(window), "layers": n.z3(layers)}
    yield Question("one layer more", tuple(n.given), claim, shown)
    one = n.z3(need.replay_start(first, window, layers - layers + 1))
    yield Question("one layer", tuple(n.given), one == n.z3(first), shown)


def _points(name: str) -> Points:
    points: Points = z3.Function(name, z3.IntSort(), z3.BoolSort())
    return points


def _largest(has: Points, limit: Expression, answer: Expression) -> tuple[Expression, ...]:
    """Say that an answer is the largest point of a set that is not above a limit."""
    other = z3.Int("any point")
    no_larger = z3.Implies(z3.And(has(other), other <= limit), other <= answer)
    return has(answer), answer <= limit, z3.ForAll([other], no_larger)


def _least_length(*, closed: bool) -> Question:
    sets = [_points("has"), _points("also has")]
    lengths = numbers("length other")
    limit, low, high = numbers("limit low high")
    given = [limit >= 0]
    for has, length in zip(sets, lengths, strict=True):
        given += [has(0), length >= 0, *_largest(has, limit, length)]
        if closed:
            below = z3.Implies(z3.And(0 <= low, low <= high, has(high)), has(low))
            given.append(z3.ForAll([low, high], below))
    least = z3.If(lengths[0] <= lengths[1], lengths[0], lengths[1])
    claim = z3.And([has(least) for has in sets])
    shown = {"longest of one": lengths[0], "of the other": lengths[1], "least": least}
    return Question("", tuple(given), claim, shown)


def _peek(*, condition: bool) -> Question:
    has = _points("has")
    candidate, answer, peek = numbers("candidate answer peek")
    point = z3.Int("a point")
    given = [candidate >= 0, peek >= 1, has(0), *_largest(has, candidate + peek, answer)]
    if condition:
        dropped = z3.Implies(z3.And(has(point), point >= peek), has(point - peek))
        given.append(z3.ForAll([point], dropped))
    resumed = z3.If(answer >= peek, answer - peek, 0)
    claim = z3.And(has(resumed), resumed <= candidate)
    shown = {"candidate": candidate, "peeked": peek, "found": answer, "resumed at": resumed}
    return Question("", tuple(given), claim, shown)


THEOREMS = (
    descent_passes_no_common_point,
    descent_ends_at_a_common_point,
    descent_ends,
    least_length_is_not_usable,
    least_length_is_usable_where_sets_are_closed,
    peeking_and_dropping_can_miss,
    peeking_and_dropping_is_right_where_rows_can_be_dropped,
    a_window_is_no_prefix,
    replay_starts_early_enough,
)
