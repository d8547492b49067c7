"""Recoveries: what is begun and ended, in what order, and what comes of what is given up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.impl.served import PROMPT, engine, free, known, serve
from tests.impl.token_engine import GEOMETRIES, Engine, Held
from tests.impl.token_oracle import compare

from fivestate.impl.allocator import Doubt
from fivestate.impl.recoveries import Task
from fivestate.impl.refusals import Refused
from fivestate.impl.retention import Retention
from fivestate.spec.reuse import Kind, Means, Policy, Why
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, CacheState, Device

STATES = (COMPRESSED, WINDOW, TAIL)


def stored(name: str = "hybrid", states: tuple[CacheState, ...] = STATES, **more: Any) -> Engine:
    """Return an engine that has one prefix, off the device alone as far as the states go."""
    served = engine(name, **more)
    known(served, PROMPT)
    for node in served.allocator.nodes():
        for state in states:
            if state in node.cells:
                served.store(node, state)
        for state in (TAIL, WINDOW, INDEXER, COMPRESSED):
            if state in node.cells and state in states:
                served.allocator.evict(node, state)
    return served


def means(tasks: list[Task]) -> list[tuple[Means, CacheState]]:
    return [(task.means, task.state) for task in tasks]


def test_nothing_has_to_be_done_for_what_can_be_used_as_it_stands() -> None:
    served = engine()
    known(served, PROMPT)
    held = served.start([*PROMPT[:48], 1])
    recovery = served.cache.recover(held.lease)
    assert recovery.finished
    assert recovery.finish()
    assert recovery.pending() == []
    assert list(recovery) == []
    assert not held.lease.recovering


def test_the_plan_is_what_is_done() -> None:
    served = stored()
    held = served.start([*PROMPT[:48], 1])
    assert (held.lease.kind, held.lease.recovering) == (Kind.PARTIAL, True)
    planned = {(step.means, name) for step in held.lease.plan.steps for name in step.groups}
    recovery = served.cache.recover(held.lease)
    assert recovery.node is held.lease.cache._running[held.lease].request.target
    done: set[tuple[Means, str]] = set()
    while not recovery.finish():
        for task in recovery.pending():
            done |= {(task.means, name) for name in task.spans}
            served.do(recovery, task, held)
    assert done == planned
    served.check_lease(held)
    assert recovery.finished


@pytest.mark.parametrize("operation", ["snapshot", "blocks", "fill", "commit", "fork"])
def test_nothing_is_read_before_everything_is_complete(operation: str) -> None:
    served = stored()
    held = served.start([*PROMPT[:48], 1])
    more = (1,) if operation == "fill" else ()
    with pytest.raises(Refused) as refusal:
        getattr(served.cache, operation)(held.lease, *more)
    assert (refusal.value.clause, refusal.value.guard) == ("A-15", "complete")
    recovery = served.cache.recover(held.lease)
    first = recovery.pending()[0]
    recovery.begin(first)
    assert not recovery.finish()
    with pytest.raises(Refused):
        getattr(served.cache, operation)(held.lease, *more)
    served.end(recovery, first, held)
    assert not recovery.finish()


def test_a_loop_moves_bytes_by_itself_and_leaves_what_is_computed_to_the_engine() -> None:
    served = stored(states=(COMPRESSED, WINDOW))
    node = next(iter(served.allocator.nodes()))
    held = served.start([*PROMPT[:48], 1])
    for task in (recovery := served.cache.recover(held.lease)):
        assert task.means is Means.REBUILD_INDEX
        assert str(task) == "rebuild index INDEXER of [0, 48)"
        served.compute(task, held.tokens)
    assert recovery.finished
    served.check_lease(held)
    assert node.cells[WINDOW].device is Device.READY


def test_a_loop_that_is_left_has_published_nothing() -> None:
    served = stored(states=(COMPRESSED, WINDOW, TAIL))
    held = served.start([*PROMPT[:48], 1])
    for _ in served.cache.recover(held.lease):
        break
    assert held.lease.recovering
    served.release(held)
    served.check()
    again = served.start([*PROMPT[:48], 1])
    assert served.recover(again)


def test_a_copy_that_does_not_check_is_made_again_where_that_can_be() -> None:
    served = stored(states=(WINDOW,))
    held = served.start([*PROMPT[:48], 1])
    recovery = served.cache.recover(held.lease)
    (load,) = recovery.pending()
    served.do(recovery, load, held, "bad")
    assert not recovery.lost
    (again,) = recovery.pending()
    assert (again.means, again.state) == (Means.REPLAY, WINDOW)
    served.do(recovery, again, held)
    assert recovery.finish()
    served.check_lease(held)


@pytest.mark.parametrize("why", ["entries", "no replay", "tier lost it"])
def test_a_recovery_without_a_way_is_lost_and_the_prompt_is_matched_again(why: str) -> None:
    states = (COMPRESSED,) if why != "no replay" else (WINDOW,)
    served = stored(states=states, policy=Policy(replay=why != "no replay"))
    held = served.start([*PROMPT[:48], 1])
    recovery = served.cache.recover(held.lease)
    if why == "tier lost it":
        served.host.copies.clear()
        assert list(recovery) == []
    else:
        served.do(recovery, recovery.pending()[0], held, "bad")
    assert recovery.lost
    assert recovery.pending() == []
    assert not recovery.finish()
    served.release(held)
    served.check()
    assert served.cache.match([*PROMPT[:48], 1]).kind is Kind.MISS


def test_what_is_given_up_in_the_middle_is_withheld_until_it_has_landed() -> None:
    served = stored(states=(COMPRESSED,))
    before = free(served)
    held = served.start([*PROMPT[:48], 1])
    recovery = served.cache.recover(held.lease)
    (load,) = recovery.pending()
    recovery.begin(load)
    served.release(held)
    assert recovery.aborted
    assert not recovery.finished
    assert not recovery.finish()
    assert recovery.pending() == []
    assert free(served)["c2"] == before["c2"] - 6, "a transfer may still touch them"
    recovery.load(load)
    recovery.done(load)
    assert free(served) == before
    served.check()


def test_a_load_that_fails_after_it_was_given_up_has_landed_too() -> None:
    served = stored(states=(COMPRESSED,))
    before = free(served)
    held = served.start([*PROMPT[:48], 1])
    recovery = served.cache.recover(held.lease)
    (load,) = recovery.pending()
    recovery.begin(load)
    served.release(held)
    recovery.failed(load)
    assert free(served) == before


def test_whoever_comes_second_joins_and_outlives_the_first() -> None:
    served = stored(states=(COMPRESSED,))
    first, second = (served.start([*PROMPT[:48], 1]) for _ in range(2))
    recoveries = [served.cache.recover(held.lease) for held in (first, second)]
    (load,) = recoveries[0].pending()
    recoveries[0].begin(load)
    assert recoveries[1].pending() == [], "it is under way"
    assert list(recoveries[1]) == []
    served.release(first)
    served.end(recoveries[0], load, first)
    assert served.recover(second)
    served.check()


def test_both_may_go_on_once_either_has_recovered_it() -> None:
    served = stored(states=(COMPRESSED,))
    both = [served.start([*PROMPT[:48], 1]) for _ in range(2)]
    assert served.recover(both[0])
    assert not served.cache.recover(both[1].lease).finished
    assert served.recover(both[1])
    served.check()


def test_a_task_that_somebody_else_has_begun_cannot_begin_again() -> None:
    served = stored(states=(COMPRESSED,))
    both = [served.start([*PROMPT[:48], 1]) for _ in range(2)]
    one, other = (served.cache.recover(held.lease) for held in both)
    (mine,), (same,) = one.pending(), other.pending()
    one.begin(mine)
    with pytest.raises(Refused, match="A-41 load_begin is refused: guard 'reserved'"):
        other.begin(same)
    for report in (other.done, other.failed):
        with pytest.raises(Refused, match="guard 'begun' is false"):
            report(same)
    with pytest.raises(ValueError, match="is no load that has begun"):
        other.load(same)


def test_no_more_loads_begin_than_the_budget_allows() -> None:
    served = stored("homogeneous", states=(COMPRESSED,), retention=Retention(Keep.FULL))
    object.__setattr__(served.allocator.settings, "transfers_at_once", 2)
    held = served.start([*PROMPT[:48], 1])
    recovery = served.cache.recover(held.lease)
    tasks = recovery.pending()
    assert means(tasks) == [(Means.LOAD_BACK, COMPRESSED)] * 2
    for task in tasks:
        recovery.begin(task)
    assert recovery.pending() == []
    for task in tasks:
        served.end(recovery, task, held)
    assert served.recover(held)


def test_what_was_written_by_older_kernels_is_repacked_on_the_way() -> None:
    served = stored()
    served.allocator.change_kernels()
    held = served.start([*PROMPT[:48], 1])
    seen: list[Means] = []

    def fate(task: Task) -> str:
        seen.append(task.means)
        return "good"

    assert served.recover(held, fate)
    assert {Means.LOAD_BACK, Means.REPACK} <= set(seen)
    served.check_lease(held)


def test_a_misplaced_load_is_repacked() -> None:
    served = stored(states=(COMPRESSED,))
    held = served.start([*PROMPT[:48], 1])
    seen: list[Means] = []
    fates = {Means.LOAD_BACK: "misplaced"}

    def fate(task: Task) -> str:
        seen.append(task.means)
        return fates.get(task.means, "good")

    assert served.recover(held, fate)
    assert Means.REPACK in seen


def test_a_copy_on_disk_is_fetched_first() -> None:
    served = stored(disk=True, states=(COMPRESSED,))
    assert served.disk is not None
    node = next(iter(served.allocator.nodes()))
    key = served.allocator.demote_begin(node, COMPRESSED)
    served.disk.put(key, served.host.get(key))
    served.allocator.demote_good(node, COMPRESSED)
    served.allocator.drop(node, COMPRESSED)
    assert not served.host.copies
    held = served.start([*PROMPT[:48], 1])
    assert served.recover(held)
    assert serve_again(served, held)


def serve_again(served: Engine, held: Held) -> bool:
    served.release(held)
    served.check()
    return serve(served, [*PROMPT[:48], 2]).lease.resume == 48


@pytest.mark.parametrize("name", ["hybrid", "dsv4-flash"])
def test_what_lies_misplaced_when_a_recovery_is_given_up_is_seen_as_such(name: str) -> None:
    shape = GEOMETRIES[name]
    prompt = list(range(shape.scheduler_block_size + 1))
    served = engine(name, tokens=4 * len(prompt), in_flight_tokens=len(prompt))
    known(served, prompt)
    node = next(iter(served.allocator.nodes()))
    served.store(node, WINDOW)
    served.allocator.evict(node, WINDOW)
    held = served.start(prompt)
    recovery = served.cache.recover(held.lease)
    (load,) = recovery.pending()
    served.do(recovery, load, held, "misplaced")
    served.release(held)
    why = Why.LAYOUT if name == "hybrid" else Why.MISALIGNED
    assert why in {reason.why for reason in compare(served, prompt).reasons}


def test_work_that_went_on_for_others_ends_when_they_give_it_up_too() -> None:
    served = stored()
    first, second = served.start([*PROMPT[:48], 1]), served.start([*PROMPT[:48], 2])
    recovery = served.cache.recover(first.lease)
    task = recovery.pending()[0]
    recovery.begin(task)
    served.release(first)
    served.release(second)
    assert served.allocator.doubts[task.state]
    recovery.done(task)
    assert not served.allocator.doubts[task.state]
    served.allocator.check()


def test_what_is_withheld_for_a_store_does_not_come_back_with_a_repack() -> None:
    served = engine()
    known(served, PROMPT)
    served.allocator.change_kernels()
    held = served.start([*PROMPT[:48], 1])
    recovery = served.cache.recover(held.lease)
    task = next(task for task in recovery.pending() if task.means is Means.REPACK)
    recovery.begin(task)
    doubts = served.allocator.doubts[task.state]
    doubts.append(Doubt(task.state, task.blocks))  # a store of this cell that was given up
    recovery.done(task)
    assert [doubt.landed for doubt in doubts] == [False]
