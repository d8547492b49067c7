"""Bad input: a plain error that names the argument, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.impl.forest import GEOMETRY, Forest
from tests.impl.twin import Twin

from fivestate.impl.allocator import Allocator, Memory, Settings
from fivestate.impl.refusals import Refused
from fivestate.spec.language import errors
from fivestate.spec.models import MODELS
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, ON_DISK, TAIL, WINDOW

HERE, ELSEWHERE = Twin(MODELS["sharing"]), Twin(MODELS["sharing"])
NODE, REQUEST = HERE.prefixes[0], HERE.requests[0]
THEIR_NODE, THEIR_REQUEST = ELSEWHERE.prefixes[0], ELSEWHERE.requests[0]

CALLS: dict[str, Callable[[Allocator], object]] = {
    "arrive: node = .* belongs to another": lambda a: a.arrive(REQUEST, THEIR_NODE),
    "arrive: request = r0 belongs to another": lambda a: a.arrive(THEIR_REQUEST, NODE),
    "lease: request = r0 belongs to another": lambda a: a.lease(THEIR_REQUEST),
    "evict: node = .* belongs to another": lambda a: a.evict(THEIR_NODE, state=WINDOW),
    "evict: state is 'WINDOW': a CacheState": lambda a: a.evict(NODE, "WINDOW"),  # type: ignore[arg-type]
    "land: state is 3: a CacheState": lambda a: a.land(state=3),  # type: ignore[arg-type]
    "run: request is None: a Request": lambda a: a.run(None),  # type: ignore[arg-type]
    "grow: parent = .* belongs to another": lambda a: a.grow(THEIR_NODE, [b"x"]),
    "prune: node is 0: a Node": lambda a: a.prune(0),  # type: ignore[arg-type]
    "relieve: request = r0 belongs to another": lambda a: a.relieve(THEIR_REQUEST),
    "offset_bytes = 0: 1 or more": lambda a: a.load_misaligned(NODE, COMPRESSED, offset_bytes=0),
    "there is no group 'x'; known: c, w": lambda a: a.new_request("new", x=1),
    "private_demand of c = -1: 0 to 3": lambda a: a.new_request("new", c=-1),
    "private_demand of w = 4: 0 to 3": lambda a: a.new_request("new", w=4),
}


@pytest.mark.parametrize("match", CALLS)
def test_a_wrong_argument_is_named(match: str) -> None:
    before = HERE.state(), ELSEWHERE.state()
    with pytest.raises(ValueError, match=match):
        CALLS[match](HERE.allocator)
    assert (HERE.state(), ELSEWHERE.state()) == before
    HERE.allocator.check()


REFUSED: dict[str, Callable[[Allocator], object]] = {
    "A-26 evict is refused: guard 'state' .*state=ON_DISK": lambda a: a.evict(NODE, ON_DISK),
    "A-21 make is refused: guard 'state' .*state=INDEXER": lambda a: a.make(NODE, INDEXER),
    "A-25 reindex is refused: guard 'state'": lambda a: a.reindex(NODE),
    "A-37 copy_on_write is refused: guard 'state'": lambda a: a.copy_on_write(REQUEST),
    "A-28 land is refused: guard 'flying'": lambda a: a.land(TAIL),
    "A-29 reclaim is refused: guard 'landed'": lambda a: a.reclaim(ON_DISK),
    "A-16 run is refused: guard 'leased' is false .phase=IDLE.": lambda a: a.run(REQUEST),
    "A-72 scrub is refused: guard 'dirty' is false$": lambda a: a.scrub(),
}


@pytest.mark.parametrize("match", REFUSED)
def test_what_is_not_for_this_state_is_refused(match: str) -> None:
    before = HERE.state()
    with pytest.raises(Refused, match=match) as refused:
        REFUSED[match](HERE.allocator)
    assert isinstance(refused.value, errors.Refused)
    assert HERE.state() == before


def test_an_action_takes_its_arguments_by_name() -> None:
    twin = Twin(MODELS["sharing"])
    twin.allocator.arrive(request=twin.requests[0], node=twin.prefixes[0])
    assert twin.requests[0].target is twin.prefixes[0]
    with pytest.raises(ValueError, match="r1 is idle"):
        _ = twin.requests[1].target


def test_a_tail_is_not_copied_into_fewer_blocks() -> None:
    forest = Forest()
    node = forest.grow(None, "ab")
    request = forest.recover(node)
    forest.allocator.run(request)
    with pytest.raises(ValueError, match="has 0 private blocks of tail, the tail 1"):
        forest.allocator.copy_on_write(request)
    assert not request.copied
    assert all(cell.readers == 1 for cell in request.held)
    forest.allocator.check()


ENOUGH = dict.fromkeys((group.name for group in GEOMETRY.groups), 4)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"slots": 0}, "slots = 0: 1 or more"),
        ({"transfers_at_once": 0}, "transfers_at_once = 0: 1 or more"),
        ({"num_blocks": {"c2": 4}}, "num_blocks has no 'c4'"),
        ({"num_blocks": {**ENOUGH, "x": 4}}, "num_blocks names 'x'; known: c2, c4, index"),
        ({"reserve": {"x": 4}}, "reserve names 'x'"),
        ({"page_bytes": {"x": 4}}, "page_bytes names 'x'"),
        ({"num_blocks": {**ENOUGH, "c2": 0}}, "pool c2: num_blocks = 0"),
    ],
)
def test_settings_out_of_range_are_named(settings: dict[str, object], match: str) -> None:
    options = {"geometry": GEOMETRY, "num_blocks": ENOUGH, "disk": Memory(), **settings}
    with pytest.raises(ValueError, match=match):
        Allocator(Settings(**options))  # type: ignore[arg-type]  # by name
