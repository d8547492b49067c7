"""For each guard, a state in which it alone keeps a step from being taken, and the way there.

Found breadth first from a few named starts, so the ways are short; the graph is the
specification's, so nothing here is typed from it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache

from tests.impl.tour import Graph

from fivestate.spec.allocator.state import Group
from fivestate.spec.language import Model
from fivestate.spec.models import SLICES
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, CacheState

STATES = 1_500
"""How many states of a slice are looked at, over all starts together."""

MAKING = (COMPRESSED, WINDOW, TAIL, INDEXER)
"""An order in which cells can be made."""


@dataclass(frozen=True)
class Alone:
    """A step that one guard alone refuses.

    Attributes:
        model: the slice.
        way: the steps from the slice's first state to the state, by number.
        step: the number of the step.
        bit: the guard, as a bit of the step's false guards.
    """

    model: Model
    way: tuple[int, ...]
    step: int
    bit: int


def computed(model: Model, request: str, prefix: str) -> list[str]:
    """Compute a prefix from nothing, publish it and run on it."""
    members = list(CacheState)
    present = {members[code] for code in model.elements(Group)}
    return [
        *(f"arrive({request}, {prefix})", f"admit({request}, {prefix})"),
        *(f"{v}({prefix}, {g.name})" for g in MAKING if g in present for v in ("make", "made")),
        *(f"publish({prefix})", f"resume({request}, {prefix})", f"run({request})"),
    ]


def starts(model: Model) -> list[list[str]]:
    """Return stories that lead to states in which more can happen; a slice has some of them."""
    members = list(CacheState)
    present = [members[code] for code in model.elements(Group)]
    runs, ends = computed(model, "r0", "p0"), ["finish(r0)"]
    stored = [*runs, "store_begin(p0, COMPRESSED)", "store_good(p0, COMPRESSED)"]
    demoted = [*stored, "demote_begin(p0, COMPRESSED)", "demote_good(p0, COMPRESSED)"]
    gone = [f"evict(p0, {g.name})" for g in reversed(MAKING) if g in present]
    captured = [*runs, "capture(r0, p0)", "scrub()", *ends]
    waits = ["arrive(r0, p0)", "admit(r0, p0)"]
    host_full = _host_full(model)
    fetches = [*host_full, "evict(p2, COMPRESSED)", "arrive(r0, p2)", "admit(r0, p2)"]
    return [
        [],
        runs,
        [*runs, *ends],
        [*stored, *ends],
        [*stored, *ends, *gone],
        [*stored, *ends, *gone, *waits],
        [*demoted, *ends],
        [*demoted, *ends, *gone, "drop(p0, COMPRESSED)", *waits],
        [*stored, *ends, "change_kernels()"],
        captured,
        [*captured, *computed(model, "r1", "p1")],
        [*captured, *computed(model, "r1", "p1"), "arrive(r0, p0)", "lease(r0)", "replay(r0, p0)"],
        host_full,
        fetches,
        [*fetches, "arrive(r1, p0)"],
        [*fetches, "make_host_room(p0, COMPRESSED)", "fetch(p2, COMPRESSED)"],
    ]


def _host_full(model: Model) -> list[str]:
    """Fill host memory for two with p0, which the disk has too, and p1; only the disk has p2."""
    story: list[str] = []
    for prefix, after in (
        ("p2", ["demote_begin", "demote_good", "drop"]),
        ("p0", ["demote_begin", "demote_good", "evict"]),
        ("p1", []),
    ):
        story += [*computed(model, "r0", prefix), "finish(r0)"]
        story += [f"{v}({prefix}, COMPRESSED)" for v in ("store_begin", "store_good", *after)]
    return story


@cache
def alone() -> dict[tuple[str, str], Alone]:
    """Return, by action and guard, a step that this guard alone refuses."""
    found: dict[tuple[str, str], Alone] = {}
    for model in SLICES:
        _search(model, found)
    return found


def _search(model: Model, found: dict[tuple[str, str], Alone]) -> None:
    graph = Graph(model)
    guards = [[(step.action.name, name) for name, _ in step.guards] for step in model.steps]
    came: dict[int, tuple[int, ...]] = {}
    queue: deque[int] = deque()
    for story in starts(model):
        start = told(graph, story)
        if start is not None and start[0] not in came:
            came[start[0]] = start[1]
            queue.append(start[0])
    for _ in range(STATES):
        if not queue:
            break
        at = queue.popleft()
        for step, false in enumerate(graph.falses(graph.states[at])):
            if false.bit_count() == 1:
                guard = guards[step][false.bit_length() - 1]
                if guard not in found or len(came[at]) < len(found[guard].way):
                    found[guard] = Alone(model, came[at], step, false)
        for step, target in graph.successors(at):
            if target not in came:
                came[target] = (*came[at], step)
                queue.append(target)


def told(graph: Graph, story: list[str]) -> tuple[int, tuple[int, ...]] | None:
    """Return the state behind a story and the steps of it, if the slice can tell it."""
    at, way, steps = 0, list[int](), graph.model.steps
    for label in story:
        taken = [(step, t) for step, t in graph.successors(at) if steps[step].label == label]
        if not taken:
            return None
        way.append(taken[0][0])
        at = taken[0][1]
    return at, tuple(way)
