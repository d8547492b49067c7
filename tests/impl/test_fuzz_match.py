"""What ``match`` says is what ``classify`` says, whatever has happened; and faults are noticed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from tests.impl.token_chaos import Chaos
from tests.impl.token_engine import GEOMETRIES, Engine

from fivestate.impl.chain import Node
from fivestate.impl.index import Found, Index
from fivestate.impl.keys import Prompt
from fivestate.impl.matching import Matcher
from fivestate.impl.retention import Retention
from fivestate.spec.need import blocks
from fivestate.spec.reuse import Policy
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW

SEEDS = dict.fromkeys(GEOMETRIES, 40) | {"dsv4-flash": 8}
POLICIES = (Policy(), Policy(), Policy(replay=False), Policy(approximate=True))
TIERS = (frozenset({COMPRESSED}), frozenset({COMPRESSED, WINDOW, TAIL}))


def chaos(name: str, seed: int) -> Chaos:
    """Return a driver of an engine whose sizes and policies follow from a seed."""
    shape, draw = GEOMETRIES[name], random.Random(seed)  # noqa: S311 -- the same every time
    step = shape.scheduler_block_size
    room = draw.choice((9, 12, 24)) * step
    engine = Engine(
        shape,
        {g.name: max(blocks(room, g.block_size), 6) for g in shape.groups},
        storable=draw.choice(TIERS),
        policy=draw.choice(POLICIES),
        retention=draw.choice(
            (
                Retention(),
                Retention(Keep.FULL),
                Retention(Keep.ZERO),
                Retention(period_tokens=step + 1),
            )
        ),
        in_flight_tokens=draw.choice((3, step // 2 + 1, step + 7)),
    )
    return Chaos(engine, seed)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_verdict_is_the_specification_s_whatever_has_happened(name: str) -> None:
    looked: Counter[str] = Counter()
    done: Counter[str] = Counter()
    operations: set[str] = set()
    for seed in range(SEEDS[name]):
        run = chaos(name, seed)
        operations |= {what.__name__ for what, _ in run.operations}
        for _ in range(4):
            run.run(25)
            run.engine.check()
        looked += run.looked
        done += run.done
    assert min(looked[kind] for kind in ("MISS", "PARTIAL", "HIT")) > 10, "each verdict was given"
    assert operations <= set(done), "everything was done"


def only_entries(self: Matcher, node: Node, limit: int) -> bool:
    """Look at entries alone, as if a hash hit on them could be used."""
    del self, limit
    return all(step.cells[COMPRESSED].device.name == "READY" for step in node.path())


def only_the_end(self: Matcher, node: Node, limit: int) -> bool:
    """Look at what the last node needs, not at what its cells were written by."""
    del limit
    return all(cell.device.name == "READY" for cell in self.allocator.need(node))


def anything(self: Matcher, node: Node, limit: int) -> bool:
    """Take everything for usable."""
    del self, node, limit
    return True


def known_or_not(self: Index, prompt: Prompt) -> Found:
    """Find nodes that were known once."""
    digests = prompt.digests()
    for count in range(len(digests), 0, -1):
        node = self._nodes.get(digests[count - 1])
        if node is not None and node.start_tokens < count * prompt.keys.step_tokens:
            return Found(node, count, count * prompt.keys.step_tokens)
    return Found(self._root, 0, 0)


@pytest.mark.parametrize(
    ("where", "method", "fault"),
    [
        (Matcher, "_stands", only_entries),
        (Matcher, "_stands", only_the_end),
        (Matcher, "_stands", anything),
        (Index, "find", known_or_not),
    ],
)
def test_a_fault_on_the_short_way_is_noticed(
    monkeypatch: pytest.MonkeyPatch, where: type, method: str, fault: Callable[..., object]
) -> None:
    monkeypatch.setattr(where, method, fault)
    with pytest.raises(AssertionError):
        search()


def search() -> None:
    """Run until something is noticed."""
    for seed in range(40):
        chaos("hybrid", seed).run(100)
