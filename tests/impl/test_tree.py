"""The tree of prefixes at token level: what a resume needs, where nodes split, who holds what."""

from __future__ import annotations

import random

import pytest
from tests.impl.forest import GEOMETRY, STEP, Forest, held, mark
from tests.impl.token_engine import GEOMETRIES
from tests.impl.twin import Twin
from tests.scenarios.runs import computed, take

from fivestate.impl.allocator import Memory
from fivestate.impl.chain import CellSizes, sizes
from fivestate.impl.refusals import Refused
from fivestate.spec.language import Run
from fivestate.spec.models import HYBRID
from fivestate.spec.reuse import CacheGroup, Geometry
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Phase


def test_a_cell_has_the_blocks_that_a_resume_at_the_end_needs() -> None:
    forest = Forest()
    node = forest.grow(None, "abcd")
    assert {s.name: cell.sizes for s, cell in node.cells.items()} == {
        "COMPRESSED": {"c2": 8, "c4": 4},
        "TAIL": {"tail": 1},
        "WINDOW": {"swa": 4},  # 13 rows before token 32
        "INDEXER": {"index": 8},
    }


def test_a_resume_needs_entries_from_the_root_and_windows_as_far_as_they_reach() -> None:
    forest = Forest()
    first = forest.grow(None, "abc")
    second = forest.grow(first, "d")
    third = forest.grow(second, "ef")
    need = forest.allocator.need(third)
    wanted = {(cell.node, cell.state) for cell in need}
    every = {(node, state) for node in (first, second, third) for state in (COMPRESSED, INDEXER)}
    # The 13 rows before token 48 begin at 35, in the third node; before 32 at 19, in the first.
    assert wanted == every | {(third, WINDOW), (third, TAIL)}
    assert (first, WINDOW) in {(c.node, c.state) for c in forest.allocator.need(second)}


def test_a_prefix_is_a_hit_only_with_all_before_it() -> None:
    forest = Forest()
    first = forest.known(None, "ab")
    second = forest.known(first, "cd")
    assert forest.verdict(second) is Phase.HIT
    forest.allocator.evict(first, WINDOW)
    assert forest.verdict(second) is Phase.HIT  # nothing behind it reads that window
    assert forest.verdict(first) is Phase.PARTIAL
    forest.allocator.evict(first, INDEXER)
    assert forest.verdict(second) is Phase.PARTIAL


def test_entries_stay_while_something_is_behind_them() -> None:
    forest = Forest()
    first = forest.known(None, "ab")
    second = forest.known(first, "c")
    for state in (TAIL, WINDOW, INDEXER):
        forest.allocator.evict(first, state)
    with pytest.raises(Refused, match="'last' is false"):
        forest.allocator.evict(first, COMPRESSED)
    for state in (TAIL, WINDOW, INDEXER, COMPRESSED):
        forest.allocator.evict(second, state)
    forest.allocator.evict(first, COMPRESSED)
    assert forest.verdict(first) is Phase.MISS
    forest.allocator.check()


def test_behind_entries_that_are_lost_nothing_is_known() -> None:
    forest = Forest(storable=frozenset({COMPRESSED}))
    first = forest.known(None, "ab")
    second = forest.known(first, "cd")
    key = forest.allocator.store_begin(first, COMPRESSED)
    forest.allocator.settings.host.put(key, {})
    forest.allocator.store_good(first, COMPRESSED)
    forest.allocator.evict(first, COMPRESSED)
    assert forest.verdict(second) is Phase.PARTIAL
    request = forest.request()
    forest.allocator.arrive(request, second)
    forest.allocator.admit(request, second)
    forest.allocator.load_begin(first, COMPRESSED)
    forest.allocator.load_bad(first, COMPRESSED)
    assert forest.verdict(second) is Phase.MISS
    forest.make(first.cells[COMPRESSED])
    forest.make(first.cells[INDEXER])  # its rows were those of the entries before
    forest.allocator.publish(first)
    forest.allocator.resume(request, second)
    assert forest.verdict(second) is Phase.HIT


