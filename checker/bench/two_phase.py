"""Two-phase commit in the specification language, for comparison with ``two_phase.pml``.

A coordinator and its parties agree to commit a transaction or to abort it. What was said once
stays said, so whoever listens may come as late as it likes.
Source: Gray and Lamport, "Consensus on transaction commit" (2006); with three parties it has 288
states, as published with ``TwoPhase.tla`` of tlaplus/Examples.
"""

from enum import Enum

from fivestate.spec.language import (
    BOOL,
    EVERY,
    Array,
    Machine,
    Model,
    Scalar,
    Sort,
    State,
    Term,
    action,
    forall,
    invariant,
    require,
)


class Stand(Enum):
    """How far a party has come."""

    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


class Decision(Enum):
    """What the coordinator has decided."""

    NONE = 0
    COMMIT = 1
    ABORT = 2


class Place(Enum):
    """The places at the table: named, so that there may be more than a sort has atoms."""

    A = 0
    B = 1
    C = 2
    D = 3
    E = 4
    F = 5
    G = 6
    H = 7
    I = 8  # noqa: E741 -- the ninth letter


class Party(Sort, letter="p", of=Place):
    """A party of the transaction."""


class TwoPhase(State):
    """The parties, the coordinator, and all that was said."""

    stand = Array("how far a party has come", Party, of=Stand, initial=Stand.WORKING)
    decision = Scalar("what is decided", of=Decision, initial=Decision.NONE)
    heard = Array("the coordinator has heard its vote", Party, of=BOOL, initial=False)
    voted = Array("it has said that it is prepared", Party, of=BOOL, initial=False)
    commit = Scalar("the coordinator has said: commit", of=BOOL, initial=False)
    abort = Scalar("the coordinator has said: abort", of=BOOL, initial=False)


@action("C-1", state=EVERY)
def hear(s: TwoPhase, p: Party) -> None:
    """Take note of a vote while nothing is decided."""
    require(undecided=s.decision == Decision.NONE, voted=s.voted[p])
    s.heard[p] = True


@action("C-2", state=EVERY)
def decide_commit(s: TwoPhase) -> None:
    """Decide to commit, once every vote was heard."""
    require(undecided=s.decision == Decision.NONE, all_heard=forall(Party, lambda p: s.heard[p]))
    s.decision = Decision.COMMIT
    s.commit = True


@action("C-3", state=EVERY)
def decide_abort(s: TwoPhase) -> None:
    """Decide to abort, for whatever reason."""
    require(undecided=s.decision == Decision.NONE)
    s.decision = Decision.ABORT
    s.abort = True


@action("C-4", state=EVERY)
def vote(s: TwoPhase, p: Party) -> None:
    """Get prepared and say so."""
    require(working=s.stand[p] == Stand.WORKING)
    s.stand[p] = Stand.PREPARED
    s.voted[p] = True


@action("C-5", state=EVERY)
def give_up(s: TwoPhase, p: Party) -> None:
    """Abort while working, without a word."""
    require(working=s.stand[p] == Stand.WORKING)
    s.stand[p] = Stand.ABORTED


@action("C-6", state=EVERY)
def follow_commit(s: TwoPhase, p: Party) -> None:
    """Commit as was said."""
    require(said=s.commit)
    s.stand[p] = Stand.COMMITTED


@action("C-7", state=EVERY)
def follow_abort(s: TwoPhase, p: Party) -> None:
    """Abort as was said."""
    require(said=s.abort)
    s.stand[p] = Stand.ABORTED


@invariant("C-0")
def of_one_mind(s: TwoPhase, p: Party, q: Party) -> Term:
    """No party has committed while another has aborted."""
    return ~((s.stand[p] == Stand.COMMITTED) & (s.stand[q] == Stand.ABORTED))


NEXT = (hear, decide_commit, decide_abort, vote, give_up, follow_commit, follow_abort)
TWO_PHASE = Machine("two-phase", TwoPhase, NEXT, (of_one_mind,))
NAME = "two-phase-"


def two_phase(parties: int) -> Model:
    """Return two-phase commit with so many parties, 9 at most."""
    places = tuple(Place)[:parties]
    return Model(f"{NAME}{len(places)}", "Two-phase commit.", TWO_PHASE, {"party": places})
