"""Retention: where a committed sequence can be resumed without a replay."""

from __future__ import annotations

import pytest
from tests.impl.served import PROMPT, engine, known, serve

from fivestate.impl.retention import Retention
from fivestate.spec.language import ModelError
from fivestate.spec.reuse import Kind, Means
from fivestate.spec.reuse.windows import Keep
from fivestate.spec.vocabulary import WINDOW


def test_nodes_end_where_the_policy_says() -> None:
    ends = {
        Retention(): [48],
        Retention(Keep.FULL): [16, 32, 48],
        Retention(period_tokens=32): [32, 48],
        Retention(period_tokens=20): [16, 32, 48],
        Retention(Keep.ZERO): [48],
    }
    for retention, expected in ends.items():
        served = engine(retention=retention)
        known(served, PROMPT)
        assert sorted(node.end_tokens for node in served.allocator.nodes()) == expected


def test_without_retention_windows_go_with_the_request() -> None:
    served = engine(retention=Retention(Keep.ZERO))
    first = serve(served, PROMPT)
    other = served.start([*PROMPT[:48], 1])
    served.release(first)
    kind = served.cache.match([*PROMPT[:48], 1]).kind
    assert kind is Kind.HIT, "somebody else has come to use it"
    served.release(other)
    known(served, [*PROMPT[:20], *PROMPT])
    (end,) = [n for n in served.allocator.nodes() if n.end_tokens == 64]
    assert end.cells[WINDOW].device.name == "ABSENT"
    assert served.cache.match([*PROMPT[:20], *PROMPT]).kind is Kind.PARTIAL


def test_without_windows_there_is_nothing_to_let_go() -> None:
    served = engine("homogeneous", retention=Retention(Keep.ZERO))
    known(served, PROMPT)
    assert served.cache.match([*PROMPT, 1]).kind is Kind.HIT


@pytest.mark.parametrize(("keep", "period"), [(Keep.PERIODIC, 0), (Keep.FULL, 16), (Keep.ZERO, 16)])
def test_a_period_is_for_the_periodic_policy(keep: Keep, period: int) -> None:
    with pytest.raises(ModelError, match=f"period_tokens = {period}"):
        Retention(keep, period)


def test_rows_of_an_end_in_the_past_are_gone_and_cost_that_end_alone() -> None:
    served = engine(retention=Retention(Keep.FULL), in_flight_tokens=10)
    held = served.start([*PROMPT, *PROMPT])
    for _ in range(10):
        served.fill(held, 10)
    assert served.commit(held) == 96
    ends = sorted(node.end_tokens for node in served.allocator.nodes())
    assert ends[-1] == 96
    assert len(ends) < 6, "windows of earlier ends have slid away"
    served.check()


@pytest.mark.parametrize("tokens", range(33, 50))
def test_the_same_prompt_hits_at_the_last_boundary_before_its_last_token(tokens: int) -> None:
    prompt = (PROMPT * 2)[:tokens]
    served = engine()
    held = served.start(prompt, new_tokens=30)
    served.fill(held, tokens)
    served.append(held, [1] * 30)
    served.commit(held)
    served.release(held)
    again = served.cache.match(prompt)
    assert again.resume == (tokens - 1) // 16 * 16
    assert all(step.means is Means.RECOMPUTE for step in again.plan.steps)
    served.check()


def test_where_no_window_is_needed_or_kept_a_prompt_ends_no_node() -> None:
    whole = (PROMPT * 2)[:48]
    for name, retention in (("homogeneous", Retention()), ("hybrid", Retention(Keep.ZERO))):
        served = engine(name, retention=retention)
        known(served, whole)
        assert [node.end_tokens for node in served.allocator.nodes()] == [48]
