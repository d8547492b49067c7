"""The cache as an engine sees it: what is found, what is no prompt, whose prefixes they are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.impl.served import PROMPT, engine, known, serve

from fivestate.impl.allocator import Settings
from fivestate.impl.cache import Cache
from fivestate.impl.keys import Keys
from fivestate.spec.reuse import Kind, Means


def test_a_second_request_goes_on_where_the_first_has_been() -> None:
    served = engine()
    first = serve(served, PROMPT)
    assert (first.lease.kind, first.lease.resume) == (Kind.MISS, 0)
    served.release(first)
    second = serve(served, [*PROMPT[:48], 7, 7])
    assert (second.lease.kind, second.lease.resume) == (Kind.HIT, 48)
    assert [step.means for step in serve(served, PROMPT).lease.plan.steps] == [Means.RECOMPUTE]
    served.check()


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
