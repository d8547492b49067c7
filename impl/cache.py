"""The cache: what an engine calls for sequences of tokens, on top of the machine's actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fivestate.impl.admission import Waiting
from fivestate.impl.arguments import require, whole
from fivestate.impl.held import Held
from fivestate.impl.keys import Prompt, encode
from fivestate.impl.leases import Lease
from fivestate.impl.matching import Match
from fivestate.impl.refusals import Refused
from fivestate.impl.sequences import Sequence as Running
from fivestate.spec.reuse import Kind
from fivestate.spec.vocabulary import Phase

RUNNING = Phase.RUNNING


class Cache(Held):
    """A prefix cache for sequences of tokens.

    An engine asks ``match``, takes a ``lease``, lets what is missing be recovered, writes behind
    the prefix with ``fill`` and ``append``, and names with ``commit`` what others may reuse. The
    bytes are the engine's: the cache says which blocks to read and to write.

    Every method is atomic, and thread-safe as the allocator is.

    Attributes:
        allocator: the allocator below.
        keys: how prompts are hashed.
        retention: where committed sequences are cut.
        in_flight_tokens: the most tokens that one request may have written and not verified.
        metrics: its figures.
    """

    def match(self, prompt: Prompt | Sequence[int]) -> Match:
        """Say what a prompt's prefix is worth now; nothing is held by it.

        Args:
            prompt: tokens, or what ``keys.prompt`` gives: with an adapter, a salt or images.

        Raises:
            ValueError: it has no token, or something that is none.
        """
        prompt = prompt if isinstance(prompt, Prompt) else self.keys.prompt(prompt)
        if prompt.keys is not self.keys and prompt.keys != self.keys:
            raise ValueError(f"prompt: it is hashed by {prompt.keys}, not by {self.keys}")
        if not len(prompt):
            raise ValueError("prompt: it is empty: a token at least is needed")
        with self._lock:
            self.metrics.looked()
            return self._admission.look(prompt)

    def lease(
        self,
        match: Match | Waiting,
        *,
        new_tokens: int = 0,
        name: str = "",
        of: str = "default",
    ) -> Lease:
        """Take the prefix of a match, to be read at once or, if it is PARTIAL, once recovered.

        What has gone since the match was made costs a smaller resume point, and so does a boundary
        at which a segment cannot be split now.

        Args:
            match: a match, or who waits for its turn since its arrival.
            new_tokens: tokens that may come behind the prompt.
            name: what messages and log lines call the request.
            of: the class of the request, for the metrics.

        Raises:
            Refused: it is not its turn, or there is no slot or no room for all that it will need;
                who waits keeps its place.
            ValueError: the match is of another cache, or a number is out of its range.
        """
        with self._lock:
            if isinstance(match, Waiting):
                self._require_own(match)
                return self._take(match)
            waiting = self.arrive(match, new_tokens=new_tokens, name=name, of=of)
            try:
                return self._take(waiting)
            except Refused:
                if waiting.sequence.request.waiting:
                    self.leave(waiting)
                raise

    def arrive(
        self, match: Match, *, new_tokens: int = 0, name: str = "", of: str = "default"
    ) -> Waiting:
        """Queue for the prefix of a match, behind all who wait already.

        Raises:
            ValueError: the match is of another cache, or its prompt is empty by now; an argument
                is of the wrong type or out of its range.
        """
        new_tokens = whole("new_tokens", new_tokens)
        require("match", match, Match)
        require("name", name, str)
        require("of", of, str)
        if match.found.node.home is not self.allocator:
            raise ValueError("match: it is of another cache")
        if not len(match.prompt):
            raise ValueError("match: its prompt is empty by now")
        with self._lock:
            return self._admission.arrive(match, new_tokens, name, self.metrics.known_class(of))

    def leave(self, waiting: Waiting) -> None:
        """Give up a place in the queue.

        Raises:
            Refused: it has been served, or given up already.
            ValueError: it is of another cache.
        """
        self._require_own(waiting)
        self.allocator.abort_waiting(waiting.sequence.request)

    def fill(self, lease: Lease, count: int) -> None:
        """Have blocks for the next ``count`` tokens of the prompt: a chunk of prefill.

        Raises:
            Refused: the lease has ended or is being recovered, or the chunk is too long.
            ValueError: the prompt has fewer tokens left.
        """
        with self._lock:
            running = self._ready(lease, "fill")
            left = len(running.prompt) - running.written
            count = whole("count", count, 1)
            if count > left:
                raise ValueError(f"count = {count}: 1 to {left} tokens of the prompt are left")
            running.require_room(count, self.in_flight_tokens)
            self._write(running, count, 0)

    def append(self, lease: Lease, tokens: Sequence[int], drafts: int = 0) -> None:
        """Have blocks for tokens behind the prompt; the last ``drafts`` of them are unverified.

        Behind drafts that are not verified yet, every token is a draft.

        Raises:
            Refused: the lease has ended or is being recovered; the request would have more tokens
                than it said, or too many unverified ones; the prompt is not filled.
            ValueError: a token is none, or there are more drafts than tokens.
        """
        more = encode(tokens)
        count = len(more)
        if drafts != 0 and whole("drafts", drafts) > count:
            raise ValueError(f"drafts = {drafts}: 0 to {count} is allowed")
        with self._lock:
            running = self._running.get(lease) if type(lease) is Lease else None
            if running is None or running.request.phase is not RUNNING:
                running = self._ready(lease, "append")
            written = running.written + count
            if written <= running.calm and not drafts:
                if written > running.room:
                    running.grow(written, self._step)
                running.prompt.add(more)
                running.written = running.verified = written
                return
            left = len(running.prompt) - running.written
            if left:
                raise Refused("A-1", "append", "filled", {"left": left})
            running.require_room(count, self.in_flight_tokens)
            running.prompt.add(more)
            self._write(running, count, drafts)
            running.reckon(self._step, self.in_flight_tokens)

    def verify(self, lease: Lease, accepted: int) -> None:
        """Accept the oldest drafts and take back the others.

        Raises:
            Refused: the lease has ended, or there are not so many drafts.
            ValueError: the number is none, or negative.
        """
        with self._lock:
            running = self._ready(lease, "verify")
            drafts, accepted = running.written - running.verified, whole("accepted", accepted)
            if accepted > drafts or not drafts:
                raise Refused("A-2", "verify", "drafted", {"drafts": drafts, "accepted": accepted})
            running.verified += accepted
            if accepted < drafts:
                self._settle(running)
                running.roll_back()

    def commit(self, lease: Lease) -> int:
        """Name what was written, in whole scheduler blocks and verified, for others to reuse.

        It is what a request that recovers the new node would do from its arrival to its end, in one
        step and with the blocks moved instead of written again; the lease goes on from there.
        Where rows that a resume needs are gone, or blocks for what comes next are not free, less is
        committed, or nothing.

        Returns:
            Up to where the sequence's tokens are known now.

        Raises:
            Refused: the lease has ended or is being recovered.
        """
        with self._lock:
            running = self._ready(lease, "commit")
            if running.request.phase is Phase.RUNNING:
                self._settle(running)
                self._publisher.publish(running)
            return running.published.end_tokens

    def fork(self, lease: Lease, *, new_tokens: int = 0, name: str = "") -> Lease:
        """Let a second request go on from where one stands; blocks are copied when one writes.

        Raises:
            Refused: the lease has ended, reads nothing yet or has drafts; somebody waits; there is
                no slot or no room.
            ValueError: a number is out of its range.
        """
        new_tokens = whole("new_tokens", new_tokens)
        require("name", name, str)
        with self._lock:
            source = self._ready(lease, "fork")
            drafts = source.written - source.verified
            if drafts:
                raise Refused("A-36", "fork", "settled", {"drafts": drafts})
            self._settle(source)
            longest = max(len(source.prompt), source.written) + new_tokens
            source.trim(self._step)
            demand = source.demand(longest, self._held)
            node = source.request.target
            request = self._admission.new_request(name, demand)
            self.allocator.fork(source.request, request, node)
            self.allocator.run(request)
            running = source.forked(request, longest)
            running.open(self.geometry)
            return self._held_by(running, Lease(self, request.name, lease.kind, lease.plan))

    def _require_own(self, waiting: Waiting) -> None:
        require("waiting", waiting, Waiting)
        if waiting.node.home is not self.allocator:
            raise ValueError("waiting: it is of another cache")

    def _take(self, waiting: Waiting) -> Lease:
        """Claim what somebody waits for, and write down that it has it."""
        running = waiting.sequence
        try:
            self._admission.claim(waiting)
        except Refused as refusal:
            self.metrics.refused(refusal)
            raise
        running.open(self.geometry)
        plan = waiting.plan
        numbers = waiting.match.numbers
        if numbers.used != plan.resume:
            numbers = replace(numbers, used=plan.resume)
        kind = Kind.MISS if not plan.resume else Kind.PARTIAL if plan.steps else Kind.HIT
        name = running.request.name
        self.metrics.admitted(running.of, name, kind, numbers, waiting.match.reasons)
        return self._held_by(running, Lease(self, name, kind, plan))

    def _write(self, running: Running, count: int, drafts: int) -> None:
        """Have blocks for the next tokens of a request, and let go of what it reads no more."""
        allocator, request = self.allocator, running.request
        if request.phase is Phase.LEASED:
            allocator.run(request)
        if running.source is not None or running.forks:
            self._settle(running)
        passed = running.write(count, drafts, self._step)
        windows = () if request.slid or not passed else self._windows
        if windows and running.past(windows, self._step):
            allocator.slide(request)
