"""A captured step that recovers inside: at the shape, and with the branches, that were captured.

An engine may fold a tail, replay a window or rebuild index rows within a captured step, since
every token owes some of it. Then the graph has a fixed number of lanes for that in every row,
they run in every replay, and which of them has something to do stands in buffers that are read
when it runs. Nothing is decided at capture: there is only padding then, and padding owes nothing.
"""

from __future__ import annotations

from fivestate.spec.language import (
    BOOL,
    EVERY,
    Array,
    Fairness,
    Machine,
    Scalar,
    Size,
    Sort,
    State,
    Term,
    Ways,
    action,
    changes,
    each,
    escape,
    forall,
    implies,
    invariant,
    ite,
    may,
    require,
    step,
    took,
    ways,
    within,
    witness,
)

LANES = Size("lanes", "recoveries that the captured step can do in one row", 1, 8)
MOST = Size("most", "recoveries that a request can owe before its next token", 1, 8)


class Row(Sort, letter="b"):
    """A row of the batch that the step was captured for."""


class Owed(Sort, letter="n", low=0, high=MOST):
    """How much recovery a request owes."""


class StaticStep(State):
    """One step of fixed shape, and the requests in its rows."""

    captured = Scalar("there is a captured step", of=BOOL, initial=False)
    lanes_run = Scalar("it has its recovery lanes, in every row", of=BOOL, initial=False)
    flying = Scalar("it is being replayed", of=BOOL, initial=False)
    taken = Array("a request has the row", Row, of=BOOL, initial=False)
    owed = Array("recoveries it owes before its next token", Row, of=within(0, MOST), initial=0)
    live = Array("the row's buffers say: compute", Row, of=BOOL, initial=False)
    lanes = Array("so many lanes they give work", Row, of=within(0, LANES), initial=0)
    right = Array(
        "all that its request computed had what it owed",
        Row,
        of=BOOL,
        initial=True,
        ghost=True,
    )
    inert = Scalar("padding has touched nothing", of=BOOL, initial=True, ghost=True)


def filled(s: StaticStep, b: Row) -> Term:
    """The row's buffers say what its request owes, or that it is padding."""
    return (s.live[b] == s.taken[b]) & (s.lanes[b] == s.owed[b])


@action("A-101", state=EVERY)
def join(s: StaticStep, b: Row) -> None:
    """A request takes a row; in a replay that is under way, the row stays padding."""
    require(vacant=~s.taken[b])
    s.taken[b] = True
    s.right[b] = True


@action("A-102", state=EVERY)
def part(s: StaticStep, b: Row) -> None:
    """A request leaves its row; what the buffers say of it stays until they are filled."""
    require(taken=s.taken[b], landed=~s.flying)
    s.taken[b] = False
    s.owed[b] = 0


@action("A-103", state=EVERY)
def capture(s: StaticStep) -> None:
    """Capture the step with every lane in it, whoever needs one now.

    A lane that is left out because nothing is owed now is left out of every replay.
    Source: domain §1.10, the compressor's comment; nntrainer #4317.
    """
    require(none=~s.captured)
    s.captured = True
    s.lanes_run = True


@action("A-104", state=EVERY)
def fill(s: StaticStep, b: Row) -> None:
    """Write into a row's buffers what its request owes, if its lanes are enough; else padding.

    Never under a replay, which reads them when it runs.
    Source: seed 000 §6(4).
    """
    require(landed=~s.flying, stale=~filled(s, b), fits=s.owed[b] <= LANES)
    s.live[b] = s.taken[b]
    s.lanes[b] = s.owed[b]


@action("A-105", state=EVERY)
def replay(s: StaticStep) -> None:
    """Replay the captured step, for all requests at once; a vacant row is padding (重放).

    Where one of them owes more than its lanes can do, nothing is replayed: they step eagerly.
    Source: seed 000 §6(4); seed 001 §4.3. Decision: D-5.
    """
    require(
        captured=s.captured,
        landed=~s.flying,
        filled=forall(Row, lambda b: filled(s, b)),
    )
    s.flying = True


@action("A-106", state=EVERY)
def landed(s: StaticStep) -> None:
    """The replay ends: every live row has recovered in its lanes, and then computed."""
    require(flying=s.flying)
    s.flying = False
    s.inert = s.inert & forall(Row, lambda b: implies(s.live[b], s.taken[b]))
    for b in each(Row):
        done = ite(s.lanes_run, s.lanes[b], 0)
        s.right[b] = s.right[b] & implies(s.live[b] & s.taken[b], done >= s.owed[b])
        s.owed[b] = ite(s.live[b], 0, s.owed[b])


@action("A-107", state=EVERY)
def step_eagerly(s: StaticStep, b: Row) -> None:
    """Recover all that a request owes, and compute its token, outside the graph (回退).

    It is always right, and the only way where the fixed shape is too small.
    """
    require(owes=s.owed[b] > 0, landed=~s.flying)
    s.owed[b] = 0


@action("A-108", state=EVERY)
def owe(s: StaticStep, b: Row, n: Owed) -> None:
    """A request comes to owe recovery: a group is full, or rows of its prefix were let go.

    Never under a replay: until it has landed, what the request stands on is held.
    """
    require(taken=s.taken[b], landed=~s.flying, more=n > s.owed[b])
    s.owed[b] = n


