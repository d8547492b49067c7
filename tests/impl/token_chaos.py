"""A driver that lets anything happen to a cache, in an order that a seed decides."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

from tests.impl.token_engine import Engine, Held
from tests.impl.token_oracle import compare

from fivestate.impl.recoveries import Task
from fivestate.impl.refusals import Refused
from fivestate.spec.reuse import Means

MOST_RUNNING = 4


class Chaos:
    """Runs an engine at random; each look at the cache is compared with the specification.

    Attributes:
        looked: by verdict, how many looks there were.
        done: by operation, how often it was done, or refused.
    """

    def __init__(self, engine: Engine, seed: int, letters: int = 2) -> None:
        self.engine, self.letters = engine, letters
        self.draw = random.Random(seed)  # noqa: S311 -- the same runs every time
        self.step = engine.geometry.scheduler_block_size
        self.prompts: list[list[int]] = []
        self.looked: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.operations: list[tuple[Callable[[], None], float]] = [
            (self.look, 20),
            (self.serve, 8),
            (self.start, 6),
            (self.recover, 6),
            (self.write, 12),
            (self.commit, 5),
            (self.release, 3),
            (self.fork, 2),
            (self.evict, 3),
            (self.store, 4),
            (self.drop, 1),
            (self.change, 0.4),
        ]

    def run(self, steps: int) -> None:
        """Do some operations."""
        actions, weights = zip(*self.operations, strict=True)
        for action in self.draw.choices(actions, weights, k=steps):
            try:
                action()
                self.done[action.__name__] += 1
            except Refused:
                self.done[f"{action.__name__} refused"] += 1

    def prompt(self) -> list[int]:
        """Draw a prompt; it mostly starts as some prompt before did."""
        draw, longest = self.draw, 4 * self.step + 3
        start: list[int] = []
        if self.prompts and draw.random() < 0.95:
            known = draw.choice(self.prompts)
            start = known[: draw.choice((len(known), len(known), draw.randrange(len(known) + 1)))]
        short, long = draw.randrange(self.step), draw.randrange(longest)
        more = max(draw.choice((1, short, long)), 0 if start else self.step)
        return (start[: longest - 1] + [draw.randrange(self.letters) for _ in range(more)])[
            :longest
        ]

    def serve(self) -> None:
        """Serve a whole request, from its arrival to its end."""
        if len(self.engine.sequences) >= MOST_RUNNING:
            return
        sequence = self.engine.start(self.prompt())
        if sequence.lease.recovering and not self.engine.recover(sequence, self.fate):
            self.engine.release(sequence)
            return
        while left := len(sequence.tokens) - sequence.written:
            self.engine.fill(sequence, min(left, self.engine.cache.in_flight_tokens))
            self.engine.commit(sequence)
        self.prompts = [*self.prompts[-7:], list(sequence.tokens)]
        self.engine.release(sequence)

    def look(self) -> None:
        """Compare one verdict with the specification's."""
        self.looked[compare(self.engine, self.prompt()).kind.name] += 1

    def start(self) -> None:
        """Let a request take its prefix."""
        if len(self.engine.sequences) < MOST_RUNNING:
            self.engine.start(self.prompt(), self.draw.randrange(2 * self.step))

    def recover(self) -> None:
        """Recover what somebody needs first."""
        waiting = [s for s in self.engine.sequences if s.lease.recovering]
        if waiting:
            sequence = self.draw.choice(waiting)
            self.engine.recover(sequence, self.fate)
            if sequence.lease.recovering and self.engine.cache.recover(sequence.lease).lost:
                self.engine.release(sequence)

    def fate(self, task: Task) -> str:
        """Draw how a load ends."""
        if task.means is not Means.LOAD_BACK:
            return "good"
        return self.draw.choices(("good", "bad", "misplaced"), (6, 1, 2))[0]

    def write(self) -> None:
        """Let somebody compute tokens, or verify drafts."""
        sequence = self._ready()
        if sequence is None:
            return
        left = len(sequence.tokens) - sequence.written
        if sequence.written > sequence.verified and not left:
            drafts = sequence.written - sequence.verified
            self.engine.verify(sequence, self.draw.randrange(drafts + 1))
        elif left:
            most = min(left, self.engine.cache.in_flight_tokens)
            self.engine.fill(sequence, self.draw.choice((most, self.draw.randint(1, most))))
        else:
            count = self.draw.choice((1, 3, self.step))
            tokens = [self.draw.randrange(self.letters) for _ in range(count)]
            self.engine.append(sequence, tokens, self.draw.choice((0, 0, min(count, 3))))

    def commit(self) -> None:
        """Let somebody name what it wrote."""
        sequence = self._ready()
        if sequence is not None:
            self.engine.commit(sequence)
            self.prompts = [*self.prompts[-7:], list(sequence.tokens)]

    def release(self) -> None:
        """End somebody, whatever it is doing."""
        if self.engine.sequences:
            self.engine.release(self.draw.choice(self.engine.sequences))

    def fork(self) -> None:
        """Let a second request go on from where one stands."""
        sequence = self._ready()
        if sequence is not None and len(self.engine.sequences) < MOST_RUNNING:
            self.engine.fork(sequence, self.draw.randrange(self.step))

    def evict(self) -> None:
        """Try to evict some cells."""
        allocator = self.engine.allocator
        cells = list(allocator.cells())
        for cell in self.draw.sample(cells, min(len(cells), 2)):
            self._try(partial(allocator.evict, cell.node, cell.state))

    def store(self) -> None:
        """Try to store some cells."""
        cells = list(self.engine.allocator.cells())
        for cell in self.draw.sample(cells, min(len(cells), 3)):
            fate = self.draw.choice(("good", "good", "bad"))
            self._try(partial(self.engine.store, cell.node, cell.state, fate))

    def drop(self) -> None:
        """Try to drop some copies."""
        allocator = self.engine.allocator
        cells = list(allocator.cells())
        for cell in self.draw.sample(cells, min(len(cells), 3)):
            self._try(partial(allocator.drop, cell.node, cell.state))

    def change(self) -> None:
        """Change kernels or weights, or crash; all but a crash wait until nobody is at it."""
        allocator, what = self.engine.allocator, self.draw.random()
        if what < 0.1:
            allocator.crash()
            for sequence in list(self.engine.sequences):
                self.engine.release(sequence)
            return
        for sequence in list(self.engine.sequences):
            self.engine.release(sequence)
        if what < 0.3:
            allocator.change_weights()
        else:
            allocator.change_kernels()

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Refused:
            return

    def _ready(self) -> Held | None:
        ready = [s for s in self.engine.sequences if not s.lease.recovering]
        return self.draw.choice(ready) if ready else None
