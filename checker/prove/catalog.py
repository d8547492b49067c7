"""The catalog: every theorem, by name, in the order in which they are told."""

from __future__ import annotations

from fivestate.checker.prove import counting
from fivestate.checker.prove.safety import ANY_SIZE, CACHE, HASH_ONLY, HOMOGENEOUS, Safety
from fivestate.checker.prove.theorem import Question, Theorem, theorem
from fivestate.checker.prove.theorems import blocks, granularity, places, points, reads
from fivestate.spec.language.errors import ModelError, did_you_mean
from fivestate.spec.reuse.geometry import Geometry


@theorem("I-1", ANY_SIZE)
def counts_change_by_what_changes(geometries: tuple[Geometry, ...]) -> list[Question]:
    """A count changes by what becomes of the elements that a step touches: the law of counting."""
    del geometries
    start, step = counting.law_of_delta()
    return [Question("no elements", (), start), Question("one more", (), step)]


@theorem("I-1", ANY_SIZE)
def counts_are_zero_of_nothing(geometries: tuple[Geometry, ...]) -> list[Question]:
    """A count is never negative, and zero just where nothing is counted."""
    del geometries
    start, step = counting.law_of_none()
    return [Question("no elements", (), start), Question("one more", (), step)]


def _by_induction(safety: Safety) -> list[Theorem]:
    claims = sorted((*safety.invariants, *safety.steps), key=lambda claim: claim.clause)
    return [
        Theorem(claim.clause, claim.name, claim.sentence, safety.scope, safety=safety.name)
        for claim in claims
    ]


THESIS = (
    Theorem(
        "R-1",
        "a_hash_hit_is_enough",
        "With one group, one tier and one layout a hash hit may be used as it is: I-0 to I-5 hold "
        "of every state.",
        HOMOGENEOUS.scope,
        safety=HOMOGENEOUS.name,
    ),
    Theorem(
        "R-1",
        "a_hash_hit_is_not_enough",
        "With a window beside the compressed KV it may not: a lease takes a cell that is gone.",
        HASH_ONLY.scope,
        fails=True,
        safety=HASH_ONLY.name,
    ),
)

EMPTY = Theorem(
    "I-5",
    "no_obligation_is_empty",
    "Every action can be taken in some state that looks right: no proof about it is vacuous.",
    "two prefixes and two requests, where a state is looked for; every theorem by induction",
    safety=CACHE.name,
)

ARITHMETIC = (
    *granularity.THEOREMS,
    *reads.THEOREMS,
    *blocks.THEOREMS,
    *places.THEOREMS,
    *points.THEOREMS,
    counts_change_by_what_changes,
    counts_are_zero_of_nothing,
)

THEOREMS = {t.name: t for t in (*_by_induction(CACHE), EMPTY, *THESIS, *ARITHMETIC)}


def named(names: list[str], *, everything: bool = False) -> list[Theorem]:
    """Return theorems by name; where none is named, the default ones, or everything.

    Raises:
        ModelError: there is none of a name.
    """
    for name in names:
        if name not in THEOREMS:
            raise ModelError(f"no theorem {name!r}; {did_you_mean(name, THEOREMS)}")
    if names:
        return [THEOREMS[name] for name in dict.fromkeys(names)]
    return [each for each in THEOREMS.values() if each.default or everything]
