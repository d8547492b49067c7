"""What holds of a geometry at every position, proved with z3 or refuted with numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fivestate.checker.plan.arithmetic import Formula, formula, known, number, z3
from fivestate.spec.language import Term
from fivestate.spec.need import (
    chunk_start,
    entries_end,
    resume_limit,
    round_down,
    tail_start,
    visible,
    visible_entries,
    window_start,
)
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Shape

TIMEOUT_MS = 20_000


@dataclass(frozen=True)
class Proof:
    """One claim about every position.

    Attributes:
        claim: the claim in words.
        proved: whether z3 found that it cannot be false.
        counterexample: numbers for which it is false, or that z3 did not finish.
    """

    claim: str
    proved: bool
    counterexample: str = ""


P, K = z3.Int("position"), z3.Int("row")
_POSITION = number("position")


def proofs(geometry: Geometry) -> Iterator[Proof]:
    """Prove what the theory of reuse takes for granted, of this geometry."""
    for group in geometry.groups:
        yield prove(f"{group.name}: what is needed is exactly what attention reads", *_reads(group))
    step = geometry.scheduler_block_size
    sizes = [group.block_size for group in geometry.voting]
    whole = z3.And(*(P % size == 0 for size in sizes))
    yield prove(f"no step under {step} is whole blocks in every group", P > 0, whole, P < step)
    yield prove(
        f"a multiple of {step} is whole blocks in every group, never half of one",
        P % step == 0,
        z3.Not(whole),
    )
    hashed = geometry.hash_block_size
    yield prove(
        f"a hash covers {hashed} tokens, and every block is whole hashes",
        z3.Or(*(K == size for size in sizes)),
        K % hashed != 0,
    )
    yield _look_back(step)
    for group in geometry.groups:
        yield _pages(group)
    yield descent(peek=0)


def prove(claim: str, *negated: Formula) -> Proof:
    """Return whether the conditions, which together would refute a claim, have no solution."""
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.add(P >= 0, K >= 0, *negated)
    match solver.check():
        case z3.unsat:
            return Proof(claim, proved=True)
        case z3.sat:
            model = solver.model()
            numbers = ", ".join(f"{each} = {model[each]}" for each in sorted(model, key=str))
            return Proof(claim, proved=False, counterexample=numbers)
        case _:
            return Proof(claim, proved=False, counterexample="z3 did not finish")


def _reads(group: CacheGroup) -> Iterator[Formula]:
    """Yield what would refute that a row is needed iff attention, or a later fold, reads it."""
    ratio, window = known(group.ratio), known(group.window)
    start: Term
    end: Term = _POSITION
    match group.shape:
        case Shape.PREFIX:
            start, end = known(0), entries_end(_POSITION, ratio)
            entry = K / group.ratio
            seen = formula(visible(number("entry"), _POSITION - 1, ratio))
            read = z3.substitute(seen, (z3.Int("entry"), entry))
            counted = entry < formula(visible_entries(_POSITION - 1, ratio))
            yield P > 0
            yield z3.Or(read != counted, read != z3.And(K >= formula(start), K < formula(end)))
            return
        case Shape.POINT:
            start, read = known(0), K < P
        case Shape.RUN:
            start, read = window_start(_POSITION, window), z3.And(K < P, P - K < group.window)
        case Shape.CHUNK:
            start = chunk_start(_POSITION, window)
            read = z3.And(K < P, K / group.window == P / group.window)
        case Shape.OPEN_GROUP:
            start = tail_start(_POSITION // ratio, ratio, known(group.lookback))
            needed = z3.And(K >= formula(start), K < formula(end))
            read_by_first, read_by_any = (
                z3.And(
                    (entry + 1) * group.ratio > P,
                    entry * group.ratio - group.lookback <= K,
                    K < P,
                )
                for entry in (P / group.ratio, z3.Int("entry"))
            )
            yield z3.Int("entry") >= 0
            yield z3.Or(z3.And(needed, z3.Not(read_by_first)), z3.And(read_by_any, z3.Not(needed)))
            return
    yield read != z3.And(K >= formula(start), K < formula(end))


def _look_back(step: int) -> Proof:
    """Dropping a drafter's look-back before rounding never loses more than dropping it after."""
    fork, back = number("fork"), number("lookback")
    limit = resume_limit(fork, fork + 1, back)
    right = formula(round_down(limit, known(step)))
    rounded = round_down(fork, known(step)) - back
    late = formula(round_down(rounded, known(step)))
    z_fork, z_back = z3.Int("fork"), z3.Int("lookback")
    room = z3.Or(right + z_back <= z_fork, right == 0)
    return prove(
        "the look-back is dropped before rounding: never less is reused, and it always fits",
        z_fork >= 0,
        z_back >= 0,
        z3.Or(right < late, z3.Not(room)),
    )


def _pages(group: CacheGroup) -> Proof:
    """Pages of a pool are aligned, and no byte belongs to two."""
    size, align = group.page_size_bytes, group.page_alignment
    one, other, byte = z3.Ints("one other byte")
    payload = group.entries_per_block * group.bytes_per_entry
    inside = [z3.And(byte >= block * size, byte < block * size + payload) for block in (one, other)]
    return prove(
        f"{group.name}: pages of {size:,} bytes are aligned to {align} and disjoint",
        one >= 0,
        other > one,
        z3.Or(z3.And(*inside), (one * size) % align != 0),
    )


def descent(*, peek: int) -> Proof:
    """Asking each group for its largest point below a candidate passes no common point.

    With ``peek`` a group looks so many tokens past the candidate and then drops them, as is done
    for drafters: it may then answer a position that is not in its set, and the claim fails.
    Source: domain §1.4.
    """
    member = z3.Function("in the set", z3.IntSort(), z3.BoolSort())
    found, common, candidate = z3.Ints("found common candidate")
    x = z3.Int("x")
    largest = z3.And(
        member(found),
        found <= candidate + peek,
        z3.ForAll(x, z3.Implies(z3.And(member(x), x <= candidate + peek), x <= found)),
    )
    answer = found - peek
    passes = z3.And(member(common), common <= candidate, common > answer)
    outside = z3.Not(member(answer))
    return prove(
        "descent: a group's answer is in its set, and passes no point that all groups share",
        largest,
        candidate >= 0,
        common >= 0,
        z3.Or(passes, outside),
    )
