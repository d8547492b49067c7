"""Admission to the cache: room, turns, and what has changed since a match was made."""

from __future__ import annotations

import pytest
from tests.impl.served import PROMPT, engine, free, known, serve

from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Kind, Means
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Phase


def test_a_request_that_can_never_be_admitted_is_told_so() -> None:
    served = engine(tokens=64)
    with pytest.raises(ValueError, match="needs 13 blocks of c2, and its pool has 8: it can never"):
        served.cache.lease(served.cache.match([1]), new_tokens=100)
    assert not served.allocator._queue


def test_without_room_a_lease_is_refused_and_nothing_has_changed() -> None:
    served = engine(tokens=160)
    held = serve(served, list(range(15)), new_tokens=100)
    before = free(served)
    with pytest.raises(Refused) as refusal:
        served.cache.lease(served.cache.match([1]), new_tokens=100)
    assert (refusal.value.clause, refusal.value.guard) == ("A-14", "room")
    assert free(served) == before
    assert not served.allocator._queue
    served.release(held)
    with served.cache.lease(served.cache.match([1]), new_tokens=100):
        served.check()


def test_room_is_made_of_what_nobody_holds() -> None:
    served = engine(tokens=160, in_flight_tokens=16)
    for start in range(0, 300, 100):
        known(served, list(range(start, start + 64)))
        served.check()
    assert served.cache.match(list(range(200, 265))).resume == 64
    assert served.cache.match([*range(64), 0]).resume < 64


def test_who_waits_keeps_its_place_and_is_served_in_turn() -> None:
    served = engine(slots=1)
    cache = served.cache
    held = serve(served, PROMPT)
    waiting = [cache.arrive(cache.match(PROMPT)) for _ in range(3)]
    for who, guard in zip(waiting, ("slot", "first", "first"), strict=True):
        with pytest.raises(Refused, match=f"'{guard}' is false"):
            cache.lease(who)
    served.release(held)
    cache.leave(waiting[0])
    with pytest.raises(Refused, match="'first' is false"):
        cache.lease(waiting[2])
    with cache.lease(waiting[1]) as lease:
        assert lease.resume == 48
    cache.lease(waiting[2]).release()


def test_who_waits_looks_again_when_something_was_lost() -> None:
    served = engine()
    cache, allocator = served.cache, served.allocator
    known(served, PROMPT)
    waiting = cache.arrive(cache.match([*PROMPT, 1]))
    node = waiting.node
    allocator.evict(node, WINDOW)
    lease = cache.lease(waiting)
    assert lease.recovering
    assert {step.means for step in lease.plan.steps} == {Means.REPLAY, Means.RECOMPUTE}
    lease.release()
    gone = cache.arrive(cache.match([*PROMPT, 1]))
    for state in (WINDOW, TAIL, INDEXER, COMPRESSED):
        if node.cells[state].device.name == "READY":
            allocator.evict(node, state)
    with pytest.raises(Refused) as refusal:
        cache.lease(gone)
    assert (refusal.value.clause, refusal.value.guard) == ("A-12", "fresh")
    assert gone.sequence.request.phase is Phase.MISS
    cache.leave(gone)
    assert cache.match([*PROMPT, 1]).kind is Kind.MISS


def test_a_match_that_has_aged_is_leased_as_it_is_by_now() -> None:
    served = engine()
    known(served, PROMPT)
    match = served.cache.match([*PROMPT, 1])
    assert match.resume == 48
    for node in served.allocator.nodes():
        for state in (WINDOW, TAIL, INDEXER, COMPRESSED):
            served.allocator.evict(node, state)
    with served.cache.lease(match) as lease:
        assert (lease.kind, lease.resume) == (Kind.MISS, 0)
