"""Faults reported in public that are about time, sharing or failure, as runs of the machines.

Each is told up to the step that went wrong. The right machine refuses that step, by a named guard,
or gives the verdict that the file calls right; the same steps under the rule that the engine had
make a property false. Verdicts and figures are read from the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults import without_guard
from tests.scenarios import rules
from tests.scenarios.runs import (
    Harm,
    computed,
    hit,
    instead,
    made,
    refusal,
    resumed,
    right,
    stricter,
    take,
    without_effect,
    wrong,
)

from fivestate.checker.engines.python import explore
from fivestate.checker.judge import check
from fivestate.spec.allocator.state import PRIVATE, Allocator, Group
from fivestate.spec.language import Kind, Model, Refused, forall
from fivestate.spec.models import MODELS
from fivestate.spec.reuse.scenarios import Scenario, read_scenarios

FOLDER = Path(__file__).parent / "scenarios"
SCENARIOS = read_scenarios((FOLDER / "public-faults.jsonl").read_text("utf-8"))
TABLE = tomllib.loads((FOLDER / "table.toml").read_text("utf-8"))

SEQUENCE, HOMOGENEOUS, HYBRID = MODELS["sequence"], MODELS["homogeneous"], MODELS["hybrid"]
ACROSS, SHARING, INDEX = MODELS["across"], MODELS["sharing"], MODELS["index"]
FORK, GRAPH = MODELS["fork"], MODELS["graph"]

CW = ("COMPRESSED", "WINDOW")
OFF_THE_DEVICE = [
    *computed("r0", "p0", *CW),
    "store_begin(p0, COMPRESSED)",
    "store_good(p0, COMPRESSED)",
    "finish(r0)",
    "evict(p0, WINDOW)",
    "evict(p0, COMPRESSED)",
]
"""p0 is known, and its entries are in the second tier only."""

LOADING = [*OFF_THE_DEVICE, "arrive(r0, p0)", "admit(r0, p0)", "load_begin(p0, COMPRESSED)"]
"""r0 has been admitted to it, and the load is under way."""


def figure(said: Scenario, pattern: str) -> int:
    """Return a number that the story of a scenario gives."""
    found = re.search(pattern, " ".join(said.scenario))
    assert found is not None, pattern
    return int(found[1])


def told(said: Scenario) -> set[str]:
    return {kind.name for kind in said.kinds}


def refuted(model: Model) -> Harm:
    """Return what is false somewhere, of all that must hold; whoever is stuck is found so."""
    judged = check(model, explore).refuted
    return {j.name: j.clause for j in judged if j.kind is not Kind.WITNESS}


def b08(said: Scenario) -> Harm:
    two = [
        *(*computed("r0", "p0", *CW), "finish(r0)"),
        *(*computed("r1", "p1", *CW), "finish(r1)"),
    ]
    assert refusal(SHARING, *two, "evict(p0, COMPRESSED)") == "last"
    run = right(SHARING, *two, "evict(p0, WINDOW)", "arrive(r0, p0)")
    assert run.value("phase[r0]") in told(said)
    right(
        SHARING,
        *two,
        "evict(p0, WINDOW)",
        "arrive(r0, p0)",
        "admit(r0, p0)",
        *resumed("r0", "p0", "WINDOW"),
    )
    naive = SHARING.set("hash_only=true")
    assert "sound" in wrong(naive, *two, "evict(p0, WINDOW)", *hit("r0", "p0"), "run(r0)")
    one_order = without_guard(SHARING, "evict", "last")
    return wrong(one_order, *two, "evict(p0, COMPRESSED)")


def b09(said: Scenario) -> Harm:
    b_comes = [*computed("r0", "p0", *CW), "finish(r0)", "arrive(r1, p1)"]
    assert refusal(SHARING, *b_comes, "make_room(p0, WINDOW)") == "demanded"
    run = right(SHARING, *b_comes, "admit(r1, p1)", *made("p1", *CW), "arrive(r0, p0)")
    assert {run.value("phase[r0]")} == told(said)
    takes_any = without_guard(SHARING, "make_room", "demanded")
    return wrong(takes_any, *b_comes, "make_room(p0, WINDOW)")


def b18(said: Scenario) -> Harm:
    fails = [*LOADING, "load_bad(p0, COMPRESSED)"]
    run = right(SHARING, *fails, "arrive(r1, p0)")
    assert run.value("phase[r1]") in told(said)
    assert run.value("device[p0, COMPRESSED]") == "RESERVED"  # nothing of the record is left
    right(SHARING, *fails, *made("p0", *CW), "publish(p0)", "resume(r0, p0)", "run(r0)")
    poisoned = instead(SHARING, rules.load_bad)
    return wrong(poisoned, *fails, *resumed("r0", "p0", "WINDOW"))


def b28(said: Scenario) -> Harm:
    first_step = ["write(2)", "verify(2)", "fold(0)", "index(0)"]
    next_step = ["write(2)", "verify(2)", "fold(1)"]  # the entries are newer than the routing
    assert "REFUSE" in said.right
    assert refusal(SEQUENCE, *first_step, *next_step, "write(1)") == "indexed_up"
    right(SEQUENCE, *first_step, *next_step, "index(1)", "write(1)")
    reused = without_guard(SEQUENCE, "write", "indexed_up")
    return wrong(reused, *first_step, *next_step, "write(1)")


def b31(said: Scenario) -> Harm:
    both = [*computed("r0", "p0", "COMPRESSED", "TAIL"), *hit("r1", "p0"), "run(r1)"]
    assert "REFUSED" in said.right
    assert refusal(FORK, *both, "append(r0)") == "own"
    run = right(FORK, *both, "copy_on_write(r0)", "append(r0)", "finish(r1)", "arrive(r1, p0)")
    assert {run.value("phase[r1]")} == told(said)
    through_the_read_pointer = without_guard(FORK, "append", "own")
    return wrong(through_the_read_pointer, *both, "append(r0)")


def b39(said: Scenario) -> Harm:
    checked = [*computed("r0", "p0", "COMPRESSED", "INDEXER"), "finish(r0)", "arrive(r1, p0)"]
    renewed = [*checked, "reindex(p0)"]
    assert "REFUSE" in said.right
    assert right(INDEX, *checked).value("phase[r1]") == "HIT"
    assert refusal(INDEX, *renewed, "made(p0, INDEXER)", "lease(r1)") == "fresh"
    run = right(INDEX, *renewed, "reclassify(r1, p0)")
    assert {run.value("phase[r1]")} == told(said)
    by_existence = without_guard(INDEX, "lease", "fresh")
    return wrong(by_existence, *renewed, "made(p0, INDEXER)", "lease(r1)")


def b40(said: Scenario) -> Harm:
    model = SHARING.set("storable.WINDOW=true")
    both = [
        *(*computed("r0", "p0", *CW), "store_begin(p0, WINDOW)", "store_good(p0, WINDOW)"),
        *("finish(r0)", "evict(p0, WINDOW)", *computed("r1", "p1", *CW), "finish(r1)"),
        *("arrive(r0, p0)", "admit(r0, p0)", "load_begin(p0, WINDOW)"),
        "store_begin(p1, WINDOW)",  # for which the host needs room
    ]
    assert "REFUSED" in said.right
    assert refusal(model, *both, "drop(p0, WINDOW)") == "unclaimed"
    right(model, *both, "load_good(p0, WINDOW)", "drop(p0, WINDOW)")
    unpinned = without_guard(model, "drop", "unclaimed")
    assert "transfers_have_ends" in wrong(unpinned, *both, "drop(p0, WINDOW)")
    onward = ["drop(p0, WINDOW)", "load_good(p0, WINDOW)", "resume(r0, p0)", "run(r0)"]
    return wrong(unpinned, *both, *onward)


def b41(said: Scenario) -> Harm:
    failed = [
        *(*computed("r0", "p0", *CW), "store_begin(p0, COMPRESSED)", "store_bad(p0, COMPRESSED)"),
        *("finish(r0)", "evict(p0, WINDOW)", "evict(p0, COMPRESSED)", "arrive(r1, p0)"),
    ]
    assert right(SHARING, *failed).value("phase[r1]") == said.kinds[0].name
    unheard = instead(SHARING, rules.store_bad)
    load = ["admit(r1, p0)", "load_begin(p0, COMPRESSED)", "load_good(p0, COMPRESSED)"]
    return wrong(unheard, *failed, *load, *resumed("r1", "p0", "WINDOW"))


def b43(said: Scenario) -> Harm:
    assert "pinned until fetch_end" in said.right
    assert refusal(SHARING, *LOADING, "make(p0, COMPRESSED)") == "due"  # no second copy of it
    assert refusal(SHARING, *LOADING, "evict(p0, COMPRESSED)") == "ready"
    dedup = instead(SHARING.set("cap.WINDOW=4"), rules.evict)
    to_c = ["arrive(r1, p1)", "admit(r1, p1)"]
    return wrong(dedup, *LOADING, "evict(p0, COMPRESSED)", *to_c)


def b45(said: Scenario) -> Harm:
    aborted = [*LOADING, "abort_recovery(r0, p0)"]
    assert "free deferred to fetch_end" in said.right
    assert refusal(SHARING, *aborted, "reclaim(COMPRESSED)") == "landed"
    run = right(SHARING, *aborted, "arrive(r1, p1)", "admit(r1, p1)")
    assert run.value("doomed[COMPRESSED]") == "1"  # so r1 has other frames
    for step in ("land(COMPRESSED)", "reclaim(COMPRESSED)"):
        take(run, step)
    at_once = without_guard(SHARING, "reclaim", "landed")
    return wrong(at_once, *aborted, "reclaim(COMPRESSED)", "arrive(r1, p1)", "admit(r1, p1)")


def b46(said: Scenario) -> Harm:
    again = ["arrive(r0, p0)", "admit(r0, p0)", "load_begin(p0, COMPRESSED)"]
    aborted = [*again, "abort_recovery(r0, p0)"]
    completion = ["land(COMPRESSED)", "reclaim(COMPRESSED)"]
    repeated = (aborted + completion) * figure(said, r"repeat (\d+)x")
    assert "ADMIT" in said.right
    right(SHARING, *OFF_THE_DEVICE, *repeated, "arrive(r0, p0)", "admit(r0, p0)")
    unheard = without_effect(SHARING, "abort_recovery", "doomed")
    lost = wrong(unheard, *OFF_THE_DEVICE, *aborted, *aborted)
    with pytest.raises(Refused) as refused:
        wrong(unheard, *OFF_THE_DEVICE, *aborted, *aborted, "arrive(r0, p0)", "admit(r0, p0)")
    assert refused.value.guard == "room"
    return lost


def b47(said: Scenario) -> Harm:
    aborted = [*computed("r0", "p0", *CW), "abort_step(r0)", "arrive(r1, p1)"]
    assert "fenced until" in said.right
    assert refusal(SHARING, *aborted, "admit(r1, p1)") == "room"
    assert refusal(SHARING, *aborted, "evict(p0, WINDOW)") == "unleased"
    right(SHARING, *aborted, "drained(r0)", "admit(r1, p1)")
    unfenced = instead(SHARING, rules.abort_step)
    return wrong(unfenced, *aborted, "admit(r1, p1)")


def b49(said: Scenario) -> Harm:
    leased = [*computed("r0", "p0", "COMPRESSED", "INDEXER"), "finish(r0)", *hit("r1", "p0")]
    assert "immutable until" in said.right
    assert refusal(INDEX, *leased, "reindex(p0)") == "unleased"
    right(INDEX, *leased, "run(r1)", "finish(r1)", "reindex(p0)")
    overwritten = without_guard(INDEX, "reindex", "unleased")
    return wrong(overwritten, *leased, "reindex(p0)", "run(r1)")


def b51(said: Scenario) -> Harm:
    captured = [*computed("r0", "p0", *CW), "capture(r0, p0)", *hit("r1", "p0")]
    assert "null block" in said.right
    assert refusal(GRAPH, *captured, "replay(r1, p0)") == "null_clean"
    right(GRAPH, *captured, "run(r1)")  # eager is always right
    right(GRAPH, *captured, "scrub()", "replay(r1, p0)")
    return wrong(without_guard(GRAPH, "replay", "null_clean"), *captured, "replay(r1, p0)")


def b52(said: Scenario) -> Harm:
    two = GRAPH.set("prefix=2", "cap=4")
    replays = [
        *(*computed("r0", "p0", *CW), "capture(r0, p0)", "scrub()", "finish(r0)"),
        *(*computed("r1", "p1", *CW), *hit("r0", "p0"), "replay(r0, p0)"),
    ]
    assert "capture writes only reserved slots" in said.right
    assert refusal(two, *replays, "capture(r1, p1)") == "quiet"
    woken = [*replays, "crash()", *computed("r0", "p0", *CW), *hit("r1", "p0")]
    assert refusal(two, *woken, "replay(r1, p0)") == "captured"  # its addresses are of before
    asleep = without_effect(two, "crash", "graph")
    assert "graph_reads_what_it_captured" in wrong(asleep, *woken, "replay(r1, p0)")
    return wrong(without_guard(two, "capture", "quiet"), *replays, "capture(r1, p1)")


def b53(said: Scenario) -> Harm:
    captured = [*computed("r0", "p0", *CW), "capture(r0, p0)", "scrub()", *hit("r1", "p0")]
    assert "unchanged" in said.right
    run = right(GRAPH, *captured, "replay(r1, p0)")
    assert {run.value(f"bytes[p0, {group}]") for group in CW} == {"RIGHT"}
    return wrong(instead(GRAPH, rules.replay), *captured, "replay(r1, p0)")


def b57(said: Scenario) -> Harm:
    decoding = computed("r0", "p0", *CW)
    assert "page freed once" in said.right
    assert refusal(HYBRID, *decoding, "evict(p0, WINDOW)") == "unleased"
    still_read = without_guard(HYBRID, "evict", "unleased")
    assert "sound" in wrong(still_read, *decoding, "evict(p0, WINDOW)")
    assert refusal(HYBRID, *decoding, "finish(r0)", "finish(r0)") == "running"
    return wrong(without_guard(HYBRID, "finish", "running"), *decoding, "finish(r0)", "finish(r0)")


def b59(said: Scenario) -> Harm:
    pool, peak = figure(said, r"pool=(\d+)"), figure(said, r"peak per request = \S+ = (\d+)")
    admitted = said.number(r"ADMIT (\d+)")
    assert pool // peak == admitted == 2
    unit = peak // 2  # one frame here is so many there; one more is the prefix itself
    sizes = f"cap={1 + pool // unit}", f"private={peak // unit}"
    model = HYBRID.set("request=3", "slots=3", *sizes)
    two = [*computed("r0", "p0", *CW), *hit("r1", "p0"), "arrive(r2, p0)"]
    assert refusal(model, *two, "lease(r2)") == "room"
    grows_later = without_effect(model, "lease", "free")
    return wrong(grows_later, *two, "lease(r2)")


def b60(said: Scenario) -> Harm:
    resumes = [*computed("r0", "p0", *CW), *hit("r1", "p0")]
    assert "ADMIT" in said.right
    assert {right(SHARING, *resumes).value(f"free[{group}]") for group in CW} == {"0"}
    own_and_cached = forall(Group, lambda g: Allocator().free[g] >= 1 + PRIVATE[g])
    assert refusal(stricter(SHARING, "lease", "room", own_and_cached), *resumes) == "room"
    model = SHARING.set("cap.COMPRESSED=4")
    transient = [*computed("r0", "p0", *CW), "arrive(r1, p1)", "admit(r1, p1)"]
    assert "WAIT" in said.right
    assert refusal(model, *transient) == "room"
    return wrong(instead(model, rules.admit), *transient)


def b61(said: Scenario) -> Harm:
    model = SHARING.set("cap.COMPRESSED=4")
    idle = [*computed("r0", "p0", *CW), "arrive(r1, p1)"]
    assert "ADMIT" in said.right
    assert refusal(model, *idle, "admit(r1, p1)") == "room"
    assert refusal(model, *idle, "make_room(p0, WINDOW)") == "unleased"
    right(model, *idle, "slide(r0)", "make_room(p0, WINDOW)", "admit(r1, p1)")
    without_slide = without_guard(model, "make_room", "unleased")
    return wrong(without_slide, *idle, "make_room(p0, WINDOW)", "admit(r1, p1)")


def b62(said: Scenario) -> Harm:
    fetched = [*LOADING, "load_good(p0, COMPRESSED)", "arrive(r1, p1)"]
    assert "REFUSED" in said.right
    assert refusal(SHARING, *fetched, "make_room(p0, COMPRESSED)") == "settled"
    assert refusal(SHARING, *fetched, "admit(r1, p1)") == "room"
    alone = SHARING.set("prefix=1", "request=1", "aborts=false", "crashes=false")
    assert "recovers" not in refuted(alone)
    return refuted(without_guard(alone, "evict", "settled"))


def b64(said: Scenario) -> Harm:
    keeps, rows = said.number(r"rollback to (\d+)"), figure(said, r"8\.\.(\d+) then fails")
    long = SEQUENCE.set("tokens=16")
    resumed_at = [f"write({keeps})", f"verify({keeps})"]
    resumed_at += [f"{verb}({i})" for i in range(keeps // 2) for verb in ("fold", "index")]
    attempt = [f"write({rows + 1 - keeps})", "roll_back()"]
    assert right(long, *resumed_at, *attempt).value("written") == str(keeps)
    assert right(long, *resumed_at, *attempt, "write(8)").value("written") == str(keeps + 8)
    fails = [*("arrive(r0, p0)", "admit(r0, p0)"), *made("p0", "COMPRESSED"), "make(p0, WINDOW)"]
    fails += ["abort_recovery(r0, p0)", "arrive(r0, p0)", "admit(r0, p0)"]
    assert refusal(HYBRID, *fails, "make(p0, WINDOW)") == "sources"  # nothing of it is left
    not_reset = without_effect(HYBRID, "abort_recovery", "device")
    return wrong(not_reset, *fails)


def b65(said: Scenario) -> Harm:
    scheduled = ["arrive(r0, p0)", "admit(r0, p0)"]
    assert refusal(HOMOGENEOUS, *scheduled, "publish(p0)") == "complete"
    joined = [*scheduled, "arrive(r1, p0)", "admit(r1, p0)"]
    assert refusal(HOMOGENEOUS, *joined, "resume(r1, p0)") == "known"  # it waits for the step
    right(HOMOGENEOUS, *joined, *made("p0", "COMPRESSED"), "publish(p0)", "resume(r1, p0)")
    failed = right(HOMOGENEOUS, *scheduled, "abort_recovery(r0, p0)", "arrive(r1, p0)")
    assert failed.value("phase[r1]") == said.kinds[-1].name
    early = without_guard(HOMOGENEOUS, "publish", "complete")
    return wrong(early, *scheduled, "publish(p0)", *hit("r1", "p0"), "run(r1)")


def b68(said: Scenario) -> Harm:
    evicted = [*computed("r0", "p0", "COMPRESSED"), "finish(r0)", "evict(p0, COMPRESSED)"]
    run = right(HOMOGENEOUS, *evicted, "arrive(r1, p0)")
    assert {run.value("phase[r1]")} == told(said)
    survives = without_effect(HOMOGENEOUS, "evict", "known")
    return wrong(survives, *evicted, *hit("r1", "p0"), "run(r1)")


def b77(said: Scenario) -> Harm:
    window = figure(said, r"W=(\d+)")
    first, query = figure(said, r"needs (\d+)\.\."), figure(said, r"next query (\d+)")
    model = SEQUENCE.set("tokens=16", f"window={window}")
    seen = query - 1
    written = [f"write({seen})", f"verify({seen})"]
    written += [f"{verb}({i})" for i in range(seen // 2) for verb in ("fold", "index")]
    drafted = [*written, "slide()", "write(3)"]
    assert "REFUSED" in said.right
    assert refusal(model, *drafted, "slide()") == "passed"
    run = right(model, *drafted, "verify(1)", "slide()", "roll_back()", "write(1)")
    assert run.value("window") == str(first)
    ring = instead(model, rules.slide)
    return wrong(ring, *drafted, "slide()", "verify(1)", "roll_back()", "write(1)")


def b83(said: Scenario) -> Harm:
    times = figure(said, r"x(\d+): same prompt")
    assert {4: "all four equal"}[times] in said.right
    again = [*hit("r0", "p0"), "run(r0)", "finish(r0)"]
    same = [*computed("r0", "p0", *CW), "finish(r0)", *again * (times - 1)]
    right(HYBRID, *same)
    unmapped = instead(HYBRID, rules.finish)
    return wrong(unmapped, *same[:-1])


RUN: dict[str, Callable[[Scenario], Harm]] = {
    name.upper(): function
    for name, function in list(globals().items())
    if name[0] == "b" and name[1:].isdigit()
}

ELSEWHERE = {
    "B09": "which frame is taken is asked by who makes room, so it is a rule of admission",
    "B46": "that every frame has one owner is routing; the cap holds with frames lost",
    "B62": "nothing wrong is read: the recovery that lost a cell never ends",
}
"""Where the clause that the rule breaks is not of the invariant that the file names, and why."""

LEFT_OUT = {
    "B08": "the order among the blocks of one group: a prefix has one cell in each",
    "B09": "the order in which an engine evicts when nobody waits: any is allowed",
    "B28": "a buffer that lives for one step: what it is made from stands in for it",
    "B49": "the two buffers of a page table in host memory: a cell that is leased stands for them",
    "B52": "a pool whose size changes: a cap is fixed, and the process starts anew",
    "B53": "how a kernel computes an address from a negative slot: that it writes elsewhere",
    "B59": "pages and steps between evictions: only that the peak is charged",
    "B62": "several frames in one prefix and group: one of each",
    "B65": "a verdict between MISS and HIT: who is told MISS joins the recovery, and waits with it",
    "B77": "a ring that is too small for the drafts: rows are kept until none can be rejected",
}
"""What of a scenario the machines do not say, and what they say for it."""


@pytest.mark.parametrize("scenario", RUN)
def test_the_right_machine_refuses_or_tells_and_a_wrong_rule_breaks_a_property(
    scenario: str,
) -> None:
    said = SCENARIOS[scenario]
    clauses = set(RUN[scenario](said).values())
    assert clauses
    filed = {"I-0", "S-0", said.invariant.replace("I", "I-")}
    agrees = bool(clauses & filed) or said.invariant not in {"I1", "I2", "I3", "I4"}
    assert agrees != (scenario in ELSEWHERE), clauses


def test_every_scenario_is_run_somewhere() -> None:
    assert set(RUN) == set(TABLE["machine"])
    assert set(TABLE) == {"verdicts", "arithmetic", "machine"}
    named = [scenario for section in TABLE.values() for scenario in section]
    assert sorted(named) == sorted(SCENARIOS)
    assert len(named) == 60
    assert {*ELSEWHERE, *LEFT_OUT} <= set(RUN)


FOUR = ("COMPRESSED", "WINDOW", "TAIL", "INDEXER")
IDLE = [*computed("r0", "p0", *FOUR), "finish(r0)"]
STORED = [
    *computed("r0", "p0", *FOUR),
    *("store_begin(p0, COMPRESSED)", "store_good(p0, COMPRESSED)", "finish(r0)"),
]


@pytest.mark.parametrize(
    ("lost", "group", "remedy"),
    [
        ([*IDLE, "evict(p0, TAIL)"], "TAIL", made("p0", "TAIL")),
        ([*IDLE, "evict(p0, WINDOW)"], "WINDOW", made("p0", "WINDOW")),
        ([*IDLE, "evict(p0, INDEXER)"], "INDEXER", made("p0", "INDEXER")),
        (
            [*STORED, "evict(p0, COMPRESSED)"],
            "COMPRESSED",
            ["load_begin(p0, COMPRESSED)", "load_good(p0, COMPRESSED)", *made("p0", "INDEXER")],
        ),
    ],
    ids=["tail", "window", "index", "not resident, and the index out of step once it is"],
)
def test_one_missing_cell_is_partial_and_a_hash_hit_would_be_wrong(
    lost: list[str],
    group: str,
    remedy: list[str],
) -> None:
    run = right(ACROSS, *lost, "arrive(r1, p0)")
    assert run.value("phase[r1]") == "PARTIAL"
    assert refusal(ACROSS, *lost, "arrive(r1, p0)", "lease(r1)") == "hit"
    admitted = [*lost, "arrive(r1, p0)", "admit(r1, p0)"]
    for done in range(0, len(remedy), 2):  # it is of use only once all of it is done
        assert refusal(ACROSS, *admitted, *remedy[:done], "resume(r1, p0)") == "complete"
    right(ACROSS, *admitted, *remedy, "resume(r1, p0)", "run(r1)")
    naive = ACROSS.set("hash_only=true")
    harmed = wrong(naive, *lost, *hit("r1", "p0"), "run(r1)")
    assert {"sound", "leased_is_ready"} <= set(harmed)
    assert right(ACROSS, *lost).value(f"device[p0, {group}]") == "ABSENT"


def test_without_its_entries_a_prefix_is_a_miss() -> None:
    gone = [f"evict(p0, {group})" for group in ("TAIL", "WINDOW", "INDEXER", "COMPRESSED")]
    run = right(ACROSS, *IDLE, *gone, "arrive(r1, p0)")
    assert run.value("phase[r1]") == "MISS"