def test_what_is_computed_behind_a_prefix_keeps_what_it_is_computed_from() -> None:
    forest = Forest()
    first = forest.known(None, "abc")
    second = forest.grow(first, "def")
    forest.allocator.evict(first, WINDOW)
    request = forest.request()
    forest.allocator.arrive(request, second)
    forest.allocator.admit(request, second)
    assert first.cells[WINDOW].device.name == "RESERVED"  # claimed with it
    with pytest.raises(Refused, match="'sources' is false"):
        forest.allocator.make(second, COMPRESSED)
    forest.make(first.cells[WINDOW])
    forest.allocator.make(second, COMPRESSED)
    with pytest.raises(Refused, match="'settled' is false"):
        forest.allocator.evict(first, WINDOW)


def test_a_split_changes_nothing_for_who_holds_or_asks() -> None:
    forest = Forest()
    node = forest.grow(None, "abcdef")
    request = forest.recover(node)
    waiter = forest.request()
    forest.allocator.arrive(waiter, node)
    upper = forest.allocator.split(node, 3 * STEP)
    forest.allocator.check()
    assert (upper.start_tokens, upper.end_tokens) == (0, 24)
    assert (node.start_tokens, node.end_tokens, node.parent) == (24, 48, upper)
    assert forest.allocator.fresh(waiter)
    assert node.path() == [upper, node]
    assert upper.within(node)
    assert not node.within(upper)
    counts = {s.name: cell.sizes for s, cell in upper.cells.items()}
    assert counts["COMPRESSED"] == {"c2": 6, "c4": 3}
    with pytest.raises(Refused, match="'unleased' is false"):
        forest.allocator.evict(upper, INDEXER)
    forest.release(request)
    forest.allocator.lease(waiter)
    forest.release(waiter)
    assert forest.verdict(node) is Phase.HIT
    assert forest.verdict(upper) is Phase.PARTIAL  # a window is kept at the ends of nodes
    forest.allocator.check()


def test_a_prompt_that_parts_inside_goes_on_from_the_split() -> None:
    forest = Forest()
    node = forest.known(None, "abcdef")
    upper = forest.allocator.split(node, 2 * STEP)
    other = forest.grow(upper, "xy")
    request = forest.recover(other)
    assert {cell.node for cell in request.held} == {upper, other}
    assert forest.verdict(upper) is Phase.HIT  # its window was made on the way
    forest.release(request)
    forest.allocator.check()


def test_a_copy_is_cut_as_its_node_is() -> None:
    host, disk = Memory(), Memory()
    forest = Forest(storable=frozenset({COMPRESSED}), host=host, disk=disk)
    node = forest.known(None, "abcd")
    allocator, cell = forest.allocator, node.cells[COMPRESSED]
    pages = {group: allocator.pools[group].read(ids) for group, ids in cell.blocks.items()}
    key = allocator.store_begin(node, COMPRESSED)
    assert not allocator.can_split(node, 2 * STEP)  # a store is under way
    host.put(key, pages)
    allocator.store_good(node, COMPRESSED)
    allocator.demote_begin(node, COMPRESSED)
    disk.put(key, pages)
    allocator.demote_good(node, COMPRESSED)
    upper = allocator.split(node, 2 * STEP)
    for tier, name in ((host, "copy"), (disk, "disk")):
        for part, counts in ((upper, {"c2": 4, "c4": 2}), (node, {"c2": 4, "c4": 2})):
            copied = getattr(part.cells[COMPRESSED], name)
            assert {g: len(page) for g, page in tier.get(copied.key).items()} == counts
    assert len(host.copies) == len(disk.copies) == 2
    allocator.check()


class Whole:
    """A tier that cannot cut a copy."""

    put, get, drop = Memory.put, Memory.get, Memory.drop

    def __init__(self) -> None:
        self.copies: dict[object, object] = {}


