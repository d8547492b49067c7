"""Forks: two requests that read the same blocks until one of both writes."""

from __future__ import annotations

import pytest
from tests.impl.served import PROMPT, engine, free, known, serve

from fivestate.impl.refusals import Refused


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


def test_a_fork_from_a_request_that_decodes_has_its_own_rows_once_that_goes_on() -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=9)
    for token in range(3):
        served.append(held, [token])
    fork = served.fork(held, 9)
    served.append(held, [7])
    tables = [served.cache.blocks(one.lease) for one in (held, fork)]
    for group in served.geometry.groups:
        last = [table[group.name][1][-1] for table in tables]
        assert last[0] != last[1], f"both have one block of {group.name}"
    served.append(fork, [8])
    served.check()


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
