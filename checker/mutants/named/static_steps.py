"""Faults of a captured step that recovers inside: what is captured, and what a replay reads."""

from __future__ import annotations

from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.named.amend import YES, amended, fault, without
from fivestate.spec.language import Term, exists, forall, implies, min_, require
from fivestate.spec.static_step import LANES, STATIC_STEP, Row, StaticStep


def _capture_decides(s: StaticStep) -> None:
    s.lanes_run = exists(Row, lambda b: s.lanes[b] > 0)


def _vacant_rows_as_they_were(s: StaticStep) -> None:
    require(filled=_taken_filled(s))


def _taken_filled(s: StaticStep) -> Term:
    return forall(Row, lambda b: implies(s.taken[b], s.live[b] & (s.lanes[b] == s.owed[b])))


def _as_much_as_fits(s: StaticStep, b: Row) -> None:
    require(stale=(s.live[b] != s.taken[b]) | (s.lanes[b] != min_(s.owed[b], LANES)), fits=YES)
    s.lanes[b] = min_(s.owed[b], LANES)


def _as_long_as_it_is_live(s: StaticStep) -> None:
    require(filled=forall(Row, lambda b: s.live[b] == s.taken[b]))


STATIC_STEPS: tuple[Mutant, ...] = (
    fault(
        "lanes decided at capture",
        "The lanes are captured only if somebody owes something then, and never run again.",
        "domain §1.10",
        amended("capture", _capture_decides, STATIC_STEP),
        machine=STATIC_STEP,
    ),
    fault(
        "padding that was not reset",
        "A row whose request has left still has its buffers, and the replay computes it.",
        "domain §1.10",
        amended("replay", _vacant_rows_as_they_were, STATIC_STEP),
        machine=STATIC_STEP,
    ),
    fault(
        "more owed than the shape has lanes for",
        "The lanes do what they can, and the token is computed without the rest.",
        "seed 000 §6(4)",
        amended("fill", _as_much_as_fits, STATIC_STEP),
        amended("replay", _as_long_as_it_is_live, STATIC_STEP),
        machine=STATIC_STEP,
    ),
    fault(
        "buffers filled under a replay",
        "The next step's arguments are written while this one's are being read.",
        "seed 000 §6(4)",
        without("fill", "landed", STATIC_STEP),
        machine=STATIC_STEP,
    ),
    fault(
        "rows changed under a replay",
        "A request leaves its row while a replay computes it.",
        "seed 003 §5.4",
        without("part", "landed", STATIC_STEP),
        machine=STATIC_STEP,
    ),
)
