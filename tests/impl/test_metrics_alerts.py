"""Alert rules and dashboard: they speak of figures that exist, and fire when they should."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.impl.test_metrics import Scrape, engine, scrape, serve

from fivestate.impl.metrics import Metrics, alert_rules, dashboard
from fivestate.spec.reuse import Kind, Numbers, Policy, Reason, Why
from fivestate.spec.vocabulary import WINDOW

METRIC = re.compile(r"\bfivestate_[a-z_]+")
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load(alert_rules())["groups"]
    for rule in group["rules"]
}


def targets() -> Iterator[str]:
    """Yield every expression of the dashboard."""
    for panel in json.loads(dashboard())["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def everything() -> Scrape:
    """Return a scrape of a cache to which everything that is counted has happened."""
    served = engine()
    serve(served, list(range(60)))
    metrics: Metrics = served.cache.metrics
    metrics.refused(served.cache._refuse("I-3", "commit", "held"))
    metrics.admitted("chat", "r", Kind.MISS, Numbers(1), (Reason("H-0", Why.UNKNOWN, "hash"),))
    return scrape(metrics)


def test_alerts_and_dashboard_speak_only_of_figures_that_exist() -> None:
    exist = {name for name, _ in everything()}
    asked = {
        name
        for expression in (*targets(), *(rule["expr"] for rule in RULES.values()))
        for name in METRIC.findall(expression)
    }
    assert asked
    assert asked <= exist


def test_labels_that_are_asked_for_exist_with_these_values() -> None:
    labels = {(name, *pair) for name, of in everything() for pair in of}
    for expression in (*targets(), *(rule["expr"] for rule in RULES.values())):
        for name, matchers in re.findall(r"\b(fivestate_[a-z_]+)\{([^}]*)\}", expression):
            for label, value in re.findall(r'(\w+)="([^"]*)"', matchers):
                known = {v for n, key, v in labels if (n, key) == (name, label)}
                assert value in known or (label, value) == ("guard", "room")


def test_every_figure_is_on_the_dashboard_but_what_prometheus_adds() -> None:
    exist = {name for name, _ in everything()}
    shown = {name for expression in targets() for name in METRIC.findall(expression)}
    derived = ("_created", "_sum", "_count", "_bucket")
    assert {name for name in exist if not name.endswith(derived)} <= shown


def value(expression: str, before: Scrape, after: Scrape) -> float | bool:
    """Evaluate a rule on two scrapes, one at each end of its range.

    It knows sums, increases over a range, gauges, arithmetic and comparisons: as much of PromQL as
    the rules use, but for the quantile of a histogram.
    """

    def picked(name: str, matchers: str, of: Scrape) -> float:
        wanted = set(re.findall(r'(\w+)="([^"]*)"', matchers))
        return sum(v for (n, labels), v in of.items() if n == name and wanted <= labels)

    def increase(found: re.Match[str]) -> str:
        name, matchers = found[1], found[2] or ""
        return repr(picked(name, matchers, after) - picked(name, matchers, before))

    def gauge(found: re.Match[str]) -> str:
        return repr(picked(found[1], found[2] or "", after))

    text = re.sub(r"increase\((\w+)(?:\{([^}]*)\})?\[\w+\]\)", increase, expression)
    text = re.sub(r"\b(fivestate_\w+)(?:\{([^}]*)\})?", gauge, text)
    text = re.sub(r"\bsum\(", "(", text)
    assert re.fullmatch(r"[-+*/()<>.\de\s]+", text), text
    try:
        return bool(eval(text))  # noqa: S307 -- numbers and operators, as was just asserted
    except ZeroDivisionError:
        return False  # PromQL: not a number, which is above nothing


def fires(name: str, before: Scrape, after: Scrape) -> bool:
    return bool(value(RULES[name]["expr"], before, after))


def test_it_fires_when_windows_disappear_under_prefixes_that_are_still_known() -> None:
    served = engine(policy=Policy(replay=False))
    metrics, prompt = served.cache.metrics, list(range(60))
    serve(served, prompt)
    start = scrape(metrics)
    for _ in range(5):
        serve(served, prompt)
    healthy = scrape(metrics)
    assert not fires("FivestateHitsNotRecoverable", start, healthy)
    for node in served.allocator.nodes():
        served.allocator.evict(node, WINDOW)
    for _ in range(5):
        served.release(served.start(prompt))
    ill = scrape(metrics)
    assert fires("FivestateHitsNotRecoverable", healthy, ill)
    assert not fires("FivestateGranularityStarvesHits", healthy, ill), "it is not granularity"


def test_it_fires_when_prompts_share_less_than_a_scheduler_block() -> None:
    served = engine("hybrid")
    metrics = served.cache.metrics
    serve(served, list(range(14)))
    start = scrape(metrics)
    serve(served, list(range(14)))
    starved = scrape(metrics)
    assert fires("FivestateGranularityStarvesHits", start, starved)
    serve(served, list(range(100, 180)))
    filled = scrape(metrics)
    serve(served, list(range(100, 180)))
    assert not fires("FivestateGranularityStarvesHits", filled, scrape(metrics))


def test_the_other_alerts_fire_on_what_they_are_about() -> None:
    metrics = Metrics()
    before = scrape(metrics)
    for _ in range(19):
        metrics.recovered("success", 0.1)
    assert not fires("FivestateRecoveryFails", before, before)
    assert not fires("FivestateRecoveryFails", before, scrape(metrics))
    metrics.recovered("failure", 0.1)
    metrics.recovered("failure", 0.1)
    assert fires("FivestateRecoveryFails", before, scrape(metrics))
    served = engine()
    quiet = scrape(served.cache.metrics)
    for _ in range(101):
        served.cache.metrics.refused(served.cache._refuse("A-14", "lease", "room"))
    assert fires("FivestateRefusedForRoom", quiet, scrape(served.cache.metrics))
    assert not fires("FivestateRefusedForRoom", quiet, quiet)
    assert not fires("FivestateBlocksInDoubt", quiet, quiet)
    assert not fires("FivestateQueueGrows", quiet, quiet)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_how_bad_it_is_and_what_to_look_at(name: str) -> None:
    rule = RULES[name]
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith((".", ".\n"))
    assert re.fullmatch(r"\d+m", rule["for"])