@action("A-109", state=EVERY)
def invalidate(s: StaticStep) -> None:
    """Give up the captured step, when it is not being replayed."""
    require(captured=s.captured, landed=~s.flying)
    s.captured = False
    s.lanes_run = False


@invariant("I-0")
def computed_on_what_it_owed(s: StaticStep, b: Row) -> Term:
    """No token is computed before what its request owed was recovered."""
    return s.right[b]


@invariant("I-4")
def padding_is_inert(s: StaticStep) -> Term:
    """A row without a request changes nothing."""
    return s.inert


@invariant("I-4")
def nothing_is_decided_at_capture(s: StaticStep) -> Term:
    """A captured step has all its lanes, whatever was owed when it was captured."""
    return s.captured == s.lanes_run


@step("I-4")
def buffers_stand(before: StaticStep, after: StaticStep, b: Row) -> Term:
    """What a replay reads does not change under it, and nor does who is served by it."""
    under = before.flying & after.flying
    same = (before.live[b] == after.live[b]) & (before.lanes[b] == after.lanes[b])
    held = (before.taken[b] == after.taken[b]) & (before.owed[b] == after.owed[b])
    return implies(under, same & implies(before.live[b], held) & after.captured)


@step("I-4")
def recovers_at_the_captured_shape(before: StaticStep, after: StaticStep, b: Row) -> Term:
    """What is recovered inside the graph fits its lanes."""
    inside = took(landed) & (after.owed[b] < before.owed[b])
    return implies(inside, before.captured & (before.owed[b] <= LANES))


@step("I-2")
def nothing_stutters(before: StaticStep, after: StaticStep) -> Term:
    """Every action changes something."""
    return changes(before, after)


@escape("L-2")
def owes(s: StaticStep, b: Row) -> Term:
    """What is owed is recovered."""
    return s.owed[b] > 0


@escape("L-3")
def flies(s: StaticStep) -> Term:
    """A replay ends."""
    return s.flying


@witness("W-27")
def recovered_inside(s: StaticStep, b: Row) -> Term:
    """A row recovers within a replay."""
    return s.flying & (s.lanes[b] > 0)


@witness("W-28")
def padding_beside(s: StaticStep, a: Row, b: Row) -> Term:
    """A row is padding while another recovers."""
    return s.flying & (a != b) & ~s.taken[a] & (s.lanes[b] > 0)


@witness("W-29", given=MOST > LANES)
def too_much_for_the_shape(s: StaticStep, b: Row) -> Term:
    """A request owes more than the captured step can do, so it steps eagerly."""
    return s.captured & (s.owed[b] > LANES) & may(step_eagerly, b)


@witness("W-30")
def buffers_of_one_who_left(s: StaticStep, b: Row) -> Term:
    """A row's buffers still speak of a request that has left."""
    return s.live[b] & ~s.taken[b]


@witness("W-31")
def joined_under_a_replay(s: StaticStep, b: Row) -> Term:
    """A request has joined while the step is replayed for others."""
    return s.flying & s.taken[b] & ~s.live[b]


@witness("P-49")
def replays_at_the_edges(s: StaticStep, b: Row) -> Ways:
    """A step may be replayed where nobody owes anything, and where one owes all that lanes do."""
    return ways(
        nothing=may(replay) & s.taken[b] & forall(Row, lambda a: s.owed[a] == 0),
        full=may(replay) & (s.owed[b] == LANES),
    )


@witness("P-50")
def fills_what_changed(s: StaticStep, b: Row) -> Ways:
    """Buffers may be filled for who has joined, who has left, and who owes more than they say."""
    idle = may(fill, b) & (s.lanes[b] == s.owed[b])
    return ways(
        joined=idle & s.taken[b] & ~s.live[b],
        left=idle & ~s.taken[b] & s.live[b],
        owes=may(fill, b) & s.taken[b] & s.live[b],
    )


@witness("P-51")
def owes_one_more(s: StaticStep, b: Row, n: Owed) -> Term:
    """A request may come to owe one recovery more."""
    return may(owe, b, n) & (n == s.owed[b] + 1)


@witness("P-52")
def captured_and_given_up_beside_requests(s: StaticStep, b: Row) -> Ways:
    """A step may be captured, and given up, while a request has its row."""
    return ways(captured=may(capture) & s.taken[b], given_up=may(invalidate) & s.taken[b])


NEXT = (join, part, capture, fill, replay, landed, step_eagerly, owe, invalidate)
PROPERTIES = (
    *(computed_on_what_it_owed, padding_is_inert, nothing_is_decided_at_capture),
    *(buffers_stand, recovers_at_the_captured_shape, nothing_stutters),
    *(owes, flies),
    *(recovered_inside, padding_beside, too_much_for_the_shape),
    *(buffers_of_one_who_left, joined_under_a_replay),
    *(replays_at_the_edges, fills_what_changed, owes_one_more),
    captured_and_given_up_beside_requests,
)
FAIRNESS = Fairness(weak=(landed, step_eagerly), finite=(owe, part, invalidate))
"""Replays land and requests step; a request owes, leaves, or loses its graph finitely often."""

STATIC_STEP = Machine("static-step", StaticStep, NEXT, PROPERTIES, fairness=FAIRNESS)
