"""Pools: every block has one owner, and nobody reads what the last one wrote."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fivestate.impl.pools import FEW, NO_BLOCKS, Blocks, Owner, Pool
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import CacheGroup
from fivestate.spec.vocabulary import COMPRESSED

GROUP = CacheGroup(name="kv", state=COMPRESSED, block_size=16)
CPU = torch.device("cpu")


def pool(num_blocks: int = 8) -> Pool:
    return Pool(GROUP, num_blocks, 4, CPU)


def ids(*numbers: int) -> Blocks:
    return np.array(numbers, np.int64)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 3 * FEW]),
    st.lists(st.tuples(st.sampled_from(["take", "give", "move"]), st.integers(0, 9))),
)
def test_whatever_changes_hands_every_block_has_one_owner(
    times: int, steps: list[tuple[str, int]]
) -> None:
    """A few blocks at a time, or so many that they are noted all at once."""
    blocks, generations = pool(8 * times), 0
    owned: dict[Owner, list[Blocks]] = {Owner.CELL: [], Owner.DOOMED: []}
    for step, number in steps:
        cells, doomed = owned[Owner.CELL], owned[Owner.DOOMED]
        if step == "take" and number * times <= blocks.free:
            cells.append(blocks.take(number * times, Owner.CELL))
            blocks.overwritten(cells[-1])
        elif step == "move" and cells:
            blocks.hand_over(cells[0], Owner.CELL, Owner.DOOMED)
            doomed.append(cells.pop(0))
        elif step == "give" and doomed:
            given = doomed.pop(0)
            generations += given.size
            blocks.give(given, Owner.DOOMED)
            assert blocks.stale[given].all()
        blocks.check(owned)
        assert blocks.free == 8 * times - sum(b.size for lots in owned.values() for b in lots)
        assert blocks.generation.sum() == generations
        assert not any(blocks.stale[held].any() for lots in owned.values() for held in lots)


@pytest.mark.parametrize("size", [FEW, FEW + 1, 40])
def test_what_is_chosen_is_taken_out_if_it_is_there_once(size: int) -> None:
    blocks = pool(50)
    has = blocks.take(size, Owner.PRIVATE)
    left = blocks.without(has, has[[2, 5]])
    assert left is not None
    assert left.tolist() == [n for n in has.tolist() if n not in has[[2, 5]]]
    for wrong in (ids(50), has[[2, 2]], ids(0), ids(*has, *has[:1])):
        assert blocks.without(has, wrong) is None
    assert blocks.without(has, has[:0]) is not None, "nothing is left marked"
    with pytest.raises(ValueError, match="block 50 is FREE, not PRIVATE"):
        blocks.give(np.append(has, 50), Owner.PRIVATE)
    assert (blocks.owner[has] == Owner.PRIVATE).all()


def test_the_null_block_is_never_handed_out() -> None:
    assert 0 not in pool().take(8, Owner.CELL)


def test_a_block_that_was_given_back_is_of_a_new_generation() -> None:
    blocks = pool()
    taken = blocks.take(3, Owner.CELL)
    before = blocks.generation.copy()
    blocks.give(taken, Owner.CELL)
    assert (blocks.generation - before).sum() == 3
    assert (blocks.generation[taken] - before[taken] == 1).all()


def test_what_the_last_owner_wrote_cannot_be_read() -> None:
    blocks = pool(1)
    taken = blocks.take(1, Owner.CELL)
    blocks.write(taken, torch.full((1, 4), 7, dtype=torch.uint8))
    assert blocks.read(taken).tolist() == [[7] * 4]
    blocks.give(taken, Owner.CELL)
    again = blocks.take(1, Owner.PRIVATE)
    with pytest.raises(Refused) as refused:
        blocks.read(again)
    assert (refused.value.clause, refused.value.guard) == ("I-2", "overwritten")
    assert refused.value.values == {"group": "kv", "block": "1"}
    blocks.clean(again)
    assert blocks.read(again).tolist() == [[0] * 4]


def test_a_page_that_was_written_from_end_to_end_can_be_read() -> None:
    blocks = pool(1)
    blocks.give(blocks.take(1, Owner.CELL), Owner.CELL)
    again = blocks.take(1, Owner.CELL)
    blocks.storage[1:] = 9
    blocks.overwritten(again)
    assert blocks.read(again).tolist() == [[9] * 4]
    blocks.spoil(again)
    with pytest.raises(Refused):
        blocks.read(again)


def test_cleaning_leaves_what_its_owner_wrote() -> None:
    blocks = pool()
    taken = blocks.take(2, Owner.CELL)
    blocks.write(taken, torch.full((2, 4), 7, dtype=torch.uint8))
    blocks.clean(taken)
    assert blocks.read(taken).tolist() == [[7] * 4] * 2


def test_addresses_are_where_the_bytes_are() -> None:
    blocks = pool()
    taken = blocks.take(2, Owner.CELL)
    start = blocks.storage.data_ptr()
    assert blocks.addresses(taken).tolist() == [start + 4 * int(block) for block in taken]


def test_after_a_reset_all_is_free_and_zero() -> None:
    blocks = pool()
    blocks.write(blocks.take(8, Owner.CELL), torch.full((8, 4), 7, dtype=torch.uint8))
    blocks.storage[0] = 1
    assert not blocks.null_is_clean()
    blocks.reset()
    assert blocks.null_is_clean()
    assert blocks.free == 8
    assert int(blocks.storage.sum()) == 0
    blocks.check({})


def test_the_null_block_can_be_scrubbed() -> None:
    blocks = pool()
    blocks.storage[0] = 1
    blocks.scrub_null()
    assert blocks.null_is_clean()


BAD: dict[str, Callable[[Pool], object]] = {
    "take 9 of 8 free": lambda p: p.take(9, Owner.CELL),
    "take -1 of": lambda p: p.take(-1, Owner.CELL),
    "block 1 is FREE, not CELL": lambda p: p.give(ids(1), Owner.CELL),
    "block 0 is NULL, not CELL": lambda p: p.hand_over(ids(0), Owner.CELL, Owner.DOOMED),
    r"\(1, 4\).* is allowed": lambda p: p.write(ids(1), torch.zeros((2, 4), dtype=torch.uint8)),
    "torch.uint8.* is allowed": lambda p: p.write(ids(1), torch.zeros((1, 4))),
    "device.* is allowed": lambda p: p.write(
        ids(1), torch.zeros((1, 4), dtype=torch.uint8, device="meta")
    ),
}


@pytest.mark.parametrize("match", BAD)
def test_bad_input_is_refused_and_changes_nothing(match: str) -> None:
    blocks = pool()
    before = blocks.storage.clone(), blocks.owner.copy(), blocks.free
    with pytest.raises(ValueError, match=match):
        BAD[match](blocks)
    blocks.check({})
    after = blocks.storage, blocks.owner, blocks.free
    assert torch.equal(before[0], after[0])
    assert (before[1] == after[1]).all()
    assert before[2] == after[2]


@pytest.mark.parametrize(("num_blocks", "page_bytes"), [(0, 4), (-1, 4), (4, 0)])
def test_a_pool_has_blocks_and_pages_have_bytes(num_blocks: int, page_bytes: int) -> None:
    with pytest.raises(ValueError, match="1 or more is allowed"):
        Pool(GROUP, num_blocks, page_bytes, CPU)


def test_nothing_taken_is_nothing() -> None:
    blocks = pool()
    assert blocks.take(0, Owner.CELL).size == 0
    blocks.give(NO_BLOCKS, Owner.CELL)
    blocks.check({})


@pytest.mark.parametrize(
    ("owned", "match"),
    [
        ({}, "has 0 owners"),
        ({Owner.CELL: [ids(1), ids(1)]}, "has 2 owners"),
        ({Owner.DOOMED: [ids(1)]}, "noted elsewhere"),
    ],
)
def test_the_check_finds_a_lost_a_shared_and_a_misfiled_block(
    owned: dict[Owner, list[Blocks]],
    match: str,
) -> None:
    blocks = pool()
    assert blocks.take(1, Owner.CELL).tolist() == [1]
    with pytest.raises(AssertionError, match=match):
        blocks.check(owned)
