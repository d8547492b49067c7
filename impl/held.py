"""What is held: leases that have not ended, what they may be asked, and how they end."""

from __future__ import annotations

from functools import partial

from fivestate.impl.admission import Admission
from fivestate.impl.allocator import Allocator, Settings
from fivestate.impl.arguments import require, whole
from fivestate.impl.index import Index
from fivestate.impl.keys import Keys
from fivestate.impl.leases import Lease, Snapshot
from fivestate.impl.matching import Matcher
from fivestate.impl.metrics import Metrics
from fivestate.impl.publishing import Publisher
from fivestate.impl.recoveries import Recovery
from fivestate.impl.refusals import Refused
from fivestate.impl.requests import RUNS
from fivestate.impl.retention import Retention
from fivestate.impl.sequences import Sequence as Running
from fivestate.spec.reuse import Line, Policy, ledger
from fivestate.spec.vocabulary import WINDOW, Phase

IN_FLIGHT_TOKENS = 8_192
"""Tokens that one step may write, unless something else is said: a chunk of prefill."""


class Held:
    """The leases of one cache.

    Attributes:
        allocator: the allocator below.
        geometry: its cache groups.
        keys: how prompts are hashed.
        policy: which recoveries may be used, and how fast they are.
        retention: where committed sequences are cut.
        in_flight_tokens: the most tokens that one request may have written and not verified.
        metrics: its figures.
    """

    def __init__(
        self,
        settings: Settings | Allocator,
        *,
        policy: Policy | None = None,
        retention: Retention | None = None,
        in_flight_tokens: int = IN_FLIGHT_TOKENS,
        metrics: Metrics | None = None,
    ) -> None:
        """Build it over an allocator, or over a new one from settings.

        Raises:
            ValueError: ``in_flight_tokens`` is not positive.
        """
        in_flight_tokens = whole("in_flight_tokens", in_flight_tokens, 1)
        if not isinstance(settings, Allocator):
            require("settings", settings, Settings)
        self.allocator = Allocator(settings) if isinstance(settings, Settings) else settings
        self.geometry = self.allocator.settings.geometry
        self.keys = Keys.of(self.geometry)
        self.policy = policy or Policy()
        self.retention = retention or Retention()
        self.in_flight_tokens = in_flight_tokens
        self.metrics = metrics or Metrics()
        self._step = self.keys.step_tokens
        self._held = in_flight_tokens + self._step  # what stays for the last boundary comes on top
        self._lock = self.allocator.lock
        self._windows = self.allocator.groups_of.get(WINDOW, ())
        self._index = Index(self.allocator.root)
        for node in self.allocator.nodes():
            self._index.put(node)
        self._matcher = Matcher(self.allocator, self.policy)
        self._admission = Admission(self.allocator, self._index, self._matcher, self._held)
        self._publisher = Publisher(self.allocator, self._index, self.retention, self._held)
        self._running: dict[Lease, Running] = {}
        self._recoveries: dict[Lease, Recovery] = {}
        self.metrics.watch(self.allocator, self._unwritten)

    def recover(self, lease: Lease) -> Recovery:
        """Return what has to be done before the prefix of a lease may be read; it may be nothing.

        Raises:
            Refused: the lease has ended.
        """
        with self._lock:
            request = self._sequence(lease, "recover").request
            done = Recovery(self.allocator, self.policy, request, self._ignore)
            return self._recoveries.get(lease, done)

    def recovering(self, lease: Lease) -> bool:
        """Say whether the prefix of a lease is still being recovered.

        Raises:
            ValueError: the lease is of another cache.
        """
        self._require_lease(lease, "recovering")
        with self._lock:
            running = self._running.get(lease)
            return running is not None and running.request.phase is Phase.RECOVERING

    def snapshot(self, lease: Lease) -> Snapshot:
        """Return the prefix of a lease as it is.

        Raises:
            Refused: the lease has ended, or is still being recovered.
        """
        with self._lock:
            request = self._ready(lease, "snapshot").request
            return Snapshot.of(self.allocator, request.target)

    def blocks(self, lease: Lease) -> dict[str, tuple[int, list[int]]]:
        """Return the block tables: of the prefix, and of what was written behind it.

        Returns:
            By group, the number of its first block, and the ids from there on: block ``n`` has
            tokens ``n * block_size`` and on; those before are not needed any more.

        Raises:
            Refused: the lease has ended, or is still being recovered.
        """
        with self._lock:
            return self._ready(lease, "blocks").block_tables(self.geometry)

    def ledger(self, lease: Lease) -> tuple[Line, ...]:
        """Return the form of each token of each group before the resume point (形态记账).

        Raises:
            Refused: the lease has ended.
        """
        with self._lock:
            node = self._sequence(lease, "ledger").request.target
            return ledger(self._matcher.holdings(node), node.end_tokens)

    def release(self, lease: Lease, *, in_flight: bool = False) -> None:
        """End a lease, whatever its request is doing; a second time nothing is left to do.

        What was not committed is gone. What a recovery has made so far is given up, unless somebody
        else waits for it; blocks that a transfer may still touch are withheld until it has landed.

        Args:
            lease: the lease.
            in_flight: kernels of the request still read: it drains, and holds what they read until
                it is released again.

        Raises:
            ValueError: the lease is of another cache.
        """
        self._require_lease(lease, "release")
        with self._lock:
            running = self._running.get(lease)
            if running is None:
                return
            if in_flight and running.request.phase in RUNS:
                self.allocator.abort_step(running.request)
                return
            del self._running[lease]
            self._settle(running)
            self._end(lease, running)
            self._publisher.forget(running)
            self._index.note(running.prompt)
            self._index.sweep(self.allocator.nodes(), self.allocator.prune)

    def _end(self, lease: Lease, running: Running) -> None:
        allocator, request = self.allocator, running.request
        recovery = self._recoveries.pop(lease, None)
        if request.phase is Phase.RECOVERING and recovery is not None:
            allocator.abort_recovery(request, request.target)
            recovery.abort()
            self._note_recovery(running, "failure" if recovery.lost else "abort")
        elif request.phase is Phase.LEASED:
            allocator.abort_leased(request)
        elif request.phase is Phase.DRAINING:
            allocator.drained(request)
        elif request.phase in RUNS:
            allocator.finish(request)

    def _held_by(self, running: Running, lease: Lease) -> Lease:
        self._running[lease] = running
        if running.request.phase is Phase.RECOVERING:
            running.since = self.metrics.clock()
            ended = partial(self._note_recovery, running)
            recovery = Recovery(self.allocator, self.policy, running.request, ended)
            self._recoveries[lease] = recovery
        return lease

    @staticmethod
    def _ignore(_result: str) -> None:
        """Note nothing: nothing is recovered."""

    def _note_recovery(self, running: Running, result: str) -> None:
        self.metrics.recovered(result, self.metrics.clock() - running.since)

    def _sequence(self, lease: Lease, operation: str) -> Running:
        """Return what a lease that has not ended is about.

        Raises:
            Refused: it has ended.
            ValueError: it is of another cache.
        """
        self._require_lease(lease, operation)
        running = self._running.get(lease)
        if running is None or not running.request.in_use:
            raise self._refuse("I-3", operation, "held", lease=lease)
        return running

    def _require_lease(self, lease: Lease, operation: str) -> None:
        require(f"{operation}: lease", lease, Lease)
        if lease.cache is not self:
            raise ValueError(f"{operation}: {lease!r} is of another cache")

    def _ready(self, lease: Lease, operation: str) -> Running:
        """Return what a lease that may be read is about.

        Raises:
            Refused: it has ended or drains, or something has to be recovered first.
            ValueError: it is of another cache.
        """
        running = self._running.get(lease) if type(lease) is Lease else None
        if running is not None and running.request.phase is Phase.RUNNING:
            return running
        running = self._sequence(lease, operation)
        phase = running.request.phase
        if phase is Phase.RECOVERING:
            raise self._refuse("A-15", operation, "complete", lease=lease)
        if phase is Phase.DRAINING:
            raise self._refuse("A-34", operation, "running", lease=lease)
        return running

    def _refuse(self, clause: str, operation: str, guard: str, **given: object) -> Refused:
        refusal = Refused(clause, operation, guard, given)
        self.metrics.refused(refusal)
        return refusal

    def _settle(self, running: Running) -> None:
        """Copy what is still shared with this request, before anything of it changes."""
        if running.source is not None:
            running.source.settle(self.allocator)
        if running.forks:
            running.settle(self.allocator)

    def _unwritten(self) -> dict[str, int]:
        """Return, by group, how many blocks requests have claimed and not written."""
        counts = dict.fromkeys(self.allocator.pools, 0)
        for running in self._running.values():
            for name, table in running.tables.items():
                counts[name] += len(table.spare)
        return counts
