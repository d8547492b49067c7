"""Metrics and log lines: what a hash hit was worth, how recovery went, and who was refused.

What happens often is added to plain integers and read when somebody scrapes; nothing looks up a
label on the way of a request. What happens seldom goes into Prometheus's own histograms.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Histogram, start_http_server
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fivestate.impl.pools import Owner
from fivestate.spec.reuse import Kind, Numbers, Reason
from fivestate.spec.vocabulary import CacheState, Device, Phase

if TYPE_CHECKING:
    from fivestate.impl.allocator import Allocator
    from fivestate.impl.chain import Cell
    from fivestate.impl.refusals import Refused

LOG = logging.getLogger("fivestate.cache")

RESIDENT = (CacheState.COMPRESSED, CacheState.TAIL, CacheState.WINDOW, CacheState.INDEXER)
"""The states that live on the device."""

OTHER = "other"
"""The class of whoever names one that was not declared: labels come from a closed list."""

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
RESIDENCE_SECONDS = (1.0, 10.0, 60.0, 300.0, 1_800.0, 7_200.0, 43_200.0, 259_200.0)


class Metrics(Collector):
    """The figures of one cache.

    The four numbers are counted once per first admission, and so are verdicts and reasons: a
    request that looks ten times while it waits is one request (B73).

    Attributes:
        registry: where they are registered.
        clock: gives the seconds that durations are measured in.
    """

    def __init__(
        self,
        classes: Iterable[str] = ("default",),
        registry: CollectorRegistry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.registry = CollectorRegistry() if registry is None else registry
        names = (*dict.fromkeys((*classes, OTHER)),)
        self._totals = dict.fromkeys(names, Numbers(0))
        self._verdicts = {name: dict.fromkeys(Kind, 0) for name in names}
        self._reasons: Counter[tuple[str, str, str, str]] = Counter()
        self._refusals: Counter[tuple[str, str, str]] = Counter()
        self._looked = 0
        self._since: dict[Cell, float] = {}
        self._allocator: Allocator | None = None
        self._unwritten: Callable[[], dict[str, int]] = dict
        recovery = Histogram(
            "fivestate_recovery_seconds",
            "From admission to the lease, for prefixes that had to be recovered.",
            ["result"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._recovery = {name: recovery.labels(name) for name in ("success", "failure", "abort")}
        residence = Histogram(
            "fivestate_cell_residence_seconds",
            "How long cells were on the device, as far as scrapes have seen them.",
            ["state"],
            buckets=RESIDENCE_SECONDS,
            registry=self.registry,
        )
        self._residence: dict[CacheState, Histogram] = {
            state: residence.labels(state.name) for state in RESIDENT
        }
        self.registry.register(self)

    def watch(self, allocator: Allocator, unwritten: Callable[[], dict[str, int]]) -> None:
        """Read what there is of cells, requests and blocks from this allocator, at each scrape.

        Args:
            allocator: whose.
            unwritten: gives, by group, the blocks that requests have claimed and not written.
        """
        self._allocator, self._unwritten = allocator, unwritten

    def known_class(self, name: str) -> str:
        """Return the label of a class of requests."""
        return name if name in self._totals else OTHER

    def looked(self) -> None:
        """Count a lookup; its answer is counted when, and if, the request is admitted."""
        self._looked += 1

    def admitted(
        self, of: str, request: str, kind: Kind, numbers: Numbers, reasons: Sequence[Reason]
    ) -> None:
        """Count the first admission of a request, and log its two hits apart.

        Args:
            of: the label of its class.
            request: its name.
            kind: the verdict with which it was admitted.
            numbers: the four numbers.
            reasons: what stood in the way of more.
        """
        self._totals[of] += numbers
        self._verdicts[of][kind] += 1
        for reason in reasons:
            self._reasons[of, reason.clause, reason.why.value, reason.group] += 1
        if LOG.isEnabledFor(logging.INFO):
            seen = {"request": request, "class": of, "prompt": numbers.prompt}
            _log("hash hit", {**seen, "logical": numbers.matched, "feasible": numbers.feasible})
            why = ", ".join(dict.fromkeys(reason.why.value for reason in reasons))
            resumed = {"recoverable": numbers.recoverable, "used": numbers.used, "why": why}
            _log("recoverable hit", {**seen, "verdict": kind.name, **resumed})

    def refused(self, refusal: Refused) -> None:
        """Count a refusal, by its guard."""
        key = refusal.clause, refusal.action, refusal.guard
        self._refusals[key] += 1
        if LOG.isEnabledFor(logging.DEBUG):
            told = {"clause": refusal.clause, "action": refusal.action, "guard": refusal.guard}
            LOG.debug("refused %s", _words(told), extra={"fivestate": told})

    def recovered(self, result: str, seconds: float) -> None:
        """Note the end of a recovery: ``success``, ``failure`` or ``abort``."""
        self._recovery[result].observe(seconds)

    def exposition(self) -> tuple[str, bytes]:
        """Return the content type and the body of an answer to ``GET /metrics``."""
        return CONTENT_TYPE_LATEST, generate_latest(self.registry)

    def serve(self, port: int, address: str = "127.0.0.1") -> Any:
        """Answer ``GET /metrics`` on a port, in a thread; returns the server and its thread."""
        return start_http_server(port, address, self.registry)

    def collect(self) -> Iterator[Metric]:
        """Yield every figure that is kept outside Prometheus's own types."""
        yield self._tokens()
        verdicts = CounterMetricFamily(
            "fivestate_admissions",
            "First admissions, by verdict.",
            labels=["class", "verdict"],
        )
        for name, of in self._verdicts.items():
            for kind, count in of.items():
                verdicts.add_metric([name, kind.name], count)
        yield verdicts
        yield CounterMetricFamily("fivestate_lookups", "Lookups.", self._looked)
        labels = ["class", "clause", "why", "group"]
        yield _counters("reasons", "What stood in the way of more.", labels, self._reasons)
        labels = ["clause", "action", "guard"]
        yield _counters("refusals", "Refusals, by the first guard.", labels, self._refusals)
        if self._allocator is not None:
            yield from self._scrape(self._allocator)

    def _tokens(self) -> Metric:
        family = CounterMetricFamily(
            "fivestate_prefix_tokens",
            "Tokens of prompts: all, seen before, whole blocks of these, recoverable, used.",
            labels=["class", "number"],
        )
        for name, total in self._totals.items():
            family.add_metric([name, "prompt"], total.prompt)
            family.add_metric([name, "logical"], total.matched)
            family.add_metric([name, "feasible"], total.feasible)
            family.add_metric([name, "recoverable"], total.recoverable)
            family.add_metric([name, "used"], total.used)
        return family

    def _scrape(self, allocator: Allocator) -> Iterator[Metric]:
        with allocator.lock:
            cells = Counter((cell.state.name, cell.device.name) for cell in allocator.cells())
            self._look_at_residents(allocator)
            in_line = (*allocator._queue, *allocator._using)  # noqa: SLF001 -- they have no other name
            phases = Counter(request.phase for request in in_line)
            owners = {
                name: {owner: int((pool.owner == owner).sum()) for owner in Owner}
                for name, pool in allocator.pools.items()
            }
            unwritten = self._unwritten()
        family = GaugeMetricFamily(
            "fivestate_cells", "Cells, by state and life.", labels=["state", "device"]
        )
        for state in allocator.groups_of:
            for device in Device:
                family.add_metric([state.name, device.name], cells[state.name, device.name])
        yield family
        family = GaugeMetricFamily("fivestate_requests", "Requests, by phase.", labels=["phase"])
        for phase in Phase:
            family.add_metric([phase.name], phases[phase])
        yield family
        waiting = sum(phases[phase] for phase in (Phase.MISS, Phase.PARTIAL, Phase.HIT))
        yield GaugeMetricFamily("fivestate_queue_length", "Requests that wait.", waiting)
        family = GaugeMetricFamily(
            "fivestate_blocks", "Blocks of a pool, by owner.", labels=["group", "owner"]
        )
        for name, counts in owners.items():
            for owner in (Owner.FREE, Owner.CELL, Owner.PRIVATE, Owner.DOOMED):
                family.add_metric([name, owner.name], counts[owner])
        yield family
        family = GaugeMetricFamily(
            "fivestate_fragmentation_ratio",
            "Of the blocks that requests have to themselves, the part with nothing in them yet.",
            labels=["group"],
        )
        for name, counts in owners.items():
            private = counts[Owner.PRIVATE]
            family.add_metric([name], unwritten.get(name, 0) / private if private else 0.0)
        yield family

    def _look_at_residents(self, allocator: Allocator) -> None:
        """Note which cells have come and which have gone since the last scrape."""
        now = self.clock()
        there = {cell for cell in allocator.cells() if cell.device is Device.READY}
        for cell in self._since.keys() - there:
            self._residence[cell.state].observe(now - self._since.pop(cell))
        for cell in there - self._since.keys():
            self._since[cell] = now


def alert_rules() -> str:
    """Return alert rules for Prometheus, as YAML."""
    return files("fivestate.impl").joinpath("alerts.yaml").read_text("utf-8")


def dashboard() -> str:
    """Return a dashboard for Grafana, as JSON."""
    return files("fivestate.impl").joinpath("dashboard.json").read_text("utf-8")


def _counters(
    name: str, documentation: str, labels: list[str], counts: Counter[Any]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"fivestate_{name}", documentation, labels=labels)
    for values, count in counts.items():
        family.add_metric(list(values), count)
    return family


def _log(message: str, told: dict[str, object]) -> None:
    LOG.info("%s %s", message, _words(told), extra={"fivestate": {"event": message, **told}})


def _words(told: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value!s}" for name, value in told.items())
