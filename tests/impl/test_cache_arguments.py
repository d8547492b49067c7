"""What an engine hands to the cache by mistake is refused by its name, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.impl.served import OPERATIONS, PROMPT, engine, free, known, serve
from tests.impl.token_engine import Engine, Held

from fivestate.impl.cache import Cache
from fivestate.impl.refusals import Refused

ODD: tuple[Any, ...] = (None, "x", 1.5, [], object(), float("nan"), b"")
"""What is neither a number nor anything of a cache."""


def kind(wrong: object) -> str:
    """Return what a case is called: an address would be another every time."""
    return type(wrong).__name__


NUMBERS: dict[str, Callable[[Engine, Held, Any], object]] = {
    "new_tokens": lambda s, _h, n: s.cache.lease(s.cache.match(PROMPT), new_tokens=n),
    "new_tokens of arrive": lambda s, _h, n: s.cache.arrive(s.cache.match(PROMPT), new_tokens=n),
    "new_tokens of fork": lambda s, h, n: s.cache.fork(h.lease, new_tokens=n),
    "count": lambda s, h, n: s.cache.fill(h.lease, n),
    "drafts": lambda s, h, n: s.cache.append(h.lease, [1, 2], n),
    "accepted": lambda s, h, n: s.cache.verify(h.lease, n),
    "in_flight_tokens": lambda s, _h, n: Cache(s.allocator, in_flight_tokens=n),
}


@pytest.mark.parametrize("wrong", [*ODD, -1], ids=kind)
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_whole_number_is_refused_by_name(name: str, wrong: Any) -> None:
    served = engine()
    held = serve(served, PROMPT, new_tokens=9)
    before = free(served)
    with pytest.raises(ValueError, match=f"{name.split(maxsplit=1)[0]} = .*or more is allowed"):
        NUMBERS[name](served, held, wrong)
    assert free(served) == before
    served.check()


@pytest.mark.parametrize("wrong", [*ODD, 7], ids=kind)
@pytest.mark.parametrize("operation", [*OPERATIONS, "release", "recovering"])
def test_what_is_no_lease_is_refused_by_name(operation: str, wrong: Any) -> None:
    served = engine()
    do: Callable[..., object] = OPERATIONS.get(operation) or getattr(Cache, operation)
    with pytest.raises(ValueError, match=f"{operation}: lease = .*: a Lease is allowed"):
        do(served.cache, wrong)


@pytest.mark.parametrize("wrong", [*ODD, 7], ids=kind)
def test_what_is_no_match_and_waits_for_nothing_is_refused_by_name(wrong: Any) -> None:
    cache = engine().cache
    for operation in (cache.lease, cache.arrive):
        with pytest.raises(ValueError, match=r"match = .*: a Match is allowed"):
            operation(wrong)
    with pytest.raises(ValueError, match=r"waiting = .*: a Waiting is allowed"):
        cache.leave(wrong)


@pytest.mark.parametrize("wrong", [None, 7, ["x"]], ids=kind)
def test_names_are_strings(wrong: Any) -> None:
    served = engine()
    match, held = served.cache.match(PROMPT), serve(served, PROMPT)
    with pytest.raises(ValueError, match=r"name = .*: a str is allowed"):
        served.cache.lease(match, name=wrong)
    with pytest.raises(ValueError, match=r"name = .*: a str is allowed"):
        served.cache.fork(held.lease, name=wrong)
    with pytest.raises(ValueError, match=r"of = .*: a str is allowed"):
        served.cache.lease(match, of=wrong)
    with pytest.raises(ValueError, match=r"settings = .*: a Settings is allowed"):
        Cache(wrong)
    served.check()


def test_who_waits_elsewhere_does_not_wait_here() -> None:
    served, other = engine(), engine()
    waiting = other.cache.arrive(other.cache.match(PROMPT))
    for operation in (served.cache.lease, served.cache.leave):
        with pytest.raises(ValueError, match="waiting: it is of another cache"):
            operation(waiting)
    other.cache.leave(waiting)
    for operation in (other.cache.lease, other.cache.leave):
        with pytest.raises(Refused, match="'waiting' is false"):
            operation(waiting)


def test_what_has_an_index_is_a_number() -> None:
    served = engine()
    known(served, PROMPT)
    held = served.start([*PROMPT, *PROMPT])
    count: Any = np.int64(3)
    served.cache.fill(held.lease, count)
    assert served.cache._running[held.lease].written == 51
