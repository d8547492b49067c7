"""One seeded fault for each kind of property: each is caught, and in as few steps as it takes.

The lengths are counted by hand, in the comments; a longer story would not be the shortest.
"""

from dataclasses import replace

import pytest
from tests.faults import faulty, without_action, without_guard

from fivestate.checker.engines.python import explore
from fivestate.checker.exploration import RANGE
from fivestate.checker.judge import Report, check
from fivestate.checker.refinement import first_unmatched
from fivestate.checker.verdicts import Verdict
from fivestate.spec.language import (
    Kind,
    Model,
    Refinement,
    SpecError,
    action,
    each,
    require,
)
from fivestate.spec.language.tracing import ActionSource
from fivestate.spec.models import MODELS
from fivestate.spec.need import window_start
from fivestate.spec.scheme_a import ONE_GROUP_IS_SCHEME_A
from fivestate.spec.sequence import RATIO, SEQUENCE, SPAN, Entry, Sequence, tail_serves
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW

PLAIN, OVERLAP = MODELS["sequence"], MODELS["sequence-overlap"]
HOMOGENEOUS = MODELS["homogeneous"]
SHORT = ("tokens=6",)
"""Long enough for every fault below, and quicker."""


def lengths(model: Model) -> dict[str, int]:
    """Return what is refuted, and after how many steps; a witness that nobody gave is -1."""
    report = check(model, explore)
    assert report.exploration.stopped == ""
    return {j.name: -1 if j.story is None else j.story.length for j in report.refuted}


def the(report: Report, name: str) -> tuple[Kind, Verdict, list[str]]:
    (judgement,) = (j for j in report.judgements if j.name == name)
    story = [] if judgement.story is None else [line.step for line in judgement.story.lines]
    return judgement.kind, judgement.verdict, story


@pytest.mark.parametrize("model", [PLAIN, OVERLAP, HOMOGENEOUS], ids=lambda model: model.name)
def test_without_a_fault_nothing_is_refuted(model: Model) -> None:
    report = check(model, explore)
    assert report.refuted == ()
    assert report.verdict is Verdict.PROVED


@action("A-5", state=TAIL)
def trim(s: Sequence) -> None:
    """Let go of every raw row that is folded, and forget the look-back."""
    require(spare=s.tail < s.folded * RATIO)
    s.tail = s.folded * RATIO


def test_an_invariant_catches_a_trim_that_forgets_the_look_back() -> None:
    # Two rows are written, verified, folded, and gone: the next entry would have read them.
    refuted = lengths(faulty(OVERLAP.set(*SHORT), trim))
    assert refuted["tail_joins"] == 4
    assert min(refuted.values()) == 4
    report = check(faulty(OVERLAP, trim), explore)
    assert the(report, "tail_joins") == (
        Kind.INVARIANT,
        Verdict.REFUTED,
        ["write(2)", "verify(2)", "fold(0)", "trim()"],
    )


def test_without_a_look_back_there_is_nothing_to_forget() -> None:
    forgetful, careful = check(faulty(PLAIN, trim), explore), check(PLAIN, explore)
    assert forgetful.verdict is Verdict.PROVED
    assert list(forgetful.exploration.states) == list(careful.exploration.states)
    assert forgetful.exploration.firings == careful.exploration.firings


@action("A-6", state=WINDOW)
def slide(s: Sequence) -> None:
    """Let go of window rows by written length, as if no draft could be rejected."""
    require(passed=s.window < window_start(s.written, SPAN))
    s.window = window_start(s.written, SPAN)


@pytest.mark.parametrize("model", [PLAIN, OVERLAP], ids=lambda model: model.name)
def test_an_invariant_catches_a_slide_by_written_length(model: Model) -> None:
    # Enough drafts that the window moves, one of them accepted: row 0 is read again, and gone.
    refuted = lengths(faulty(model.set(*SHORT), slide))
    assert refuted["window_covers"] == 3
    assert min(refuted.values()) == 3


def fold_of_drafts() -> ActionSource:
    @action("A-3", state=COMPRESSED)
    def fold(s: Sequence, i: Entry) -> None:
        """Fold the next whole group of rows, verified or not."""
        require(next=i == s.folded, whole=(i + 1) * RATIO <= s.written)
        s.folded = s.folded + 1
        s.right[i] = tail_serves(s, s.folded, (i + 1) * RATIO)

    return fold


