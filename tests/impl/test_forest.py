"""Many prompts over one tree: whatever happens, books are kept and leases read what is right."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.impl.life import Life

from fivestate.spec.vocabulary import COMPRESSED, WINDOW, CacheState


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32), st.booleans(), st.booleans())
def test_books_are_kept_and_leases_read_what_is_right(
    seed: int,
    disk: bool,  # noqa: FBT001 -- drawn
    limited: bool,  # noqa: FBT001 -- drawn
) -> None:
    life = Life(seed, disk=disk, limited=limited)
    for _ in range(60):
        life.step()


def test_in_a_long_life_everything_happens() -> None:
    life = Life(4, disk=True, limited=True)
    wanted = ["HIT", "PARTIAL", "MISS", "split", "relieved", "loaded", "compared", "pruned"]
    wanted += ["store", "demote", "drop", "erase", "evict", "fetched", "repacked", "restart"]
    wanted += ["abort", "change", "boundary not offered"]
    for _ in range(3_000):
        life.step()
        if all(life.done[name] for name in wanted):
            return
    assert [name for name in wanted if not life.done[name]] == []


@pytest.mark.parametrize("state", [COMPRESSED, WINDOW])
def test_the_comparison_finds_a_wrong_byte(state: CacheState) -> None:
    life = Life(1, disk=False, limited=False)
    request = life.forest.recover(life.find("ab"))
    for cell in request.held:
        life.write(cell)
    life.compare(request)
    cell = next(cell for cell in request.held if cell.state is state)
    pool = life.allocator.pools[next(iter(cell.blocks))]
    pool.storage[int(cell.blocks[pool.group.name][-1]), -1] += 1
    with pytest.raises(AssertionError):
        life.compare(request)
