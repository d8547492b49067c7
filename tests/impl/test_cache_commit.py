"""A commit is what a helper request would do by the machine's actions, in one step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.impl.served import PROMPT, engine
from tests.impl.token_engine import Engine, Held

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Node
from fivestate.impl.pools import Owner
from fivestate.impl.requests import Request
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW, Phase

ORDER = (COMPRESSED, WINDOW, INDEXER, TAIL)
"""Every state behind what it is made from."""


def written() -> tuple[Engine, Held, Request]:
    """Return a request that has written three blocks of sixteen tokens, and committed none."""
    served = engine()
    held = served.start(PROMPT, new_tokens=40)
    served.fill(held, 52)
    return served, held, served.cache._running[held.lease].request


def by_actions(served: Engine, held: Held, request: Request) -> None:
    """Do what a commit does, action by action, as a helper request and the request itself."""
    allocator = served.allocator
    running = served.cache._running[held.lease]
    node = allocator.grow(allocator.root, list(running.prompt.digests()[:3]))
    helper = allocator.new_request("helper")
    allocator.arrive(helper, node)
    allocator.admit(helper, node)
    for state in ORDER:
        allocator.make(node, state)
        allocator.made(node, state)
    allocator.publish(node)
    allocator.resume(helper, node)
    allocator.run(helper)
    allocator.finish(helper)
    allocator.finish(request)
    allocator.arrive(request, node)
    allocator.lease(request)
    allocator.run(request)


def abstract(allocator: Allocator, request: Request) -> dict[str, object]:
    """Return what the machine knows of a state: everything but which block is where."""

    def cell(node: Node) -> list[tuple[object, ...]]:
        layout = allocator.layout
        return [
            (state.name, c.device, c.fit(layout), c.readers, c.copy, c.disk)
            for state, c in sorted(node.cells.items(), key=lambda pair: pair[0].name)
        ]

    want = request.target
    return {
        "nodes": [(n.start_tokens, n.end_tokens, n.known, cell(n)) for n in allocator.nodes()],
        "request": (request.phase, want.end_tokens, request.slid, request.copied, request.grown),
        "held": sorted((c.state.name, c.node.end_tokens) for c in request.held),
        "cells": {
            name: int((pool.owner == Owner.CELL).sum()) for name, pool in allocator.pools.items()
        },
        "doubts": {state.name: len(lots) for state, lots in allocator.doubts.items()},
        "epochs": (allocator.layout, allocator.weights, allocator.null_dirty),
    }


def test_a_commit_leaves_the_state_that_the_actions_leave() -> None:
    served, held, request = written()
    assert served.commit(held) == 48
    other, other_held, other_request = written()
    by_actions(other, other_held, other_request)
    assert abstract(served.allocator, request) == abstract(other.allocator, other_request)
    assert request.phase is Phase.RUNNING
    served.allocator.check()
    other.allocator.check()


def forget_to_hold(served: Engine, request: Request) -> None:
    """Let a commit leave the request where it was."""
    for cell in request.held:
        cell.readers -= 1
    request.held = ()
    del served


def forget_to_publish(served: Engine, request: Request) -> None:
    """Let a commit leave the node unknown."""
    del served
    request.target.known = False


@pytest.mark.parametrize("fault", [forget_to_hold, forget_to_publish])
def test_a_commit_that_does_less_is_told_from_the_actions(
    fault: Callable[[Engine, Request], None],
) -> None:
    served, held, request = written()
    served.commit(held)
    fault(served, request)
    other, other_held, other_request = written()
    by_actions(other, other_held, other_request)
    assert abstract(served.allocator, request) != abstract(other.allocator, other_request)
