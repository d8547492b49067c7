"""What a commit lets others find, and what it leaves out."""

from __future__ import annotations

from tests.impl.served import PROMPT, engine, known, serve

from fivestate.impl.pools import Owner
from fivestate.impl.retention import Retention
from fivestate.spec.reuse import Kind
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW


def test_drafts_are_not_committed() -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=40)
    served.append(held, [1] * 12, drafts=12)
    assert served.commit(held) == 48
    served.verify(held, 12)
    assert served.commit(held) == 64


def test_nothing_is_committed_before_something_is_written() -> None:
    served = engine()
    held = served.start(PROMPT)
    assert served.commit(held) == 0
    known(served, PROMPT)
    other = served.start([*PROMPT, 1])
    assert served.commit(other) == 48


def test_what_two_have_computed_is_known_once() -> None:
    served = engine()
    both = [served.start(PROMPT, new_tokens=40) for _ in range(2)]
    for held in both:
        served.fill(held, 52)
    assert [served.commit(held) for held in both] == [48, 48]
    assert len(list(served.allocator.nodes())) == 1
    for held, token in zip(both, (1, 2), strict=True):
        served.append(held, [token] * 12)
        assert served.commit(held) == 64
    assert len(list(served.allocator.nodes())) == 3
    served.check()


def test_a_longer_segment_is_split_where_two_prompts_part() -> None:
    served = engine("homogeneous")
    known(served, PROMPT)
    other = serve(served, [*PROMPT[:40], *PROMPT[:30]])
    assert other.lease.resume == 32
    served.release(other)
    spans = {(node.start_tokens, node.end_tokens) for node in served.allocator.nodes()}
    assert spans == {(0, 32), (32, 48), (32, 64)}
    both = [served.start([*PROMPT, 1]), served.start([*PROMPT[:40], *PROMPT[:30]])]
    assert [held.lease.resume for held in both] == [48, 64]


def test_a_sequence_that_parts_inside_a_segment_is_committed_behind_the_split() -> None:
    served = engine("homogeneous")
    one, other = served.start(PROMPT), served.start([*PROMPT[:20], *PROMPT[:30]])
    served.fill(one, 52)
    served.fill(other, 50)
    assert served.commit(one) == 48
    assert served.commit(other) == 48
    third = served.start(PROMPT[:33])
    served.fill(third, 33 - third.written)
    assert served.commit(third) == 32
    served.check()


def test_inside_a_segment_that_cannot_be_split_nothing_more_is_committed() -> None:
    served = engine()
    one, other = served.start(PROMPT), served.start([*PROMPT[:40], *PROMPT[:30]])
    served.fill(one, 52)
    served.fill(other, 60)
    assert served.commit(one) == 48
    node = next(iter(served.allocator.nodes()))
    key = served.allocator.store_begin(node, COMPRESSED)
    assert served.commit(other) == 0, "a store is under way"
    served.host.put(key, {})
    served.allocator.store_bad(node, COMPRESSED)
    assert served.commit(other) > 0


def test_a_hole_in_the_middle_is_filled_by_who_computes_it() -> None:
    served = engine("homogeneous", retention=Retention(Keep.FULL), storable=frozenset({COMPRESSED}))
    known(served, PROMPT)
    middle = next(node for node in served.allocator.nodes() if node.start_tokens == 16)
    served.store(middle, COMPRESSED)
    served.allocator.evict(middle, COMPRESSED)
    held = served.start([*PROMPT, 1])
    assert not served.recover(held, lambda _task: "bad")
    assert served.cache.recover(held.lease).lost
    served.release(held)
    assert served.cache.match([*PROMPT, 1]).resume == 16
    again = serve(served, [*PROMPT, 1])
    assert again.lease.resume == 16
    assert middle.known
    served.release(again)
    assert served.cache.match([*PROMPT, 1]).resume == 48


def test_what_somebody_else_recovers_is_left_to_it() -> None:
    served = engine("homogeneous", retention=Retention(Keep.FULL))
    known(served, PROMPT)
    held = serve(served, [*PROMPT[:16], *[1] * 20])
    assert held.lease.resume == 16
    served.check()


def test_a_commit_without_room_for_what_comes_next_is_put_off() -> None:
    served = engine(in_flight_tokens=16)
    held = served.start([1] * 16, new_tokens=150)
    served.fill(held, 16)
    pools = served.allocator.pools
    taken = {name: pool.take(pool.free, Owner.PRIVATE) for name, pool in pools.items()}
    assert served.commit(held) == 0
    for name, given in taken.items():
        pools[name].give(given, Owner.PRIVATE)
    assert served.commit(held) == 16
    served.check()


def test_windows_make_way_for_what_is_written_next() -> None:
    served = engine(in_flight_tokens=16)
    known(served, PROMPT)
    held = served.start([1] * 16, new_tokens=150)
    served.fill(held, 16)
    pool = served.allocator.pools["window"]
    taken = pool.take(pool.free, Owner.PRIVATE)
    assert served.commit(held) == 16
    assert served.cache.match([*PROMPT, 1]).kind is Kind.PARTIAL
    pool.give(taken, Owner.PRIVATE)
    served.check()


def test_what_others_had_published_and_lost_is_published_again() -> None:
    served = engine()
    first, other = (served.start(PROMPT, new_tokens=60) for _ in range(2))
    for held in (first, other):
        served.fill(held, 52)
        assert served.commit(held) == 48
    served.release(first)
    (node,) = served.allocator.nodes()
    for state in (WINDOW, TAIL, INDEXER, COMPRESSED):
        served.allocator.evict(node, state)
    assert served.cache.match([*PROMPT, 1]).resume == 0
    assert served.allocator.prune(node)
    served.append(other, [1] * 12)
    assert served.commit(other) == 64
    assert served.cache.match([*PROMPT, *[1] * 13]).resume == 64
    served.check()
