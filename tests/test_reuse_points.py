"""Sets of resume points, the descent, the ledger, routing, and the arithmetic on traced values."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivestate.spec import need
from fivestate.spec.language import Size
from fivestate.spec.language.ground import evaluate
from fivestate.spec.language.trees import Apply, Constant, Node
from fivestate.spec.reuse import (
    Asked,
    Availability,
    CacheGroup,
    Consumer,
    Extent,
    Identity,
    Kind,
    Place,
    Span,
    Tier,
    Why,
    classify,
    ledger,
    resident,
    stored,
)
from fivestate.spec.reuse.availability import Abi
from fivestate.spec.reuse.checks import (
    all_groups,
    disjoint,
    right_bytes,
    same_abi,
    same_prefix,
    whole_block,
)
from fivestate.spec.reuse.files import preset, presets
from fivestate.spec.reuse.holdings import hold
from fivestate.spec.reuse.points import (
    descend,
    points,
    points_by_definition,
    usable_by_definition,
)
from fivestate.spec.reuse.route import route
from fivestate.spec.reuse.windows import Keep, bill
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW

TOY = preset("toy")
SHAPES = [
    *TOY.groups,
    CacheGroup(name="chunk", state=WINDOW, chunked=True, block_size=2, window=5),
    CacheGroup(name="state", state=COMPRESSED, recurrent=True, block_size=3),
    CacheGroup(name="wide", state=WINDOW, block_size=3, window=1),
    CacheGroup(name="long", state=TAIL, block_size=1, ratio=3, lookback=5),
]


def largest(members: frozenset[int], below: int) -> int:
    return max(member for member in members if member <= below)


def sets_with_zero(highest: int) -> list[frozenset[int]]:
    return [
        frozenset({0, *(n for n in range(1, highest + 1) if mask >> (n - 1) & 1)})
        for mask in range(2**highest)
    ]


def test_descent_gives_the_largest_common_point_of_any_three_sets() -> None:
    sets = sets_with_zero(5)
    for triple in product(sets, repeat=3):
        common = frozenset.intersection(*triple)
        operators = [partial(largest, members) for members in triple]
        for start in range(6):
            assert descend(operators, start) == largest(common, start)


def test_looking_one_unit_past_the_candidate_needs_a_condition() -> None:
    members = frozenset({0, 3})

    def peek(below: int) -> int:
        """Find the largest point one past the candidate, then drop one, as is done for drafts."""
        return max(largest(members, below + 1) - 1, 0)

    assert descend([peek], 4) not in members


spans = st.lists(
    st.builds(lambda a, n: Span(a, a + n), st.integers(0, 20), st.integers(1, 20)), max_size=4
)


@settings(max_examples=2_000, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(SHAPES), spans, st.integers(0, 30), st.integers(1, 6))
def test_the_closed_form_is_the_set(
    group: CacheGroup, held: list[Span], limit: int, step: int
) -> None:
    if group.recurrent:
        held = [Span(0, span.end) for span in held]
    defined = points_by_definition(group, held, limit, step)
    closed = points(group, held)
    assert closed.largest(limit, step) == max(defined)
    assert {p for p in range(0, limit + 1, step) if closed.has(p)} == defined


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(st.tuples(*[spans] * len(TOY.groups)), st.integers(0, 30))
def test_the_descent_is_the_definition_on_toy(held: tuple[list[Span], ...], fork: int) -> None:
    pairs = list(zip(TOY.groups, held, strict=True))
    step = TOY.scheduler_block_size
    sets = [points_by_definition(group, of, fork, step) for group, of in pairs]
    closed = {(0, group.name): points(group, of) for group, of in pairs}
    assert all_groups(closed, fork, step)[0] == usable_by_definition(sets)


def test_every_availability_of_toy_gives_the_verdict_of_the_definition() -> None:
    names = ("csa", "index", "swa", "csa_state")
    blocks = [[Span(0, 4), Span(4, 8)], [Span(0, 4), Span(4, 8)]]
    blocks += [[Span(2, 4), Span(6, 8)], [Span(2, 4), Span(6, 8)]]
    cells = [(name, span) for name, of in zip(names, blocks, strict=True) for span in of]
    whole = {"hca": (resident(0, 8),), "hca_state": (resident(0, 8),)}
    kinds = dict.fromkeys(Kind, 0)
    for states in product((None, Tier.DEVICE, Tier.DISK), repeat=len(cells)):
        copies: dict[str, tuple[Extent, ...]] = dict(whole)
        for (name, span), tier in zip(cells, states, strict=True):
            if tier is not None:
                copies[name] = (*copies.get(name, ()), Extent(span, tier))
        verdict = classify(TOY, Asked(8), Availability((copies,)))
        as_it_stands = all(
            8
            in points_by_definition(
                g, [c.span for c in copies.get(g.name, ()) if c.tier is Tier.DEVICE], 8
            )
            for g in TOY.groups
        )
        entries = [c.span for c in copies.get("csa", ())]
        resumable = max(points_by_definition(TOY.group("csa"), entries, 8, 4)) > 0
        expected = Kind.HIT if as_it_stands else Kind.PARTIAL if resumable else Kind.MISS
        assert verdict.kind is expected, states
        kinds[verdict.kind] += 1
    assert sum(kinds.values()) == 3**8
    assert all(kinds.values()), kinds


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.tuples(*[spans] * len(TOY.groups)), st.integers(0, 10), st.sampled_from(Tier))
def test_the_ledger_partitions_every_group(
    held: tuple[list[Span], ...], blocks: int, tier: Tier
) -> None:
    copies = {
        group.name: tuple(Extent(span, tier) for span in of)
        for group, of in zip(TOY.groups, held, strict=True)
    }
    resume = blocks * TOY.scheduler_block_size
    lines = ledger((hold(TOY, copies, Consumer()),), resume)
    for group in TOY.groups:
        mine = [line for line in lines if line.group == group.name]
        ends = [0, *(line.span.end for line in mine)]
        assert [line.span.start for line in mine] == ends[:-1]
        assert ends[-1] == resume
        needed = {t for line in mine if line.needed for t in range(*line.span)}
        assert needed == set(range(*group.need(resume)))


def test_a_prompt_that_matches_to_its_end_computes_its_last_token() -> None:
    group = CacheGroup(name="full", state=COMPRESSED, block_size=1)
    held = Availability(({"full": (resident(0, 8),)},))
    geometry = type(TOY)("one", (group,))
    verdict = classify(geometry, Asked(8, 8), held)
    assert (verdict.kind, verdict.resume) == (Kind.HIT, 7)
    assert whole_block(geometry, Asked(8, 8)) == (7, verdict.reasons[:1])
    assert verdict.reasons[0].why is Why.LAST_TOKEN


def test_each_check_fails_with_reasons_of_its_own() -> None:
    group = CacheGroup(name="full", state=COMPRESSED, block_size=4, page_alignment=16)
    asked = Identity(salt="a", adapter="b")
    assert [r.why for r in same_prefix(Identity(), asked)] == [Why.IDENTITY] * 2
    old = Extent(Span(0, 4), abi=Abi("0", "x", "fp8", 7))
    found = [str(reason) for reason in same_abi(group, old, Abi())]
    assert found == [
        "H-2 abi(0≠1) in full",
        "H-2 layout(x≠1) in full",
        "H-2 dtype(fp8≠bf16) in full",
        "H-2 weights(7≠1) in full",
    ]
    places = right_bytes(group, Place(8, 24, 16, 2, 0, 40))
    assert {reason.why for reason in places} == {Why.MISALIGNED, Why.OUT_OF_REGION}
    assert not right_bytes(group, Place(16, 32, 20, 2, 16, 68))
    pairs = disjoint([("a", Span(0, 10)), ("b", Span(2, 3)), ("c", Span(5, 6))])
    assert len(pairs) == 2


def test_an_index_out_of_step_is_not_repacked_into_shape() -> None:
    old = Extent(Span(0, 8), abi=Abi(layout="old"), generation=1)
    kernel = Consumer(Abi(), frozenset({("old", "1")}))
    copies = {"csa": (resident(0, 8),), "index": (old,)}
    held = hold(TOY, copies, kernel)["index"]
    assert [reason.why for reason in held.reasons] == [Why.INDEX_OUT_OF_STEP]
    assert not held.lots


def test_bounded_replay_is_approximate_and_never_a_hit() -> None:
    shape = preset("dsv4-flash")
    copies = {g.name: (stored(0, 16_384),) for g in shape.groups if g.name != "swa"}
    held = Availability((copies,))
    exact = classify(shape, Asked(16_384), held)
    from fivestate.spec.reuse import Policy  # noqa: PLC0415

    bounded = classify(shape, Asked(16_384), held, policy=Policy(approximate=True))
    assert exact.exact
    assert exact.cost.replay_tokens == 43 * 127
    assert not bounded.exact
    assert bounded.cost.replay_tokens == 128
    assert bounded.kind is Kind.PARTIAL


@pytest.mark.parametrize("name", presets())
def test_each_window_policy_has_its_bill(name: str) -> None:
    shape = preset(name)
    bills = {keep: bill(shape, keep, 65_536, 8_192, shape.scheduler_block_size) for keep in Keep}
    full, periodic, zero = bills[Keep.FULL], bills[Keep.PERIODIC], bills[Keep.ZERO]
    assert full.replay_tokens <= periodic.replay_tokens <= zero.replay_tokens
    assert zero.stored_bytes <= periodic.stored_bytes <= full.stored_bytes
    assert not bills[Keep.BOUNDED].exact


def test_routing_does_not_depend_on_chunks_and_breaks_ties_by_position() -> None:
    scores = [0, 3, 0, 3, 0]
    assert route(scores, 19, 4, 3) == (0, 1, 3)
    assert route(scores[:2], 9, 4, 3) == route(scores, 9, 4, 3) == (0, 1)


def value(node: Node, numbers: dict[str, int]) -> int:
    """Evaluate a traced value."""
    match node:
        case Constant(name):
            return numbers[name]
        case Apply(operator, arguments, kind):
            below = tuple(_literal(value(a, numbers)) for a in arguments)
            return evaluate(Apply(operator, below, kind), ())
        case _:
            return evaluate(node, ())


def _literal(number: int) -> Node:
    from fivestate.spec.language.trees import Integer, Literal  # noqa: PLC0415

    return Literal(number, Integer())


FUNCTIONS = {
    "entries": 2,
    "tail_start": 3,
    "window_start": 2,
    "chunk_start": 2,
    "entries_end": 2,
    "visible": 3,
    "visible_entries": 2,
    "round_down": 2,
    "round_up": 2,
    "blocks": 2,
    "resume_limit": 3,
    "replay_start": 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_arithmetic_is_the_same_for_numbers_and_traced_values(name: str) -> None:
    function = getattr(need, name)
    names = "abc"[: FUNCTIONS[name]]
    term = function(*(Size(each, "a number", 0, 100) for each in names))
    for numbers in product(range(1, 9), repeat=len(names)):
        traced = value(term.node, dict(zip(names, numbers, strict=True)))
        assert traced == function(*numbers)
