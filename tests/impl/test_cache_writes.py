"""Writing behind a prefix: chunks of the prompt, decoded tokens, drafts."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.impl.served import PROMPT, engine, serve

from fivestate.impl.refusals import Refused


def test_tokens_are_written_in_turn_and_within_what_was_said() -> None:
    served = engine(in_flight_tokens=20)
    held = served.start(PROMPT, new_tokens=3)
    too_early = partial(served.cache.append, held.lease, [1])
    too_long = partial(served.cache.fill, held.lease, 21)
    refused = ((too_early, "A-1", "filled"), (too_long, "A-1", "in_flight"))
    for operation, clause, guard in refused:
        before = served.cache.blocks(held.lease)
        with pytest.raises(Refused) as refusal:
            operation()
        assert (refusal.value.clause, refusal.value.guard) == (clause, guard)
        assert served.cache.blocks(held.lease) == before
    for count in (20, 20, 12):
        served.fill(held, count)
    served.append(held, [1, 2])
    with pytest.raises(Refused, match="'fits' is false"):
        served.cache.append(held.lease, [3, 4])
    served.append(held, [3])
    served.check()


def test_drafts_are_accepted_or_taken_back() -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=40)
    with pytest.raises(Refused) as refusal:
        served.cache.verify(held.lease, 0)
    assert (refusal.value.clause, refusal.value.guard) == ("A-2", "drafted")
    served.append(held, [1, 2, 3, 4], drafts=3)
    served.append(held, [5])
    with pytest.raises(Refused, match="drafts=4, accepted=5"):
        served.cache.verify(held.lease, 5)
    served.verify(held, 2)
    assert held.tokens == [*PROMPT, 1, 2, 3]
    served.append(held, [9] * 9)
    assert served.commit(held) == 64
    served.append(held, [8, 8], drafts=2)
    served.verify(held, 2)
    served.release(held)
    assert served.cache.match([*PROMPT, 1, 2, 3, *[9] * 20]).numbers.matched == 64


def test_what_becomes_of_a_prompt_is_nothing_to_who_has_leased_it() -> None:
    served = engine()
    prompts = [served.cache.keys.prompt(PROMPT) for _ in range(2)]
    leases = [served.cache.lease(served.cache.match(prompt)) for prompt in prompts]
    prompts[0].truncate(3)
    prompts[1].extend([1] * 40)
    for lease in leases:
        served.cache.fill(lease, 52)
        assert served.cache.commit(lease) == 48
        lease.release()
    assert served.cache.match([*PROMPT, 7]).resume == 48
    match = served.cache.match(prompts[0])
    prompts[0].truncate(0)
    with pytest.raises(ValueError, match="match: its prompt is empty by now"):
        served.cache.lease(match)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "draft", "verify", "fork"]), st.integers(0, 4)),
        max_size=30,
    ),
    st.sampled_from([2, 6, 400]),
)
@example([("append", 1), ("draft", 2), ("append", 1), ("verify", 1), ("append", 1)], 400)
@example([("append", 1), ("draft", 2), ("verify", 0), ("append", 2), ("append", 3)], 2)
def test_tokens_count_as_verified_as_the_engine_said(
    steps: list[tuple[str, int]], in_flight: int
) -> None:
    """Token by token nothing is looked at twice; so a count has to be as good as a record."""
    served = engine(in_flight_tokens=in_flight)
    held = serve(served, PROMPT, new_tokens=80)
    cache, lease = served.cache, held.lease
    written = verified = len(PROMPT)
    for what, number in steps:
        running = cache._running[lease]
        drafts = written - verified
        if what == "fork" and not drafts:
            cache.fork(lease).release()
        elif what == "verify" and drafts:
            verified += min(number, drafts)
            cache.verify(lease, min(number, drafts))
            written = verified
        elif what in ("append", "draft"):
            new = number if what == "draft" or drafts else 0
            guard = "fits" if written + number > len(PROMPT) + 80 else ""
            guard = guard or ("in_flight" if written + number - verified > in_flight else "")
            if guard:
                with pytest.raises(Refused, match=f"'{guard}' is false"):
                    cache.append(lease, [1] * number, drafts=number if what == "draft" else 0)
            else:
                cache.append(lease, [1] * number, drafts=number if what == "draft" else 0)
                written += number
                verified = written - drafts - new if drafts or new else written
        assert (running.written, running.verified) == (written, verified)
        assert len(running.prompt) == written
        assert all(table.limit >= written for table in running.tables.values())
    assert cache.commit(lease) <= verified
