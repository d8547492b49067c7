"""Peterson's algorithm: two processes, one critical section, no lock.

Source: ``specifications/locks_auxiliary_vars/Peterson.tla`` of tlaplus/Examples; its manifest
gives 42 distinct states, 77 generated and 11 levels.
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
    implies,
    invariant,
    require,
    within,
)


class At(Enum):
    """Where a process is."""

    REST = 0
    RAISE_FLAG = 1
    GIVE_WAY = 2
    WAIT = 3
    CRITICAL = 4
    LOWER_FLAG = 5


class Process(Sort, letter="i", low=1, high=2):
    """One of the two."""


class Peterson(State):
    """Where the processes are, their flags, and whose turn it is."""

    at = Array("where the process is", Process, of=At, initial=At.REST)
    flag = Array("it wants to enter", Process, of=BOOL, initial=False)
    turn = Scalar("who goes first when both want to", of=within(1, 2), initial=1)


@action("P-1", state=EVERY)
def wake(s: Peterson, i: Process) -> None:
    """A process wants to enter."""
    require(rests=s.at[i] == At.REST)
    s.at[i] = At.RAISE_FLAG


@action("P-2", state=EVERY)
def raise_flag(s: Peterson, i: Process) -> None:
    """It raises its flag."""
    require(next=s.at[i] == At.RAISE_FLAG)
    s.flag[i] = True
    s.at[i] = At.GIVE_WAY


@action("P-3", state=EVERY)
def give_way(s: Peterson, i: Process) -> None:
    """It lets the other go first."""
    require(next=s.at[i] == At.GIVE_WAY)
    s.turn = 3 - i
    s.at[i] = At.WAIT


@action("P-4", state=EVERY)
def enter(s: Peterson, i: Process) -> None:
    """It enters when the other does not want to, or has let it go first."""
    require(
        waits=s.at[i] == At.WAIT,
        free=(s.turn == i) | forall(Process, lambda j: (j == i) | ~s.flag[j]),
    )
    s.at[i] = At.CRITICAL


@action("P-5", state=EVERY)
def leave(s: Peterson, i: Process) -> None:
    """It leaves."""
    require(critical=s.at[i] == At.CRITICAL)
    s.at[i] = At.LOWER_FLAG


@action("P-6", state=EVERY)
def lower_flag(s: Peterson, i: Process) -> None:
    """It lowers its flag."""
    require(next=s.at[i] == At.LOWER_FLAG)
    s.flag[i] = False
    s.at[i] = At.REST


@invariant("P-0")
def exclusive(s: Peterson, i: Process, j: Process) -> Term:
    """The two are never critical at the same time."""
    return implies((s.at[i] == At.CRITICAL) & (s.at[j] == At.CRITICAL), i == j)


NEXT = (wake, raise_flag, give_way, enter, leave, lower_flag)

PETERSON = Model(
    "peterson",
    "Mutual exclusion of two.",
    Machine("peterson", Peterson, NEXT, (exclusive,)),
)
