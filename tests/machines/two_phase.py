"""Two-phase commit, as published: a manager and participants agree to commit or to abort.

Source: Gray and Lamport, "Consensus on transaction commit" (2006); the TLA+ module is
``specifications/transaction_commit/TwoPhase.tla`` of tlaplus/Examples, whose manifest gives 288
distinct states, 1,146 generated and 11 levels for three participants; a comment in the module
gives 50,816 states for six.
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


class Participant(Enum):
    """What a participant has done."""

    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


class Manager(Enum):
    """What the manager has decided."""

    OPEN = 0
    COMMITTED = 1
    ABORTED = 2


class Member(Sort, letter="m"):
    """A participant of the transaction."""


class TwoPhase(State):
    """The participants, the manager, and every message ever sent."""

    member = Array("the participant", Member, of=Participant, initial=Participant.WORKING)
    manager = Scalar("the manager", of=Manager, initial=Manager.OPEN)
    heard = Array("the manager knows it is prepared", Member, of=BOOL, initial=False)
    prepared = Array("it has said that it is prepared", Member, of=BOOL, initial=False)
    commit = Scalar("the manager has said: commit", of=BOOL, initial=False)
    abort = Scalar("the manager has said: abort", of=BOOL, initial=False)


@action("C-1", state=EVERY)
def hear(s: TwoPhase, m: Member) -> None:
    """The undecided manager hears that a participant is prepared."""
    require(undecided=s.manager == Manager.OPEN, said=s.prepared[m])
    s.heard[m] = True


@action("C-2", state=EVERY)
def decide_commit(s: TwoPhase) -> None:
    """The manager commits once it has heard from everybody."""
    require(undecided=s.manager == Manager.OPEN, all_heard=forall(Member, lambda m: s.heard[m]))
    s.manager = Manager.COMMITTED
    s.commit = True


@action("C-3", state=EVERY)
def decide_abort(s: TwoPhase) -> None:
    """The manager may abort as long as it has not decided."""
    require(undecided=s.manager == Manager.OPEN)
    s.manager = Manager.ABORTED
    s.abort = True


@action("C-4", state=EVERY)
def prepare(s: TwoPhase, m: Member) -> None:
    """A participant that works gets prepared, and says so."""
    require(working=s.member[m] == Participant.WORKING)
    s.member[m] = Participant.PREPARED
    s.prepared[m] = True


@action("C-5", state=EVERY)
def give_up(s: TwoPhase, m: Member) -> None:
    """A participant that works may abort by itself; nobody is told."""
    require(working=s.member[m] == Participant.WORKING)
    s.member[m] = Participant.ABORTED


@action("C-6", state=EVERY)
def obey_commit(s: TwoPhase, m: Member) -> None:
    """A participant does as the manager said: it commits."""
    require(said=s.commit)
    s.member[m] = Participant.COMMITTED


@action("C-7", state=EVERY)
def obey_abort(s: TwoPhase, m: Member) -> None:
    """A participant does as the manager said: it aborts."""
    require(said=s.abort)
    s.member[m] = Participant.ABORTED


@invariant("C-0")
def consistent(s: TwoPhase, m: Member, n: Member) -> Term:
    """No participant has committed while another has aborted."""
    split = (s.member[m] == Participant.COMMITTED) & (s.member[n] == Participant.ABORTED)
    return ~split


NEXT = (hear, decide_commit, decide_abort, prepare, give_up, obey_commit, obey_abort)

TWO_PHASE = Machine("two-phase", TwoPhase, NEXT, (consistent,))


def two_phase(members: int) -> Model:
    """Return two-phase commit with this many participants."""
    return Model(f"two-phase-{members}", "Two-phase commit.", TWO_PHASE, {"member": members})
