"""Metrics and log lines of runs whose figures are known beforehand."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from tests.impl.token_engine import GEOMETRIES, Engine

from fivestate.impl.metrics import Metrics
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Kind, Numbers, Policy, Reason, Why
from fivestate.spec.vocabulary import COMPRESSED, TAIL, WINDOW

Scrape = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        """Return them."""
        return self.now


def scrape(metrics: Metrics) -> Scrape:
    """Return every sample of an answer to ``GET /metrics``."""
    _, body = metrics.exposition()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    labels = {name.rstrip("_"): value for name, value in labels.items()}
    return scrape(metrics).get((f"fivestate_{name}", frozenset(labels.items())), 0.0)


def engine(name: str = "gpt-oss-120b", policy: Policy | None = None, **more: object) -> Engine:
    metrics = Metrics(("chat", "batch"), clock=more.pop("clock", Clock()))  # type: ignore[arg-type]  # a clock
    return Engine(GEOMETRIES[name], 200, policy=policy, metrics=metrics, **more)  # type: ignore[arg-type]  # sizes


def serve(engine: Engine, tokens: list[int], **more: Any) -> None:
    """Serve a request from its arrival to its end."""
    held = engine.start(tokens, **more)
    engine.recover(held)
    while left := len(held.tokens) - held.written:
        engine.fill(held, min(left, engine.cache.in_flight_tokens))
        engine.commit(held)
    engine.release(held)


def numbers(metrics: Metrics, of: str) -> list[float]:
    kinds = ("prompt", "logical", "feasible", "recoverable", "used")
    return [figure(metrics, "prefix_tokens_total", class_=of, number=kind) for kind in kinds]


def test_the_four_numbers_are_counted_by_class_and_once_for_each_request() -> None:
    served = engine()
    metrics = served.cache.metrics
    prompt = list(range(60))
    serve(served, prompt, of="chat")
    assert numbers(metrics, "chat") == [60, 0, 0, 0, 0]
    for _ in range(5):
        served.cache.match([*prompt, 1])
    assert numbers(metrics, "chat") == [60, 0, 0, 0, 0], "a look is no admission"
    serve(served, [*prompt, 1], of="chat")
    assert numbers(metrics, "chat") == [121, 48, 48, 48, 48]
    serve(served, prompt[:48], of="batch")
    told = "its segment holds one window for its end, and cannot be split before"
    assert numbers(metrics, "batch") == [48, 48, 32, 32, 0], told
    assert numbers(metrics, "chat") == [121, 48, 48, 48, 48]
    serve(served, prompt, of="who knows")
    assert numbers(metrics, "other") == [60, 48, 48, 48, 48]
    verdicts = {
        (of, kind.name): figure(metrics, "admissions_total", class_=of, verdict=kind.name)
        for of in ("chat", "batch", "other")
        for kind in Kind
    }
    given = {("chat", "MISS"), ("chat", "HIT"), ("batch", "MISS"), ("other", "HIT")}
    assert verdicts == {of: float(of in given) for of in verdicts}
    assert figure(metrics, "lookups_total") == 4 + 5


def test_a_request_that_waits_is_counted_when_it_is_admitted() -> None:
    served = engine(slots=1)
    cache, metrics = served.cache, served.cache.metrics
    first = served.start([1] * 20, of="chat")
    waiting = cache.arrive(cache.match([2] * 30), of="chat")
    for _ in range(3):
        with pytest.raises(Refused, match="'slot' is false"):
            cache.lease(waiting)
    assert numbers(metrics, "chat")[0] == 20
    assert (
        figure(metrics, "refusals_total", clause="A-13", action="admit", guard="slot")
        + figure(metrics, "refusals_total", clause="A-14", action="lease", guard="slot")
        == 3
    )
    assert figure(metrics, "queue_length") == 1
    served.release(first)
    with cache.lease(waiting):
        assert numbers(metrics, "chat")[0] == 50
        assert figure(metrics, "queue_length") == 0


def test_reasons_are_counted_by_class_clause_and_group() -> None:
    served = engine(policy=Policy(replay=False))
    metrics, prompt = served.cache.metrics, list(range(60))
    serve(served, prompt, of="chat")
    for node in served.allocator.nodes():
        served.allocator.evict(node, WINDOW)
    serve(served, prompt[:50], of="chat")
    told = {"class_": "chat", "clause": "H-3", "why": "window_gone", "group": "local"}
    assert figure(metrics, "reasons_total", **told) == 1
    granularity = {"class_": "chat", "clause": "H-1", "why": "below_granularity", "group": ""}
    assert figure(metrics, "reasons_total", **granularity) == 0
    serve(served, prompt[:48], of="chat")
    assert figure(metrics, "reasons_total", **granularity) == 1


def test_cells_blocks_and_requests_are_what_they_are_at_the_scrape() -> None:
    served = engine("hybrid")
    metrics = served.cache.metrics
    held = served.start(list(range(40)))
    served.fill(held, 40)
    assert figure(metrics, "requests", phase="RUNNING") == 1
    assert figure(metrics, "cells", state="COMPRESSED", device="READY") == 0
    private = figure(metrics, "blocks", group="c2", owner="PRIVATE")
    assert private == 5
    assert figure(metrics, "blocks", group="c2", owner="FREE") == 195
    served.commit(held)
    assert figure(metrics, "cells", state="COMPRESSED", device="READY") == 1
    assert figure(metrics, "blocks", group="c2", owner="CELL") == 4
    assert figure(metrics, "blocks", group="c2", owner="PRIVATE") == 1
    served.release(held)
    assert figure(metrics, "blocks", group="c2", owner="FREE") == 196
    assert figure(metrics, "requests", phase="RUNNING") == 0


def test_fragmentation_is_what_requests_have_claimed_and_not_written() -> None:
    served = engine("homogeneous")
    metrics = served.cache.metrics
    held = served.start(list(range(20)), new_tokens=140)
    assert figure(metrics, "fragmentation_ratio", group="full") == 1.0
    served.fill(held, 20)
    assert figure(metrics, "fragmentation_ratio", group="full") == 0.8
    served.release(held)
    assert figure(metrics, "fragmentation_ratio", group="full") == 0.0


def off_the_device(served: Engine, prompt: list[int]) -> None:
    """Serve a prompt, and leave only copies of it."""
    serve(served, prompt)
    for state in (COMPRESSED, WINDOW, TAIL):
        for node in served.allocator.nodes():
            if state in node.cells:
                served.store(node, state)
                served.allocator.evict(node, state)


@pytest.mark.parametrize(
    ("end", "result"), [("good", "success"), ("bad", "failure"), ("never", "abort")]
)
def test_recoveries_are_timed_and_counted_by_how_they_ended(end: str, result: str) -> None:
    clock = Clock()
    served = engine(clock=clock)
    metrics, prompt = served.cache.metrics, list(range(60))
    off_the_device(served, prompt)
    held = served.start(prompt)
    assert held.lease.recovering
    clock.now += 0.5
    if end != "never":
        served.recover(held, lambda _task: end)
    served.release(held)
    ends = {name: float(name == result) for name in ("success", "failure", "abort")}
    for name, count in ends.items():
        assert figure(metrics, "recovery_seconds_count", result=name) == count
        assert figure(metrics, "recovery_seconds_sum", result=name) == count * 0.5


def test_residence_is_what_passed_between_the_scrapes_that_saw_a_cell() -> None:
    clock = Clock()
    served = engine(clock=clock)
    metrics = served.cache.metrics
    serve(served, list(range(60)))
    scrape(metrics)
    clock.now += 100
    for node in served.allocator.nodes():
        served.allocator.evict(node, WINDOW)
    scrape(metrics)
    assert figure(metrics, "cell_residence_seconds_sum", state="WINDOW") == 100
    assert figure(metrics, "cell_residence_seconds_count", state="COMPRESSED") == 0


def test_refusals_are_counted_by_their_first_false_guard() -> None:
    served = engine()
    held = served.start([1, 2, 3])
    with pytest.raises(Refused):
        served.cache.append(held.lease, [4])
    lease = held.lease
    served.release(held)
    with pytest.raises(Refused):
        served.cache.commit(lease)
    of = "refusals_total"
    assert figure(served.cache.metrics, of, clause="I-3", action="commit", guard="held") == 1


def test_a_hash_hit_and_a_recoverable_hit_are_two_log_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = engine(policy=Policy(replay=False))
    prompt = list(range(60))
    serve(served, prompt)
    for node in served.allocator.nodes():
        served.allocator.evict(node, WINDOW)
    with caplog.at_level(logging.INFO, "fivestate.cache"):
        serve(served, prompt, name="late", of="chat")
    hashed, recoverable = caplog.records
    assert hashed.message == ("hash hit request=late class=chat prompt=60 logical=48 feasible=48")
    assert recoverable.message == (
        "recoverable hit request=late class=chat prompt=60 verdict=MISS recoverable=0 used=0 "
        "why=window_gone"
    )
    assert vars(recoverable)["fivestate"] == {
        "event": "recoverable hit",
        "request": "late",
        "class": "chat",
        "prompt": 60,
        "verdict": "MISS",
        "recoverable": 0,
        "used": 0,
        "why": "window_gone",
    }


def test_nothing_is_formatted_for_a_log_that_nobody_reads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "fivestate.cache"):
        serve(engine(), list(range(60)))
    assert caplog.records == []


def test_a_refusal_is_a_log_line_for_who_wants_to_know(caplog: pytest.LogCaptureFixture) -> None:
    served = engine()
    held = served.start([1])
    lease = held.lease
    served.release(held)
    with caplog.at_level(logging.DEBUG, "fivestate.cache"), pytest.raises(Refused):
        served.cache.commit(lease)
    assert caplog.records[-1].message == "refused clause=I-3 action=commit guard=held"


def test_two_caches_share_a_registry_only_if_they_share_metrics() -> None:
    registry = CollectorRegistry()
    Metrics(registry=registry)
    with pytest.raises(ValueError, match="Duplicated"):
        Metrics(registry=registry)


def test_metrics_are_served_over_http() -> None:
    metrics = Metrics()
    metrics.admitted("default", "r", Kind.MISS, Numbers(7), (Reason("H-0", Why.UNKNOWN, "hash"),))
    server, thread = metrics.serve(0)
    try:
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(address) as answer:
            body = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert 'fivestate_prefix_tokens_total{class="default",number="prompt"} 7.0' in body


def drop_a_number(metrics: Metrics) -> None:
    metrics.looked = lambda: None  # type: ignore[method-assign]  # the fault


def count_again(metrics: Metrics) -> None:
    once = metrics.admitted
    metrics.admitted = lambda *told: (once(*told), once(*told))[0]  # type: ignore[method-assign]  # the fault


@pytest.mark.parametrize("fault", [drop_a_number, count_again])
def test_a_figure_that_is_counted_wrongly_is_noticed(fault: Callable[[Metrics], None]) -> None:
    served = engine()
    fault(served.cache.metrics)
    serve(served, list(range(60)), of="chat")
    counted = (
        numbers(served.cache.metrics, "chat")[0],
        figure(served.cache.metrics, "lookups_total"),
    )
    assert counted != (60, 1)