def test_boundaries_are_not_offered_where_something_would_come_apart() -> None:
    forest = Forest(host=Whole())
    allocator = forest.allocator
    node = forest.known(None, "abcdef")
    assert allocator.can_split(node, 4 * STEP)
    assert not allocator.can_split(node, 5 * STEP)  # inside the window that is kept for the end
    assert not allocator.can_split(node, 4 * STEP + 4)  # inside a block
    assert not allocator.can_split(node, 6 * STEP)
    allocator.evict(node, WINDOW)
    assert allocator.can_split(node, 5 * STEP)
    request = forest.request()
    allocator.arrive(request, node)
    allocator.admit(request, node)
    assert not allocator.can_split(node, 2 * STEP)  # it is recovered
    allocator.abort_recovery(request, node)
    key = allocator.store_begin(node, COMPRESSED)
    allocator.settings.host.put(key, {})
    allocator.store_good(node, COMPRESSED)
    assert not allocator.can_split(node, 2 * STEP)  # the tier cannot cut it
    with pytest.raises(ValueError, match="may not be split"):
        allocator.split(node, 2 * STEP)
    with pytest.raises(ValueError, match="may not be split"):
        allocator.split(allocator.root, 0)


def test_a_captured_node_is_not_split() -> None:
    forest = Forest()
    node = forest.grow(None, "abcd")
    request = forest.recover(node)
    forest.allocator.run(request)
    forest.allocator.capture(request, node)
    assert not forest.allocator.can_split(node, STEP)


def test_a_snapshot_is_not_cut() -> None:
    groups = (
        CacheGroup(name="kv", state=COMPRESSED, block_size=8),
        CacheGroup(name="state", state=COMPRESSED, block_size=8, recurrent=True),
    )
    forest = Forest()
    recurrent = type(forest.allocator)(
        type(forest.allocator.settings)(
            geometry=Geometry("recurrent", groups), num_blocks={"kv": 8, "state": 8}
        )
    )
    node = recurrent.grow(recurrent.root, [b"a", b"ab"])
    assert node.cells[COMPRESSED].sizes == {"kv": 2, "state": 1}
    assert not recurrent.can_split(node, 8)


def test_a_node_is_pruned_once_it_has_nothing() -> None:
    forest = Forest()
    allocator = forest.allocator
    node = forest.known(None, "a")
    assert not allocator.prune(node)
    for state in (TAIL, WINDOW, INDEXER, COMPRESSED):
        allocator.evict(node, state)
    request = forest.request()
    allocator.arrive(request, node)
    assert not allocator.prune(node)  # somebody wants it
    allocator.abort_waiting(request)
    child = forest.grow(node, "b")
    assert not allocator.prune(node)  # something is behind it
    assert allocator.prune(child)
    assert allocator.prune(node)
    assert not allocator.prune(node)
    assert not allocator.prune(allocator.root)
    assert list(allocator.nodes()) == []


def test_a_node_begins_where_no_other_does() -> None:
    forest = Forest()
    forest.grow(None, "ab")
    with pytest.raises(ValueError, match="begins with this block"):
        forest.grow(None, "ax")
    with pytest.raises(ValueError, match="digests is empty"):
        forest.grow(None, "")


def test_adopted_blocks_are_a_known_prefix_that_their_request_goes_on_reading() -> None:
    forest = Forest()
    allocator = forest.allocator
    first = forest.known(None, "ab")
    request = forest.request(c2=8, c4=8, tail=8, swa=8, index=8)
    allocator.arrive(request, first)
    allocator.lease(request)
    allocator.run(request)
    second = forest.grow(first, "cd")
    free = {name: pool.free for name, pool in allocator.pools.items()}
    allocator.adopt(request, second, forest.private(request, second))
    allocator.check()
    assert free == {name: pool.free for name, pool in allocator.pools.items()}  # nothing is copied
    assert forest.verdict(second) is Phase.HIT
    assert request.want is second
    assert {cell.node for cell in request.held} == {first, second}
    for cell in second.cells.values():
        assert held(forest, cell) == {mark(cell)}
    with pytest.raises(Refused, match="'unleased' is false"):
        allocator.evict(second, WINDOW)
    allocator.evict(first, WINDOW)  # no query behind the second node reads it
    allocator.finish(request)
    allocator.check()


