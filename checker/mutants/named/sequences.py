"""Faults of one sequence: what is folded, let go and resumed from."""

from __future__ import annotations

from dataclasses import replace

from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.named.amend import amended, fault, without
from fivestate.spec.language import require
from fivestate.spec.language.tracing import Action
from fivestate.spec.need import entries, window_start
from fivestate.spec.sequence import RATIO, SEQUENCE, SPAN, Chunk, Entry, Sequence


def _trim_to_entries(s: Sequence) -> None:
    require(spare=s.tail < s.folded * RATIO)
    s.tail = s.folded * RATIO


def _slide_by_written(s: Sequence) -> None:
    require(passed=s.window < window_start(s.written, SPAN))
    s.window = window_start(s.written, SPAN)


def _slide_one_further(s: Sequence) -> None:
    require(passed=s.window < window_start(s.verified + 1, SPAN))
    s.window = window_start(s.verified + 1, SPAN)


def _fold_drafts(s: Sequence, i: Entry) -> None:
    require(whole=(i + 1) * RATIO <= s.written)


def _fold_half(s: Sequence, i: Entry) -> None:
    require(whole=i * RATIO < s.verified)


def _write_chunk(s: Sequence, n: Chunk) -> None:
    require(folded_up=(s.folded == entries(s.verified, RATIO)) | (n >= RATIO))


def resume_by_lengths() -> Action:
    """Return a resumption that compares lengths: what was let go is not asked for."""
    shorter = without("resume", "tail", SEQUENCE)
    kept = tuple(guard for guard in shorter.guards if guard.name != "window")
    return replace(shorter, guards=kept)


SEQUENCES: tuple[Mutant, ...] = (
    fault(
        "trim without look-back",
        "The tail is cut at the last entry, and the next fold lacks the rows it overlaps.",
        "domain §0(2)",
        amended("trim", _trim_to_entries, SEQUENCE),
        machine=SEQUENCE,
    ),
    fault(
        "slide by written length",
        "The window follows the drafts, and a rejected one has cost rows for good.",
        "seed 000 §3(3)",
        amended("slide", _slide_by_written, SEQUENCE),
        machine=SEQUENCE,
    ),
    fault(
        "window one too short",
        "The query itself is not counted into the window.",
        "domain §9, boundary lengths W±1",
        amended("slide", _slide_one_further, SEQUENCE),
        machine=SEQUENCE,
    ),
    fault(
        "fold of drafts",
        "A group is folded that has not been accepted.",
        "domain §4.1",
        amended("fold", _fold_drafts, SEQUENCE),
        machine=SEQUENCE,
    ),
    fault(
        "fold of half a group",
        "A group is folded before it is whole.",
        "seed 000 §5(1)",
        amended("fold", _fold_half, SEQUENCE),
        machine=SEQUENCE,
    ),
    fault(
        "split by chunks",
        "Whether entries exist when a token is computed depends on the chunk it comes in.",
        "seed 000 §3(1)",
        amended("write", _write_chunk, SEQUENCE),
        machine=SEQUENCE,
    ),
    fault(
        "resume at the shortest length",
        "Lengths are compared, and nobody asks whether the rows below them are still there.",
        "seed 000 §5(3); design: never min-of-lengths",
        resume_by_lengths(),
        machine=SEQUENCE,
    ),
    fault(
        "index ahead of its entries",
        "An index row is made for an entry that does not exist yet.",
        "seed 000 §3(4)",
        without("index", "folded", SEQUENCE),
        machine=SEQUENCE,
    ),
)
