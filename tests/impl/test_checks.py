"""The check of an allocator's books finds every entry that is not what it counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.impl.forest import Forest

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Copied, CopyKey, Node
from fivestate.impl.pools import Owner
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW, Device, Phase


def stage() -> Allocator:
    """Return an allocator with a prefix that is leased, and one that is recovered."""
    forest = Forest()
    forest.recover(forest.known(None, "ab"))
    node = forest.grow(None, "cd")
    request = forest.request(c2=2)
    forest.allocator.arrive(request, node)
    forest.allocator.admit(request, node)
    forest.allocator.check()
    return forest.allocator


def ready(allocator: Allocator) -> Node:
    return next(n for n in allocator.nodes() if n.known)


def begun(allocator: Allocator) -> Node:
    return next(n for n in allocator.nodes() if not n.known)


def lose_a_block(allocator: Allocator) -> None:
    cell = ready(allocator).cells[COMPRESSED]
    cell.blocks["c2"] = cell.blocks["c2"][1:]


def share_a_block(allocator: Allocator) -> None:
    one, other = ready(allocator).cells[TAIL], begun(allocator).cells[TAIL]
    one.blocks["tail"] = other.blocks["tail"]


def misfile_a_block(allocator: Allocator) -> None:
    block = ready(allocator).cells[TAIL].blocks["tail"]
    allocator.pools["tail"].owner[block] = Owner.PRIVATE


def forget_a_reader(allocator: Allocator) -> None:
    ready(allocator).cells[WINDOW].readers -= 1


def forget_a_block_of_the_order(allocator: Allocator) -> None:
    allocator._order[WINDOW].clear()


def forget_a_load(allocator: Allocator) -> None:
    cell = begun(allocator).cells[COMPRESSED]
    cell.device = Device.LOADING
    allocator._reserved.discard(cell)


def forget_what_is_reserved(allocator: Allocator) -> None:
    allocator._reserved.clear()


def forget_a_copy(allocator: Allocator) -> None:
    cell = ready(allocator).cells[COMPRESSED]
    cell.copy = Copied(CopyKey(b"", COMPRESSED, 0), 0)


def read_what_is_stale(allocator: Allocator) -> None:
    allocator.pools["tail"].spoil(ready(allocator).cells[TAIL].blocks["tail"])


def forget_who_recovers(allocator: Allocator) -> None:
    begun(allocator).recoverers.clear()


def recover_for_nobody(allocator: Allocator) -> None:
    begun(allocator).recoverers.add(begun(allocator))


def use_what_waits(allocator: Allocator) -> None:
    next(r for r in allocator._using if r.phase is Phase.LEASED).phase = Phase.HIT


def queue_for_nothing(allocator: Allocator) -> None:
    allocator._queue[allocator.new_request("idle")] = None


def write_to_the_null_block(allocator: Allocator) -> None:
    allocator.pools["swa"].storage[0, 0] = 1


FAULTS: dict[str, Callable[[Allocator], None]] = {
    "has 0 owners": lose_a_block,
    "has [02] owners": share_a_block,
    "noted elsewhere": misfile_a_block,
    "readers = 0": forget_a_reader,
    "out of the order": forget_a_block_of_the_order,
    "loads": forget_a_load,
    "is reserved": forget_what_is_reserved,
    "has a copy": forget_a_copy,
    "its last owner wrote": read_what_is_stale,
    "recoverers = set": forget_who_recovers,
    "recoverers = {": recover_for_nobody,
    "has a slot, and is HIT": use_what_waits,
    "is in the queue, and IDLE": queue_for_nothing,
    "the null block of swa is not zero": write_to_the_null_block,
}


@pytest.mark.parametrize("match", FAULTS)
def test_a_wrong_entry_is_found(match: str) -> None:
    allocator = stage()
    FAULTS[match](allocator)
    with pytest.raises(AssertionError, match=match):
        allocator.check()