def test_what_cannot_be_adopted_changes_nothing() -> None:
    forest = Forest()
    allocator = forest.allocator
    first = forest.known(None, "ab")
    request = forest.request(c2=8, c4=8, tail=8, swa=8, index=8)
    second = forest.grow(first, "cd")
    allocator.arrive(request, first)
    with pytest.raises(ValueError, match="does not run at the end"):
        allocator.adopt(request, second, {})
    allocator.lease(request)
    allocator.run(request)
    good = forest.private(request, second)
    bad = [
        ({**good, TAIL: {}}, r"TAIL gets \{\} blocks"),
        ({s: b for s, b in good.items() if s is not TAIL}, "blocks are for"),
        ({**good, TAIL: {"tail": first.cells[TAIL].blocks["tail"]}}, "not the request's own"),
        (
            {**good, INDEXER: {"index": good[INDEXER]["index"][[0, 0, 1, 2]]}},
            "not the request's own",
        ),
    ]
    for blocks, match in bad:
        with pytest.raises(ValueError, match=match):
            allocator.adopt(request, second, blocks)
        allocator.check()
        assert not second.known
    third = forest.grow(second, "e")
    with pytest.raises(ValueError, match="does not run at the end"):
        allocator.adopt(request, third, {})
    allocator.adopt(request, second, good)
    with pytest.raises(ValueError, match="does not run at the end"):
        allocator.adopt(request, second, good)


def test_a_window_that_was_let_go_is_not_leased_again() -> None:
    forest = Forest()
    allocator = forest.allocator
    first = forest.known(None, "ab")
    request = forest.request(c2=8, c4=8, tail=8, swa=8, index=8)
    allocator.arrive(request, first)
    allocator.lease(request)
    allocator.run(request)
    allocator.slide(request)
    allocator.evict(first, WINDOW)
    second = forest.grow(first, "c")  # so short that its end needs rows of the first node
    with pytest.raises(ValueError, match="what is before the node is not complete"):
        allocator.adopt(request, second, forest.private(request, second))
    allocator.check()


def test_room_is_made_from_the_leaves_and_no_more_than_is_lacking() -> None:
    forest = Forest(num_blocks=16)
    allocator = forest.allocator
    trunk = forest.known(None, "ab")
    leaf = forest.known(trunk, "cdef")
    request = forest.request(c2=8)
    allocator.arrive(request, allocator.root)
    assert not allocator.room({"c2": 8})
    assert allocator.relieve(request)
    assert allocator.pools["c2"].free == 8
    assert forest.verdict(trunk) is Phase.HIT
    assert (leaf.start_tokens, leaf.known) == (32, False)  # the end of the leaf went
    upper = leaf.parent
    assert upper is not None
    assert upper.known
    allocator.check()


def test_windows_go_oldest_first_whatever_is_behind_them() -> None:
    forest = Forest(num_blocks=16)
    allocator = forest.allocator
    first = forest.known(None, "ab")
    second = forest.known(first, "cd")
    other = forest.known(None, "xy")
    request = forest.request(swa=16 - 8)
    allocator.arrive(request, allocator.root)
    assert allocator.relieve(request)
    absent = [n for n in (first, second, other) if n.cells[WINDOW].device.name == "ABSENT"]
    assert absent == [first]  # let go longest ago, though something is behind it
    assert forest.verdict(second) is Phase.HIT
    allocator.check()


def test_room_is_not_made_of_what_is_held_wanted_or_asked_by_another() -> None:
    forest = Forest(num_blocks=8)
    allocator = forest.allocator
    node = forest.grow(None, "ab")
    holder = forest.recover(node)
    request, later = forest.request(c2=8), forest.request(c2=8)
    allocator.arrive(request, node)
    allocator.arrive(later, allocator.root)
    assert not allocator.relieve(request)  # held
    forest.release(holder)
    assert not allocator.relieve(request)  # it wants it itself
    assert not allocator.relieve(later)  # not the first
    assert forest.verdict(node) is Phase.HIT
    allocator.abort_waiting(request)
    assert allocator.relieve(later)
    assert forest.verdict(node) is Phase.MISS
    with pytest.raises(ValueError, match="does not wait"):
        allocator.relieve(request)
    allocator.check()