@pytest.mark.parametrize("model", [PLAIN, OVERLAP], ids=lambda model: model.name)
def test_an_invariant_catches_a_fold_of_unverified_rows(model: Model) -> None:
    # Two drafts are written, folded, rejected: the entry is of tokens that were never accepted.
    refuted = lengths(faulty(model.set(*SHORT), fold_of_drafts()))
    assert refuted["entries_are_right"] == 3
    assert min(refuted.values()) == 3


RESUMED = {
    # Without a name it starts anew, with a window that is past the beginning: write, verify past
    # the window of 1, slide, resume, write; then a token is verified, or another one written.
    ("sequence", "named"): {"window_covers": 6, "sound": 6},
    ("sequence-overlap", "named"): {"window_covers": 6, "sound": 6},
    # Inside a group the snapshot needs raw rows; when the group is whole it is folded and they
    # go: write, verify 1, snapshot, verify 1, fold, trim, resume. Then a token reads the gap,
    # and two steps later it is folded.
    ("sequence", "tail"): {"tail_joins": 7, "sound": 8, "entries_are_right": 10},
    # With a look-back of a group the first trim comes one fold later.
    ("sequence-overlap", "tail"): {"tail_joins": 8, "sound": 9, "entries_are_right": 11},
    # Write, verify 1, snapshot, verify past the window of 1, slide, resume; then a token reads it.
    ("sequence", "window"): {"window_covers": 6, "sound": 7},
    ("sequence-overlap", "window"): {"window_covers": 6, "sound": 7},
}


@pytest.mark.parametrize(("name", "guard"), RESUMED)
def test_invariants_catch_a_resume_that_does_not_ask(name: str, guard: str) -> None:
    model = without_guard(MODELS[name].set(*SHORT), "resume", guard)
    assert lengths(model) == RESUMED[name, guard]


def test_a_step_property_catches_a_resume_that_invents_entries() -> None:
    # Three written, two verified, snapshot, resume: nobody has folded or indexed the entry.
    careless = without_guard(PLAIN.set(*SHORT), "resume", "index")
    assert lengths(careless)["nothing_from_nothing"] == 4


def test_a_step_property_catches_a_resume_that_goes_nowhere() -> None:
    # One token written and verified, snapshot, resume: all is as it was.
    idle = without_guard(PLAIN.set(*SHORT), "resume", "behind")
    assert lengths(idle) == {"nothing_stutters": 4}


def test_a_step_property_catches_a_write_before_the_folds() -> None:
    # Two written and verified make an entry due; the third token does not wait for it.
    report = check(without_guard(PLAIN.set(*SHORT), "write", "folded_up"), explore)
    kind, verdict, story = the(report, "split_by_position")
    assert (kind, verdict) == (Kind.STEP, Verdict.REFUTED)
    assert story == ["write(2)", "verify(2)", "write(1)"]
    assert the(report, "sound")[2] == story


def test_an_invariant_catches_a_write_before_the_index() -> None:
    # As above, and folded: now it is the index that the token would read.
    refuted = lengths(without_guard(PLAIN.set(*SHORT), "write", "indexed_up"))
    assert refuted == {"sound": 4}


def test_a_step_property_catches_a_lease_of_a_verdict_that_no_longer_stands() -> None:
    # r0 recovers p0 (arrive, admit, make, made, publish); r1 arrives at a hit; r0 gives up, so
    # that p0 may be evicted; r1 leases what is gone.
    refuted = lengths(without_guard(HOMOGENEOUS, "lease", "fresh"))
    assert refuted["leased_as_checked"] == 9
    assert refuted["sound"] == 10  # and then it runs


def shy_slide() -> ActionSource:
    @action("A-6", state=WINDOW)
    def slide(s: Sequence) -> None:
        """Let go of window rows, but never behind a snapshot that somebody may resume."""
        require(passed=s.window < window_start(s.verified, SPAN), unnamed=s.snapshot == 0)
        s.window = window_start(s.verified, SPAN)

    return slide


def test_a_witness_catches_what_never_happens_any_more() -> None:
    # Too strong a rule breaks nothing; but a window that is gone is what this is all about.
    careful = check(faulty(PLAIN.set(*SHORT), shy_slide()), explore)
    assert the(careful, "window_gone") == (Kind.WITNESS, Verdict.REFUTED, [])
    assert {j.name for j in careful.refuted} == {"window_gone"}
    # What it should have shown: write, verify 1, snapshot, verify past the window of 1, slide.
    _, verdict, story = the(check(PLAIN, explore), "window_gone")
    assert verdict is Verdict.PROVED
    assert story[1:] == ["verify(1)", "snapshot()", "verify(2)", "slide()"]


