"""Transaction commit: what two-phase commit implements, without saying how it is done.

Source: ``specifications/transaction_commit/TCommit.tla`` of tlaplus/Examples; its manifest gives
34 distinct states, 94 generated and 7 levels for three participants.
"""

from tests.machines.two_phase import Participant

from fivestate.spec.language import (
    EVERY,
    Array,
    Machine,
    Model,
    Sort,
    State,
    Term,
    action,
    forall,
    invariant,
    require,
)


class Member(Sort, letter="m"):
    """A participant of the transaction."""


class Transaction(State):
    """The participants."""

    member = Array("the participant", Member, of=Participant, initial=Participant.WORKING)


@action("T-1", state=EVERY)
def prepare(s: Transaction, m: Member) -> None:
    """A participant that works gets prepared."""
    require(working=s.member[m] == Participant.WORKING)
    s.member[m] = Participant.PREPARED


@action("T-2", state=EVERY)
def commit(s: Transaction, m: Member) -> None:
    """A prepared participant commits when everybody is prepared or has committed."""
    require(
        prepared=s.member[m] == Participant.PREPARED,
        agreed=forall(
            Member,
            lambda n: s.member[n].is_in(Participant.PREPARED, Participant.COMMITTED),
        ),
    )
    s.member[m] = Participant.COMMITTED


@action("T-3", state=EVERY)
def abort(s: Transaction, m: Member) -> None:
    """A participant that has not decided aborts, unless somebody has committed."""
    require(
        undecided=s.member[m].is_in(Participant.WORKING, Participant.PREPARED),
        nobody=forall(Member, lambda n: s.member[n] != Participant.COMMITTED),
    )
    s.member[m] = Participant.ABORTED


@invariant("T-0")
def consistent(s: Transaction, m: Member, n: Member) -> Term:
    """No participant has committed while another has aborted."""
    split = (s.member[m] == Participant.COMMITTED) & (s.member[n] == Participant.ABORTED)
    return ~split


TRANSACTION = Machine("transaction", Transaction, (prepare, commit, abort), (consistent,))


def transaction(members: int) -> Model:
    """Return transaction commit with this many participants."""
    return Model(f"transaction-{members}", "Transaction.", TRANSACTION, {"member": members})