def test_with_its_entries_all_copies_of_a_node_go() -> None:
    host = Memory()
    forest = Forest(
        num_blocks=8, storable=frozenset({COMPRESSED, WINDOW}), host=host, disk=Memory()
    )
    allocator = forest.allocator
    node = forest.known(None, "ab")
    key = allocator.store_begin(node, WINDOW)
    host.put(key, {})
    allocator.store_good(node, WINDOW)
    allocator.demote_begin(node, WINDOW)
    allocator.demote_good(node, WINDOW)
    request = forest.request(c2=8)
    allocator.arrive(request, allocator.root)
    assert allocator.relieve(request)
    assert not host.copies
    assert allocator.prune(node)


def test_entries_that_have_a_copy_go_alone() -> None:
    forest = Forest(num_blocks=8)
    allocator = forest.allocator
    node = forest.known(None, "ab")
    key = allocator.store_begin(node, COMPRESSED)
    allocator.settings.host.put(key, {})
    allocator.store_good(node, COMPRESSED)
    request = forest.request(c2=8)
    allocator.arrive(request, allocator.root)
    assert allocator.relieve(request)
    assert forest.verdict(node) is Phase.PARTIAL
    assert node.cells[WINDOW].device.name == "READY"


def test_adoption_is_the_run_of_a_request_that_recovers_the_node() -> None:
    twin, run = Twin(HYBRID), Run(HYBRID)
    groups = ("COMPRESSED", "WINDOW")
    for step in [*computed("r0", "p0", *groups), "finish(r0)"]:
        take(run, step)
    allocator, (request, _), (node,) = twin.allocator, twin.requests, twin.prefixes
    allocator.arrive(request, allocator.root)
    allocator.lease(request)
    allocator.run(request)
    private = {s: {g: request.private[g] for g in cell.sizes} for s, cell in node.cells.items()}
    allocator.adopt(request, node, private)
    for cell in node.cells.values():
        twin.world.put(cell, half=False)
    allocator.finish(request)
    assert twin.state() == run.state
    allocator.check()


def test_a_long_conversation_is_a_deep_tree() -> None:
    forest = Forest(num_blocks=64)
    node = forest.known(None, "a")
    for _ in range(1_500):
        node = forest.grow(node, "a")
    assert sum(1 for _ in forest.allocator.nodes()) == 1_501
    assert forest.verdict(node) is Phase.MISS
    assert not forest.allocator.prune(node.path()[0])


def test_the_geometry_is_what_the_figures_here_rely_on() -> None:
    assert GEOMETRY.scheduler_block_size == STEP


def test_what_is_needed_is_the_same_however_it_is_found_out() -> None:
    draw = random.Random(5)  # noqa: S311 -- the same trees every time
    forest = Forest()
    nodes = [forest.allocator.root]
    for number in range(60):
        parent, length = draw.choice(nodes), draw.randrange(1, 5)
        nodes.append(forest.grow(parent, chr(1_000 + number) * length))
        if number % 5 == 4:
            node = draw.choice(nodes)
            at_tokens = node.start_tokens + STEP
            if forest.allocator.can_split(node, at_tokens):
                nodes.append(forest.allocator.split(node, at_tokens))
        for node in draw.sample(nodes, min(len(nodes), 6)):
            assert list(forest.allocator.need(node)) == forest.allocator._needed(node)
    lengths = {forest.allocator.has_rows(node) for node in nodes}
    assert lengths == {True, False}, "nodes as long as the windows reach, and shorter ones"


@pytest.mark.parametrize("name", GEOMETRIES)
def test_segments_that_are_alike_take_the_same_blocks(name: str) -> None:
    geometry = GEOMETRIES[name]
    groups_of = Forest.groups_of(geometry)
    found, step = CellSizes(groups_of), geometry.scheduler_block_size
    for start in range(0, 20 * step, step):
        for end in range(start + step, 21 * step, step):
            every = {state: sizes(groups, start, end) for state, groups in groups_of.items()}
            assert found.of(start, end) == {s: taken for s, taken in every.items() if taken}