def test_an_escape_catches_a_sequence_that_is_stuck() -> None:
    # When nobody folds: two tokens are verified, their entry is due, and no token may follow.
    # One step earlier the drafts could still be written to the end, all at once.
    report = check(without_action(PLAIN.set(*SHORT), "fold"), explore)
    assert the(report, "unfinished") == (
        Kind.ESCAPE,
        Verdict.REFUTED,
        ["write(2)", "verify(2)"],
    )


def test_a_range_catches_an_overflow() -> None:
    # One token, then as many as fit into the empty sequence: one too many.
    report = check(without_guard(PLAIN, "write", "fits"), explore)
    assert the(report, RANGE) == (Kind.RANGE, Verdict.REFUTED, ["write(1)", "write(8)"])
    (ends,) = (j.story.ends for j in report.refuted if j.story)
    assert ends == "write(8): written = 9 leaves 0..8"


def test_a_refinement_catches_an_eviction_under_a_lease() -> None:
    # r0 recovers p0 (arrive, admit, make, made, publish), leases it (resume), and p0 is evicted:
    # scheme A drops no block that is read.
    report = check(without_guard(HOMOGENEOUS, "evict", "unleased"), explore)
    kind, verdict, story = the(report, "as_scheme_a")
    assert (kind, verdict, len(story)) == (Kind.REFINEMENT, Verdict.REFUTED, 7)
    assert story[-1] == "evict(p0, COMPRESSED)"
    (judgement,) = (j for j in report.refuted if j.kind is Kind.REFINEMENT)
    assert judgement.story is not None
    assert judgement.story.detail == "scheme-a has no step for cached[p0]: True -> False"


def test_a_refinement_catches_first_states_that_differ() -> None:
    begun = replace(HOMOGENEOUS, start=MODELS["hash-only"].start[:4])
    published = replace(begun, start=(*begun.start, ("publish", "p0")))
    assert the(check(begun, explore), "as_scheme_a")[1] is Verdict.PROVED
    assert the(check(published, explore), "as_scheme_a") == (Kind.REFINEMENT, Verdict.REFUTED, [])


def test_a_refinement_has_to_speak_of_every_cell() -> None:
    def first_entry_only(s: Sequence, a: Sequence) -> None:
        """It maps one entry of several."""
        for name in Sequence.variables:
            if name != "right":
                setattr(a, name, getattr(s, name))
        a.right[0] = s.right[0]

    model = replace(
        PLAIN.set(*SHORT), refines=Refinement("R-9", SEQUENCE, SEQUENCE, first_entry_only)
    )
    with pytest.raises(SpecError, match=r"first_entry_only does not say what right\[1\] is"):
        check(model, explore)


def test_every_machine_refines_itself() -> None:
    def itself(s: Sequence, a: Sequence) -> None:
        """It is what it is."""
        for name in Sequence.variables:
            if name != "right":
                setattr(a, name, getattr(s, name))
        for i in each(Entry):
            a.right[i] = s.right[i]

    claim = Refinement("R-9", SEQUENCE, SEQUENCE, itself)
    model = replace(PLAIN.set("tokens=4"), refines=claim)
    assert the(check(model, explore), "itself") == (Kind.REFINEMENT, Verdict.PROVED, [])


@pytest.mark.parametrize("name", ["hybrid", "hash-only"])
def test_a_hybrid_cache_keeps_the_rules_of_scheme_a_to_the_letter(name: str) -> None:
    # Scheme A knows two things: whether a prefix is in the table, and who reads it. A hybrid
    # cache publishes, leases and evicts entries as scheme A does, window or not. So this mapping
    # cannot tell a hit from a hit: the table is right about what it lists, and says nothing of
    # what is needed. Only soundness tells the two apart.
    model = replace(MODELS[name], refines=ONE_GROUP_IS_SCHEME_A, start=())
    report = check(model, explore)
    assert the(report, "as_scheme_a") == (Kind.REFINEMENT, Verdict.PROVED, [])
    assert (the(report, "sound")[1] is Verdict.PROVED) is (name == "hybrid")


def test_a_refinement_is_not_judged_without_edges() -> None:
    report = check(HOMOGENEOUS, explore)
    abstract = check(HOMOGENEOUS.abstract(), explore).exploration
    bare = replace(report.exploration, edges=None)
    with pytest.raises(ValueError, match="judged on a graph with edges"):
        first_unmatched(bare, abstract)
