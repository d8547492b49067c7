"""Shadow: what a cache would have given is compared with what was computed, before it is believed.

A hit in the shadow is classified and recovered as any other, and then not used: the prompt is
computed as if it had missed. On a sample of hits the rows of both are compared: bit for bit where
both were made in the same chunks, else within a tolerance. Agreement lets the rollout rise, and
one difference takes it back to nothing.
Source: seed 001 §8(7); seed 002 §9(1), §9(6); design §8.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import torch
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from torch import Tensor

from fivestate.impl.allocator import Allocator
from fivestate.impl.chain import Cell
from fivestate.impl.rollout import Decision, Rollout, Use

TOLERANCE = 1e-2
"""What rows of other chunks may differ by: rows that are right differ by 2-3e-6 in logits, a row
that is missing by 0.5 and more (design §8). Not so where an index chooses: scores can tie, and in
other chunks the tie goes another way; such rows are compared in the same chunks."""

Rows = Mapping[str, Tensor]
"""Rows by group: of any shape and dtype, the same for what is given and what is computed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where what a cache gives is not what was computed.

    Attributes:
        group: the group.
        at: index of the first number, or byte, that differs.
        by: how far apart they are at most; infinite where one is no number.
        exact: whether they had to be the same bit for bit.
    """

    group: str
    at: tuple[int, ...]
    by: float
    exact: bool

    def __str__(self) -> str:
        allowed = "no bit" if self.exact else f"{TOLERANCE:g}"
        return f"{self.group} at {list(self.at)} by {self.by:.3g}: {allowed} is allowed"


def compare(given: Rows, computed: Rows, *, exact: bool) -> Difference | None:
    """Return the first difference between rows, or nothing.

    Args:
        given: what the cache gives.
        computed: what was computed.
        exact: whether both were made in the same chunks, and so have the same bits.

    Raises:
        ValueError: they are rows of other groups.
    """
    if given.keys() != computed.keys():
        raise ValueError(f"rows of {sorted(given)} cannot be compared with {sorted(computed)}")
    for group, rows in given.items():
        difference = _compare(group, rows, computed[group], exact=exact)
        if difference is not None:
            return difference
    return None


def _compare(group: str, rows: Tensor, computed: Tensor, *, exact: bool) -> Difference | None:
    if rows.shape != computed.shape or rows.dtype != computed.dtype:
        return Difference(group, (), float("inf"), exact)
    apart = (rows.double() - computed.double()).abs().nan_to_num(float("inf"))
    apart = apart.masked_fill(rows == computed, 0.0)  # both infinite
    wrong = apart > TOLERANCE
    if exact:
        width = rows.element_size()
        bits = rows.contiguous().view(torch.uint8) != computed.contiguous().view(torch.uint8)
        wrong = bits.view(*rows.shape, width).any(-1)
    if not wrong.any():
        return None
    first = wrong.nonzero()[0].tolist()
    return Difference(group, tuple(first), float(apart.max()), exact)


class Shadow(Collector):
    """Compares, tells the rollout, and counts; safe to call from several threads.

    Args:
        rollout: decides hit by hit, and rises or falls with what is found.
        clock: seconds, for what comparing costs.
    """

    def __init__(
        self, rollout: Rollout | None = None, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.rollout = rollout or Rollout()
        self._clock, self._lock = clock, Lock()
        self._hits: Counter[str] = Counter()
        self._compared: Counter[tuple[str, str]] = Counter()
        self._seconds = 0.0

    def decide(self, key: bytes) -> Decision:
        """Say what to do with a hit on the prefix whose digest is ``key``, and count it.

        Raises:
            ValueError: the key is not bytes, or empty.
        """
        decision = self.rollout.decide(key)
        with self._lock:
            self._hits[decision.use.value] += 1
        return decision

    def judge(
        self, key: bytes, rows: Callable[[], tuple[Rows, Rows]], *, exact: bool
    ) -> Difference | None:
        """Compare what a cache gives with what was computed, and tell the rollout.

        Args:
            key: the prefix's digest.
            rows: returns what the cache gives, and what was computed.
            exact: whether both were made in the same chunks.

        Returns:
            The first difference, or nothing.
        """
        start = self._clock()
        difference = compare(*rows(), exact=exact)
        seconds = self._clock() - start
        with self._lock:
            self._seconds += seconds
            result = "agreed" if difference is None else "differed"
            self._compared["exact" if exact else "tolerance", result] += 1
        if difference is None:
            self.rollout.agreed()
        else:
            self.rollout.differed(key, str(difference))
        return difference

    @property
    def seconds(self) -> float:
        """What comparing has cost, in seconds."""
        return self._seconds

    def compared(self, result: str) -> int:
        """Return how many comparisons ``agreed`` or ``differed``."""
        with self._lock:
            return sum(n for (_, found), n in self._compared.items() if found == result)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures; register it where the others are."""
        with self._lock:
            hits, compared, seconds = self._hits.copy(), self._compared.copy(), self._seconds
        family = CounterMetricFamily(
            "fivestate_shadow_hits", "Hits, by what was done.", labels=["use"]
        )
        for use in Use:
            family.add_metric([use.value], hits[use.value])
        yield family
        labels = ["against", "result"]
        family = CounterMetricFamily(
            "fivestate_shadow_comparisons",
            "Comparisons of what the cache gives with what was computed.",
            labels=labels,
        )
        for (against, result), count in compared.items():
            family.add_metric([against, result], count)
        yield family
        yield CounterMetricFamily(
            "fivestate_shadow_seconds", "Time that comparing has taken.", seconds
        )
        share = self.rollout.share
        yield GaugeMetricFamily(
            "fivestate_reuse_share", "Share of prefixes that are reused.", share
        )


def pages(allocator: Allocator, cells: Sequence[Cell]) -> dict[str, Tensor]:
    """Return the bytes of some cells, by group: what the blocks of a lease give.

    Args:
        allocator: whose.
        cells: pinned, or nobody may tell what comes next in their blocks.

    Returns:
        Shape (blocks, page_bytes), dtype uint8, an own copy.

    Raises:
        Refused: a block holds what its last owner wrote (I-2).
    """
    found: dict[str, list[Tensor]] = {}
    for cell in cells:
        for group, blocks in cell.blocks.items():
            found.setdefault(group, []).append(allocator.pools[group].read(blocks))
    return {group: torch.cat(parts) for group, parts in found.items()}
