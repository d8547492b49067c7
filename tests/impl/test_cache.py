"""The cache as an engine sees it: match, lease, write, commit, fork, release, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.impl.token_engine import GEOMETRIES, Engine, Held

from fivestate.impl.allocator import Settings
from fivestate.impl.cache import Cache
from fivestate.impl.keys import Keys
from fivestate.impl.leases import Lease
from fivestate.impl.pools import Owner
from fivestate.impl.refusals import Refused
from fivestate.impl.retention import Retention
from fivestate.spec.language import ModelError
from fivestate.spec.need import blocks
from fivestate.spec.reuse import Kind, Means, Tier
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Phase

PROMPT = list(range(100, 152))
"""Three blocks of sixteen and four tokens."""


def engine(name: str = "hybrid", tokens: int = 400, **more: Any) -> Engine:
    """Return an engine whose pools each have blocks for some tokens."""
    shape = GEOMETRIES[name]
    return Engine(shape, {g.name: blocks(tokens, g.block_size) for g in shape.groups}, **more)


def serve(served: Engine, tokens: list[int], **more: Any) -> Held:
    """Compute a prompt, and commit what can be; the request goes on."""
    held = served.start(tokens, **more)
    served.recover(held)
    while left := len(held.tokens) - held.written:
        served.fill(held, min(left, served.cache.in_flight_tokens))
        served.commit(held)
    return held


def known(served: Engine, tokens: list[int]) -> None:
    """Let a prompt be known, and nobody hold it."""
    served.release(serve(served, tokens))


def free(served: Engine) -> dict[str, int]:
    return {name: pool.free for name, pool in served.allocator.pools.items()}


def test_a_second_request_goes_on_where_the_first_has_been() -> None:
    served = engine()
    first = serve(served, PROMPT)
    assert (first.lease.kind, first.lease.resume) == (Kind.MISS, 0)
    served.release(first)
    second = serve(served, [*PROMPT[:48], 7, 7])
    assert (second.lease.kind, second.lease.resume) == (Kind.HIT, 48)
    assert [step.means for step in serve(served, PROMPT).lease.plan.steps] == [Means.RECOMPUTE]
    served.check()


def test_a_lease_ends_with_its_block_and_gives_everything_back() -> None:
    served = engine()
    before = free(served)
    with served.cache.lease(served.cache.match(PROMPT), new_tokens=9) as lease:
        assert free(served) != before
        assert repr(lease) == "lease of request 1 at 0"
    assert free(served) == before
    lease.release()
    assert free(served) == before


OPERATIONS: dict[str, Callable[[Cache, Lease], object]] = {
    "recover": Cache.recover,
    "snapshot": Cache.snapshot,
    "blocks": Cache.blocks,
    "fill": lambda cache, lease: cache.fill(lease, 1),
    "append": lambda cache, lease: cache.append(lease, [1]),
    "verify": lambda cache, lease: cache.verify(lease, 0),
    "commit": Cache.commit,
    "fork": Cache.fork,
    "ledger": Cache.ledger,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_can_be_done_with_a_lease_that_has_ended(operation: str) -> None:
    served = engine()
    lease = served.cache.lease(served.cache.match(PROMPT))
    lease.release()
    before = free(served)
    with pytest.raises(Refused) as refusal:
        OPERATIONS[operation](served.cache, lease)
    assert (refusal.value.clause, refusal.value.guard) == ("I-3", "held")
    assert free(served) == before


@pytest.mark.parametrize("operation", [*OPERATIONS, "release"])
def test_nothing_can_be_done_with_a_lease_of_another_cache(operation: str) -> None:
    served, other = engine(), engine()
    lease = served.cache.lease(served.cache.match(PROMPT))
    do = OPERATIONS.get(operation, Cache.release)
    with pytest.raises(ValueError, match="is of another cache"):
        do(other.cache, lease)


@pytest.mark.parametrize("operation", [*OPERATIONS])
def test_a_crash_ends_every_lease(operation: str) -> None:
    served = engine()
    lease = serve(served, PROMPT).lease
    served.allocator.crash()
    with pytest.raises(Refused, match="'held' is false"):
        OPERATIONS[operation](served.cache, lease)
    lease.release()
    served.allocator.check()


def test_a_match_of_another_cache_is_no_match() -> None:
    with pytest.raises(ValueError, match="match: it is of another cache"):
        engine().cache.lease(engine().cache.match(PROMPT))


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([], "prompt: it is empty"),
        ([1, -1], r"tokens\[1\] = -1"),
        ("ab", r"tokens\[0\] = 'a'"),
        (Keys(4, 2).prompt([1, 2]), r"hashed by Keys\(step_tokens=4"),
    ],
)
def test_what_is_no_prompt_is_refused(prompt: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        engine().cache.match(prompt)


def test_numbers_out_of_their_range_are_refused_by_name() -> None:
    served = engine()
    match = served.cache.match(PROMPT)
    held = serve(served, PROMPT)
    for wrong in (
        lambda: served.cache.lease(match, new_tokens=-1),
        lambda: served.cache.arrive(match, new_tokens=-1),
        lambda: served.cache.fork(held.lease, new_tokens=-1),
    ):
        with pytest.raises(ValueError, match="new_tokens = -1: 0 or more"):
            wrong()
    with pytest.raises(ValueError, match="count = 1: 1 to 0 tokens of the prompt"):
        served.cache.fill(held.lease, 1)
    with pytest.raises(ValueError, match="drafts = 3: 0 to 2 is allowed"):
        served.cache.append(held.lease, [1, 2], 3)
    with pytest.raises(ValueError, match=r"tokens\[0\] = -5"):
        served.cache.append(held.lease, [-5])
    with pytest.raises(ValueError, match="in_flight_tokens = 0"):
        engine(in_flight_tokens=0)
    served.check()


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


def test_a_snapshot_says_where_everything_is_and_never_changes() -> None:
    served = engine()
    known(served, PROMPT)
    held = served.start([*PROMPT, 1])
    snapshot = held.lease.snapshot
    assert held.lease.snapshot is snapshot
    pools = served.allocator.pools
    assert snapshot.state_data_ptrs[COMPRESSED] == tuple(
        pools[name].storage.data_ptr() for name in ("c2", "c4")
    )
    assert dict(snapshot.first_blocks) == {"c2": 0, "c4": 0, "index": 0, "window": 21, "tail2": 46}
    assert {name: ids.size for name, ids in snapshot.block_ids.items()} == {
        "c2": 6,
        "c4": 3,
        "index": 12,
        "window": 3,
        "tail2": 2,
    }
    with pytest.raises(ValueError, match="read-only"):
        snapshot.block_ids["c2"][0] = 0
    with pytest.raises(TypeError):
        snapshot.block_ids["c2"] = np.zeros(1)  # type: ignore[index]  # it cannot be
    assert snapshot.stands(served.allocator)
    served.release(held)
    served.allocator.change_weights()
    assert not snapshot.stands(served.allocator)


def test_a_snapshot_stands_only_while_no_block_was_given_back() -> None:
    served = engine()
    known(served, PROMPT)
    held = served.start([*PROMPT, 1])
    snapshot = held.lease.snapshot
    served.release(held)
    assert snapshot.stands(served.allocator)
    node = next(iter(served.allocator.nodes()))
    served.allocator.evict(node, WINDOW)
    assert not snapshot.stands(served.allocator)


def test_tokens_are_written_in_turn_and_within_what_was_said() -> None:
    served = engine(in_flight_tokens=20)
    held = served.start(PROMPT, new_tokens=3)
    too_early = partial(served.cache.append, held.lease, [1])
    too_long = partial(served.cache.fill, held.lease, 21)
    refused = ((too_early, "A-1", "filled"), (too_long, "A-1", "in_flight"))
    for operation, clause, guard in refused:
        before = served.cache.blocks(held.lease)
        with pytest.raises(Refused) as refusal:
            operation()
        assert (refusal.value.clause, refusal.value.guard) == (clause, guard)
        assert served.cache.blocks(held.lease) == before
    for count in (20, 20, 12):
        served.fill(held, count)
    served.append(held, [1, 2])
    with pytest.raises(Refused, match="'fits' is false"):
        served.cache.append(held.lease, [3, 4])
    served.append(held, [3])
    served.check()


def test_drafts_are_accepted_or_taken_back() -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=40)
    with pytest.raises(Refused) as refusal:
        served.cache.verify(held.lease, 0)
    assert (refusal.value.clause, refusal.value.guard) == ("A-2", "drafted")
    served.append(held, [1, 2, 3, 4], drafts=3)
    served.append(held, [5])
    with pytest.raises(Refused, match="drafts=4, accepted=5"):
        served.cache.verify(held.lease, 5)
    served.verify(held, 2)
    assert held.tokens == [*PROMPT, 1, 2, 3]
    served.append(held, [9] * 9)
    assert served.commit(held) == 64
    served.append(held, [8, 8], drafts=2)
    served.verify(held, 2)
    served.release(held)
    assert served.cache.match([*PROMPT, 1, 2, 3, *[9] * 20]).numbers.matched == 64


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


def test_a_fork_reads_the_same_blocks_until_one_of_both_writes() -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=9)
    fork = served.fork(held, 9)
    tables = served.cache.blocks(held.lease)
    assert served.cache.blocks(fork.lease) == tables
    served.append(held, [1])
    assert served.cache.blocks(fork.lease) != tables
    served.append(fork, [2])
    served.check()
    other = served.fork(fork, 3)
    served.append(other, [3])
    served.check()
    served.release(held)
    served.release(fork)
    served.check()
    served.release(other)


def test_a_fork_that_never_writes_copies_nothing() -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=9)
    fork = served.fork(held)
    served.release(fork)
    served.append(held, [1])
    served.check()


def test_a_fork_survives_whom_it_came_from() -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=30)
    fork = served.fork(held, 30)
    served.release(held)
    served.append(fork, [1] * 30)
    assert served.commit(fork) == 80
    served.check()


def test_a_fork_is_refused_while_drafts_are_open_or_somebody_waits() -> None:
    served = engine(slots=3)
    held = serve(served, PROMPT, new_tokens=30)
    served.append(held, [1, 2], drafts=1)
    before = free(served)
    with pytest.raises(Refused, match="A-36 fork is refused: guard 'settled'"):
        served.cache.fork(held.lease)
    served.verify(held, 0)
    waiting = served.cache.arrive(served.cache.match([7]))
    with pytest.raises(Refused, match="A-36 fork is refused: guard 'nobody_waits'"):
        served.cache.fork(held.lease)
    assert free(served) == before
    served.cache.leave(waiting)
    served.fork(held)


def test_a_fork_needs_a_request_that_runs() -> None:
    served = engine()
    known(served, PROMPT)
    held = served.start([*PROMPT, 1])
    with pytest.raises(Refused, match="A-36 fork is refused: guard 'running'"):
        served.cache.fork(held.lease)


def test_who_is_aborted_in_a_step_holds_until_its_kernels_have_ended() -> None:
    served = engine()
    known(served, PROMPT)
    held = serve(served, [*PROMPT, 1])
    before = free(served)
    served.cache.release(held.lease, in_flight=True)
    assert free(served) == before
    for operation in ("blocks", "append", "commit", "fork"):
        with pytest.raises(Refused) as refusal:
            OPERATIONS[operation](served.cache, held.lease)
        assert (refusal.value.clause, refusal.value.guard) == ("A-34", "running")
    node = next(iter(served.allocator.nodes()))
    with pytest.raises(Refused, match="'unleased' is false"):
        served.allocator.evict(node, COMPRESSED)
    served.cache.release(held.lease)
    assert free(served) != before
    served.sequences.clear()
    served.check()


def test_a_lease_that_reads_nothing_yet_ends_at_once() -> None:
    served = engine()
    held = served.start(PROMPT)
    served.cache.release(held.lease, in_flight=True)
    with pytest.raises(Refused, match="'held' is false"):
        served.cache.blocks(held.lease)


def test_the_ledger_gives_each_token_of_each_group_one_form() -> None:
    served = engine()
    known(served, PROMPT)
    node = next(iter(served.allocator.nodes()))
    served.store(node, WINDOW)
    served.allocator.evict(node, WINDOW)
    held = served.start([*PROMPT, 1])
    lines = served.cache.ledger(held.lease)
    for group in served.geometry.voting:
        spans = [line.span for line in lines if line.group == group.name]
        assert [span.start for span in spans] == [0, *[span.end for span in spans[:-1]]]
        assert spans[-1].end == 48
    (window,) = [line for line in lines if line.group == "window" and line.needed]
    assert (window.tier, window.before) == (Tier.HOST, (Means.LOAD_BACK,))


def test_nodes_end_where_the_policy_says() -> None:
    ends = {
        Retention(): [48],
        Retention(Keep.FULL): [16, 32, 48],
        Retention(period_tokens=32): [32, 48],
        Retention(period_tokens=20): [16, 32, 48],
        Retention(Keep.ZERO): [48],
    }
    for retention, expected in ends.items():
        served = engine(retention=retention)
        known(served, PROMPT)
        assert sorted(node.end_tokens for node in served.allocator.nodes()) == expected


def test_without_retention_windows_go_with_the_request() -> None:
    served = engine(retention=Retention(Keep.ZERO))
    first = serve(served, PROMPT)
    other = served.start([*PROMPT[:48], 1])
    served.release(first)
    kind = served.cache.match([*PROMPT[:48], 1]).kind
    assert kind is Kind.HIT, "somebody else has come to use it"
    served.release(other)
    known(served, [*PROMPT[:20], *PROMPT])
    (end,) = [n for n in served.allocator.nodes() if n.end_tokens == 64]
    assert end.cells[WINDOW].device.name == "ABSENT"
    assert served.cache.match([*PROMPT[:20], *PROMPT]).kind is Kind.PARTIAL


def test_without_windows_there_is_nothing_to_let_go() -> None:
    served = engine("homogeneous", retention=Retention(Keep.ZERO))
    known(served, PROMPT)
    assert served.cache.match([*PROMPT, 1]).kind is Kind.HIT


@pytest.mark.parametrize(("keep", "period"), [(Keep.PERIODIC, 0), (Keep.FULL, 16), (Keep.ZERO, 16)])
def test_a_period_is_for_the_periodic_policy(keep: Keep, period: int) -> None:
    with pytest.raises(ModelError, match=f"period_tokens = {period}"):
        Retention(keep, period)


def test_rows_of_an_end_in_the_past_are_gone_and_cost_that_end_alone() -> None:
    served = engine(retention=Retention(Keep.FULL), in_flight_tokens=10)
    held = served.start([*PROMPT, *PROMPT])
    for _ in range(10):
        served.fill(held, 10)
    assert served.commit(held) == 96
    ends = sorted(node.end_tokens for node in served.allocator.nodes())
    assert ends[-1] == 96
    assert len(ends) < 6, "windows of earlier ends have slid away"
    served.check()


def test_a_window_that_nobody_reads_any_more_may_go() -> None:
    served = engine()
    known(served, PROMPT)
    held = served.start([*PROMPT, *PROMPT])
    node = next(iter(served.allocator.nodes()))
    served.fill(held, 8)
    with pytest.raises(Refused, match="'unleased' is false"):
        served.allocator.evict(node, WINDOW)
    served.fill(held, 40)
    served.allocator.evict(node, WINDOW)
    served.fill(held, 8)
    served.check()


def test_a_cache_over_an_allocator_that_has_prefixes_finds_them() -> None:
    served = engine()
    known(served, PROMPT)
    again = Cache(served.allocator)
    assert again.match([*PROMPT, 1]).resume == 48
    sizes = dict.fromkeys(served.allocator.pools, 9)
    fresh = Cache(Settings(geometry=served.geometry, num_blocks=sizes))
    assert fresh.match([*PROMPT, 1]).resume == 0


def test_weights_that_change_take_everything_that_was_seen_with_them() -> None:
    served = engine()
    known(served, PROMPT[:14])
    assert served.cache.match(PROMPT[:14]).numbers.matched == 14
    served.allocator.change_weights()
    assert served.cache.match(PROMPT[:14]).numbers.matched == 0
