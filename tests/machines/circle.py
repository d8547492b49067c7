"""A machine whose effects read each other in a circle, go below zero, and can be made to fail."""

from fivestate.spec.language import (
    BOOL,
    EVERY,
    Array,
    Machine,
    Model,
    Scalar,
    Size,
    Sort,
    State,
    Switch,
    Term,
    action,
    each,
    implies,
    invariant,
    ite,
    max_,
    min_,
    require,
    step,
    took,
    total,
    within,
)

LIMIT = Size("limit", "how far a number may go", 1, 9)
GREEDY = Switch("greedy", "a step may be taken too far")


class Place(Sort, letter="i", low=0, high=2):
    """One of three places."""


class Circle(State):
    """Three numbers that turn, and a mark."""

    number = Array("the number at a place", Place, of=within(0 - LIMIT, LIMIT), initial=0)
    first = Scalar("the largest there has been", of=within(0, LIMIT), initial=0)
    marked = Array("the place is marked", Place, of=BOOL, initial=False)


@action("X-1", state=EVERY)
def turn(s: Circle) -> None:
    """Every number moves on by one place, all at once."""
    require(any=s.number[0] != s.number[1])
    s.number[0] = s.number[1]
    s.number[1] = s.number[2]
    s.number[2] = s.number[0]


@action("X-2", state=EVERY)
def push(s: Circle, i: Place) -> None:
    """A number grows, and the largest with it."""
    require(room=(s.number[i] < LIMIT) | GREEDY)
    s.number[i] = s.number[i] + 1
    s.first = max_(s.first, s.number[i] + 1)


@action("X-3", state=EVERY)
def halve(s: Circle, i: Place) -> None:
    """A number is halved, downwards also below zero, and another takes what it was."""
    require(unmarked=~s.marked[i])
    for j in each(Place):
        s.number[j] = ite(i == j, (s.number[j] - 1) // 2, min_(s.number[j], s.number[i]))
        s.marked[j] = i == j


@invariant("X-0")
def small(s: Circle, i: Place) -> Term:
    """No number exceeds the largest."""
    return s.number[i] <= s.first


@step("X-0")
def grows(before: Circle, after: Circle) -> Term:
    """The largest never shrinks, and never jumps."""
    return (after.first >= before.first) & (after.first - before.first < 2)


@invariant("X-0")
def bounded(s: Circle) -> Term:
    """All together are not more than three times the largest."""
    return total(Place, lambda i: s.number[i]) <= 3 * s.first


@step("X-0")
def turning_is_calm(before: Circle, after: Circle) -> Term:
    """Turning leaves the largest as it is, and so does halving."""
    return implies(took(turn, halve), after.first == before.first)


NEXT = (turn, push, halve)

CIRCLE = Machine("circle", Circle, NEXT, (small, bounded, grows, turning_is_calm))


def circle(*, greedy: bool = False) -> Model:
    """Return the machine; a ``greedy`` one leaves its range."""
    return Model("circle", "Three numbers.", CIRCLE, {"limit": 2, "greedy": greedy})
