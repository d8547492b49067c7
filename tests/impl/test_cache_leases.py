"""Leases of the cache: what they say, what they hold, and how they end."""

from __future__ import annotations

import numpy as np
import pytest
from tests.impl.served import OPERATIONS, PROMPT, engine, free, known, serve

from fivestate.impl.cache import Cache
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Means, Tier
from fivestate.spec.vocabulary import COMPRESSED, WINDOW


def test_a_lease_ends_with_its_block_and_gives_everything_back() -> None:
    served = engine()
    before = free(served)
    with served.cache.lease(served.cache.match(PROMPT), new_tokens=9) as lease:
        assert free(served) != before
        assert repr(lease) == "lease of request 1 at 0"
    assert free(served) == before
    lease.release()
    assert free(served) == before


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


def test_decoding_lets_go_of_a_window_too() -> None:
    served = engine()
    known(served, PROMPT)
    held = serve(served, [*PROMPT, 1], new_tokens=30)
    (node,) = served.allocator.nodes()
    for token in range(9):
        served.append(held, [token])
    assert served.cache._running[held.lease].written < 64
    with pytest.raises(Refused, match="'unleased' is false"):
        served.allocator.evict(node, WINDOW)
    for token in range(9):
        served.append(held, [token])
    served.allocator.evict(node, WINDOW)
    served.check()
