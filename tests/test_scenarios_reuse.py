"""Faults reported in public, as verdicts: the right one from the file, a naive one that differs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from fivestate.spec.language import ModelError
from fivestate.spec.reuse import (
    Abi,
    Asked,
    Availability,
    CacheGroup,
    Consumer,
    Extent,
    Geometry,
    Identity,
    Kind,
    Means,
    Policy,
    Role,
    Span,
    Tier,
    Verdict,
    Why,
    classify,
    resident,
    stored,
)
from fivestate.spec.reuse.points import points
from fivestate.spec.reuse.scenarios import Scenario, read_scenarios
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

FOLDER = Path(__file__).parent / "scenarios"
SCENARIOS = read_scenarios((FOLDER / "public-faults.jsonl").read_text("utf-8"))
TABLE = tomllib.loads((FOLDER / "table.toml").read_text("utf-8"))


def entries(block: int, ratio: int = 1, name: str = "full") -> CacheGroup:
    return CacheGroup(name=name, state=COMPRESSED, block_size=block, ratio=ratio)


def window(size: int, block: int = 4, role: Role = Role.REBUILDABLE) -> CacheGroup:
    return CacheGroup(name="swa", state=WINDOW, block_size=block, window=size, role=role)


def snapshots(block: int = 1) -> CacheGroup:
    return CacheGroup(name="state", state=COMPRESSED, block_size=block, recurrent=True)


def ask(*groups: CacheGroup, fork: int, **copies: Extent) -> Verdict:
    """Classify on one rank, with one copy of each group."""
    return ask_of(groups, fork, copies)


def ask_of(
    groups: Sequence[CacheGroup], fork: int, copies: Mapping[str, Extent], lookback: int = 0
) -> Verdict:
    geometry = Geometry("scenario", tuple(groups), draft_lookback=lookback)
    held = {name: (copy,) for name, copy in copies.items()}
    return classify(geometry, Asked(fork), Availability((held,)))


def steps(verdict: Verdict, means: Means) -> list[tuple[str, Span]]:
    return [(g, s.span) for s in verdict.plan.steps if s.means is means for g in s.groups]


def why(verdict: Verdict) -> set[Why]:
    return {reason.why for reason in verdict.reasons}


def is_right(verdict: Verdict, said: Scenario) -> bool:
    """Compare a verdict with the file: one of its kinds, and its resume point if it gives one."""
    return verdict.kind in said.kinds and (
        "resume=" not in said.right or verdict.resume == said.resume
    )


def b01(said: Scenario) -> None:
    verdict = ask(entries(16, 4), fork=20, full=resident(0, 24))
    assert is_right(verdict, said)
    assert steps(verdict, Means.RECOMPUTE) == [("full", said.spans[0])]
    assert Why.HALF_BLOCK in why(verdict)
    assert not is_right(ask(entries(4, 4), fork=20, full=resident(0, 24)), said)  # naive: 4 tokens


def b02(said: Scenario) -> None:
    groups = [entries(size, name=f"g{size}") for size in (4, 16, 8, 2)]
    copies = {group.name: resident(0, 12) for group in groups}
    verdict = ask_of(groups, 11, copies)
    assert is_right(verdict, said)
    assert Why(said.right.split("reason=")[1].split(",")[0]) in why(verdict)
    assert verdict.numbers.matched == said.number(r"logical_match=(\d+)")
    assert verdict.numbers.feasible == said.number(r"committed_len=(\d+)")
    finest = ask(entries(2), fork=11, full=resident(0, 12))
    assert not is_right(finest, said)  # naive: the unit of hashes


def b03(said: Scenario) -> None:
    verdict = ask_of([entries(16)], 31, {"full": resident(0, 48)}, lookback=4)
    assert is_right(verdict, said)
    assert steps(verdict, Means.RECOMPUTE) == [("full", said.spans[0])]
    rounded_first = ask_of([entries(16)], 31 // 16 * 16, {"full": resident(0, 48)}, lookback=4)
    assert not is_right(rounded_first, said)


def b04(said: Scenario) -> None:
    swa = window(8, role=Role.REQUIRED)
    kept = [Span(4 * i, 4 * i + 4) for i in range(16) if i % 4 in {2, 3}]
    accepted = points(swa, kept)
    for boundary in (16, 32, 48, 64):
        copies = {"full": (resident(0, 64),), "swa": tuple(Extent(span) for span in kept)}
        geometry = Geometry("scenario", (entries(16), swa))
        verdict = classify(geometry, Asked(boundary), Availability((copies,)))
        assert is_right(verdict, said)
        assert accepted.has(boundary)
        assert not any(boundary - 8 == s.start and s.start // 4 % 4 == 0 for s in kept)  # naive


def b06(said: Scenario) -> None:
    verdict = ask(entries(4), window(4), fork=8, full=resident(0, 12))
    assert is_right(verdict, said)
    assert steps(verdict, Means.REPLAY) == [("swa", said.spans[0])]
    assert ask(entries(4), fork=8, full=resident(0, 12)).kind is Kind.HIT  # naive: hash is enough


def b10(said: Scenario) -> None:
    groups = entries(4), window(8, role=Role.REQUIRED)
    held = {"full": resident(0, 12), "swa": resident(0, 8)}
    assert is_right(ask_of(groups, 12, held), said)
    held = {"full": resident(0, 8), "swa": resident(4, 12)}  # valid at 12 only
    variant = ask_of(groups, 12, held)
    assert variant.kind is Kind[said.right_verdict.split("WRONG -> ")[1]]
    lengths = [points(g, [held[g.name].span]).largest(12, 4) for g in groups]
    assert min(lengths) == said.number(r"min=(\d+) is WRONG") != variant.resume  # naive


def b12(said: Scenario) -> None:
    verdict = ask(entries(4), window(8), fork=32, full=resident(0, 32))
    assert is_right(verdict, said)
    assert [group for group, _ in steps(verdict, Means.REPLAY)] == ["swa"]
    hotfix = ask(entries(4), window(8, role=Role.VOLATILE), fork=32, full=resident(0, 32))
    assert not is_right(hotfix, said)


def b15(said: Scenario) -> None:
    assert is_right(ask(snapshots(), fork=5, state=resident(0, 5)), said)
    assert not is_right(ask(snapshots(), fork=5), said)  # naive: both snapshots dropped
    assert not is_right(ask(snapshots(), fork=5, state=resident(0, 7)), said)


def b16(said: Scenario) -> None:
    packed = Extent(Span(6, 10), abi=Abi(layout="packed from cell 0"))
    kernel = Consumer(Abi(layout="cell = position mod 4"))
    can_place = replace(kernel, converters=frozenset({(packed.abi.layout, kernel.abi.layout)}))
    geometry = Geometry("scenario", (window(4, 1, Role.REQUIRED),))
    held = Availability(({"swa": (packed,)},))
    verdict = classify(geometry, Asked(10), held, can_place)
    assert is_right(verdict, said)
    assert steps(verdict, Means.REPACK) == [("swa", Span(7, 10))]
    assert classify(geometry, Asked(10), held, kernel).kind is Kind.MISS
    assert classify(geometry, Asked(10), held, Consumer(packed.abi)).kind is Kind.HIT  # naive


def b17(said: Scenario) -> None:
    stored_prefix = Identity(tokens=(1, 2, 3))
    geometry = Geometry("scenario", (entries(1),))
    held = Availability(({"full": (resident(0, 12),)},), stored_prefix)
    assert is_right(classify(geometry, Asked(3, identity=Identity(tokens=(7, 8, 9))), held), said)
    assert not is_right(classify(geometry, Asked(3, identity=stored_prefix), held), said)


def index(block: int, ratio: int = 1) -> CacheGroup:
    return CacheGroup(
        name="index", state=INDEXER, block_size=block, ratio=ratio, role=Role.REBUILDABLE
    )


def b21(said: Scenario) -> None:
    groups = entries(4, 4), index(4, 4)
    verdict = ask(*groups, fork=16, full=resident(0, 16), index=resident(8, 16))
    assert is_right(verdict, said)
    first, last = said.spans[0]
    assert steps(verdict, Means.REBUILD_INDEX) == [("index", Span(first * 4, last * 4))]
    assert ask(groups[0], fork=16, full=resident(0, 16)).kind is Kind.HIT  # naive: no index


def b23(said: Scenario) -> None:
    tail = CacheGroup(name="tail", state=TAIL, block_size=1, ratio=4)
    geometry = Geometry("scenario", (entries(4, 4), tail))
    made = Extent(Span(0, 4), abi=Abi(kernel="length omitted"))
    held = Availability(({"full": (made,), "tail": (resident(0, 4),)},))
    verdict = classify(geometry, Asked(4), held)
    assert is_right(verdict, said)
    assert verdict.resume == 4
    assert steps(verdict, Means.REFOLD) == [("full", Span(0, 4))]
    assert Why.KERNEL in why(verdict)
    assert classify(geometry, Asked(4), held, Consumer(made.abi)).kind is Kind.HIT  # naive
    for fork in (3, 5):  # around the ratio
        assert classify(geometry, Asked(fork), held).kind is not Kind.HIT


def b26(said: Scenario) -> None:
    main = [entries(4, name=f"main{i}") for i in range(3)]
    copies = {group.name: stored(0, 16) for group in main}
    for fork in (16, 8):  # above and below top-k, where a router picks everything anyway
        verdict = ask_of([*main, replace(index(4), of="main0")], fork, copies)
        assert is_right(verdict, said)
        assert steps(verdict, Means.REBUILD_INDEX) == [("index", Span(0, fork))]
        fetched = {name: resident(0, 16) for name in copies}
        assert ask_of(main, fork, fetched).kind is Kind.HIT  # naive: layers of main only


def b29(said: Scenario) -> None:
    geometry = Geometry("scenario", (snapshots(16),))
    held = Availability(({"state": (resident(0, 10), resident(0, 20))},))
    assert is_right(classify(geometry, Asked(16), held), replace(said, right_verdict="MISS"))
    assert said.resume == classify(geometry, Asked(16), held).resume
    assert ask(snapshots(16), fork=16, state=resident(0, 16)).kind is Kind.HIT  # naive label


def b36(said: Scenario) -> None:
    old, new = Abi(layout="blocks,2,tokens,heads"), Abi(layout="blocks,heads,tokens,2")
    geometry = Geometry("scenario", (entries(4),))
    held = Availability(({"full": (Extent(Span(0, 8), Tier.DISK, old),)},))
    converter = Consumer(new, frozenset({(old.layout, new.layout)}))
    verdicts = [classify(geometry, Asked(8), held, reader) for reader in (converter, Consumer(new))]
    assert tuple(verdict.kind for verdict in verdicts) == said.kinds
    assert steps(verdicts[0], Means.REPACK) == [("full", Span(0, 8))]
    assert Why.LAYOUT in why(verdicts[1])
    assert classify(geometry, Asked(8), held, Consumer(old)).kind is Kind.PARTIAL  # naive: bytes


def b42(said: Scenario) -> None:
    full, swa = said.spans
    verdict = ask(entries(4), window(4), fork=8, full=stored(0, 16), swa=stored(12, 16))
    assert verdict.kind is said.kinds[0]
    assert steps(verdict, Means.LOAD_BACK) == [("full", full)]
    assert steps(verdict, Means.REPLAY) == [("swa", swa)]
    no_replay = ask(
        entries(4), window(4, role=Role.REQUIRED), fork=8, full=stored(0, 16), swa=stored(12, 16)
    )
    assert no_replay.kind is said.kinds[1]
    fetched = ask(entries(4), window(4), fork=8, full=resident(0, 16), swa=stored(12, 16))
    assert fetched.kind is not Kind.HIT
    at_16 = ask(entries(4), window(4), fork=16, full=stored(0, 16), swa=stored(12, 16))
    assert not steps(at_16, Means.REPLAY)  # naive: can fetch, whatever the fork


def b63(said: Scenario) -> None:
    groups = entries(4, name="four"), entries(6, name="six")
    geometry = Geometry("scenario", groups)
    held = {"four": (resident(0, 24),), "six": (resident(0, 12), resident(18, 24))}
    verdict = classify(geometry, Asked(24), Availability((held,)))
    assert is_right(verdict, said)
    dropped = tuple(Span(verdict.resume // g.block_size, 24 // g.block_size) for g in groups)
    assert dropped == said.spans[:2]
    by_index = min(held_to // size for held_to, size in ((24, 4), (12, 6))) * 4
    assert by_index != verdict.resume  # naive: block 2 failed, in whatever unit


def b66(said: Scenario) -> None:
    assert is_right(ask(entries(4), fork=6, full=resident(0, 8)), said)
    assert ask(entries(1), fork=6, full=resident(0, 8)).resume != said.resume  # naive: full at 6


def b69(said: Scenario) -> None:
    geometry = Geometry("scenario", (entries(4),))
    first = Identity(adapter="X", modality="image 1")
    held = Availability(({"full": (stored(0, 8),)},), first)
    others = Identity(salt="X", modality="image 1"), replace(first, modality="image 2")
    verdicts = [classify(geometry, Asked(8, identity=other), held) for other in others]
    assert tuple(verdict.kind for verdict in verdicts) == said.kinds
    assert all(why(verdict) == {Why.IDENTITY} for verdict in verdicts)
    assert classify(geometry, Asked(8, identity=first), held).kind is Kind.PARTIAL
    untagged = {str(i.adapter or i.salt) for i in (first, others[0])}
    assert len(untagged) == 1  # naive: one field for both


def b71(said: Scenario) -> None:
    geometry = Geometry("scenario", (entries(1),))
    ours, theirs = Identity(tokens=(1, 9)), Identity(tokens=(5, 5))
    assert sum(ours.tokens or ()) % 16 == sum(theirs.tokens or ()) % 16  # naive: equal hashes
    held = Availability(({"full": (resident(0, 2),)},), ours)
    assert is_right(classify(geometry, Asked(2, identity=theirs), held), said)
    narrow = replace(held, identity=Identity(digest_bits=4))
    assert is_right(classify(geometry, Asked(2), narrow), said)
    parents = replace(held, identity=Identity(parent="p"))
    assert is_right(classify(geometry, Asked(2, identity=Identity(parent="q")), parents), said)


def b72(said: Scenario) -> None:
    for tier in Tier:
        held = Availability(({"full": (Extent(Span(0, 16), tier),)},))
        now = Consumer(Abi(weights=2))
        verdict = classify(Geometry("scenario", (entries(4),)), Asked(16), held, now)
        assert is_right(verdict, said)
        assert verdict.numbers.used == said.number(r"cached_tokens=(\d+)")
        assert Why.WEIGHTS in why(verdict)
        assert ask(entries(4), fork=16, full=Extent(Span(0, 16), tier)).resume  # naive: no epoch


def b75(said: Scenario) -> None:
    ranks = {"full": (resident(0, 12),)}, {"full": (resident(0, 8),)}
    geometry = Geometry("scenario", (entries(4),))
    assert is_right(classify(geometry, Asked(12), Availability(ranks)), said)
    alone = classify(geometry, Asked(12), Availability(ranks[:1]))
    assert alone.resume != said.resume  # naive: each rank asks itself
    assert min(10, 9) == said.number(r"capacity=(\d+)")  # a capacity is downward closed


def b76(said: Scenario) -> None:
    producer, consumer = Abi(layout="layers L0,L2"), Abi(layout="layers L0,L1")
    held = Availability(({"full": (Extent(Span(0, 8), Tier.DISK, producer),)},))
    verdict = classify(Geometry("scenario", (entries(4),)), Asked(8), held, Consumer(consumer))
    assert "REFUSE" in said.right
    assert verdict.kind is Kind.MISS
    assert Why.LAYOUT in why(verdict)
    kept = [Span(8, 12), Span(12, 16)]
    needed = window(4).need(12)
    by_token = [span for span in kept if span.cut(needed).tokens]
    from_the_end = kept[-len(by_token) :]
    assert by_token == [Span(8, 12)] != from_the_end  # naive: anchored at the list's end


def b78(said: Scenario) -> None:
    verified = ask(entries(4), fork=8, full=resident(0, 7))
    assert is_right(verified, said)
    assert not is_right(ask(entries(4), fork=8, full=resident(0, 8)), said)  # naive: as written


RUN: dict[str, Callable[[Scenario], None]] = {
    name.upper(): function
    for name, function in list(globals().items())
    if name[0] == "b" and name[1:].isdigit()
}


@pytest.mark.parametrize("scenario", RUN)
def test_the_right_verdict_is_given_and_a_naive_rule_fails(scenario: str) -> None:
    RUN[scenario](SCENARIOS[scenario])


DROPPED: dict[str, tuple[str, Callable[..., object], str]] = {
    "H-0 same_prefix": ("classify", lambda *_: (), "B69"),
    "H-1 whole_block": ("classify", lambda _, asked: (asked.target, ()), "B02"),
    "H-1 whole_spans": ("holdings", lambda _, spans: tuple(spans), "B01"),
    "H-2 same_abi": ("holdings", lambda *_: (), "B72"),
}
"""Checks that let everything pass: where they are called, and a scenario that notices."""


@pytest.mark.parametrize("check", DROPPED)
def test_a_check_that_is_dropped_is_missed(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, passes, scenario = DROPPED[check]
    name = check.split()[1]
    monkeypatch.setattr(import_module(f"fivestate.spec.reuse.{module}"), name, passes)
    with pytest.raises(AssertionError):
        RUN[scenario](SCENARIOS[scenario])


def test_the_table_names_every_scenario_once_and_this_file_runs_its_section() -> None:
    named = [scenario for section in TABLE.values() for scenario in section]
    assert sorted(named) == sorted(SCENARIOS)
    assert set(RUN) == set(TABLE["verdicts"])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "B01", "verdict": "HIT"}', "line 1: unknown field 'verdict'"),
        ('{"id": "B01"}', "line 1: field 'source' is missing"),
        ('{"id": 1}', "line 1: id = 1: a string is allowed"),
        ("[]", "line 1: an object is allowed, and list is given"),
        ("{", "line 1 is not JSON"),
    ],
)
def test_a_wrong_scenario_file_is_refused_by_name(line: str, says: str) -> None:
    with pytest.raises(ModelError, match="line 1") as refused:
        read_scenarios(line)
    assert says in str(refused.value)


def test_a_replay_policy_that_is_off_leaves_less() -> None:
    groups = entries(4), window(4)
    held = Availability(({"full": (resident(0, 8),)},))
    geometry = Geometry("scenario", groups)
    assert classify(geometry, Asked(8), held, policy=Policy(replay=False)).kind is Kind.MISS
