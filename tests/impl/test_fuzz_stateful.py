"""A cache in the hands of Hypothesis: rules named after actions, checked against memory itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.impl.token_engine import GEOMETRIES, Engine, Held
from tests.impl.token_oracle import compare

from fivestate.impl import sequences, tables
from fivestate.impl.allocator import Allocator
from fivestate.impl.matching import Matcher
from fivestate.impl.recoveries import Recovery, Task
from fivestate.impl.refusals import Refused
from fivestate.impl.retention import Retention
from fivestate.spec.allocator import NEXT
from fivestate.spec.reuse import Means
from fivestate.spec.reuse.windows import Keep

WHO = st.integers(0, 3)
LENGTHS = st.sampled_from((70, 70, 48, 32, 16, 7, 0))
LETTERS = st.sampled_from(([0], [1], [1, 0, 1], [0, 1] * 5, [1] * 18, [0] * 17))
RETENTIONS = {
    "periodic": Retention(),
    "full": Retention(Keep.FULL),
    "zero": Retention(Keep.ZERO),
}


@contextmanager
def allowed(*guards: str) -> Iterator[None]:
    """Let an operation be refused, by these guards or, where none is named, by any."""
    try:
        yield
    except Refused as refusal:
        if guards and refusal.guard not in guards:
            raise


class Requests(RuleBasedStateMachine):
    """Requests of one engine, in any order of anything that can happen to them."""

    geometry: ClassVar[str]

    @initialize(
        keep=st.sampled_from(sorted(RETENTIONS)),
        in_flight=st.sampled_from((5, 40)),
        offload=st.booleans(),
    )
    def begin(self, *, keep: str, in_flight: int, offload: bool) -> None:
        """Begin with one prefix that is known, on the device or only off it."""
        shape = GEOMETRIES[self.geometry]
        sizes = {g.name: max(20, 200 // g.block_size) for g in shape.groups}
        self.engine = Engine(
            shape, sizes, retention=RETENTIONS[keep], in_flight_tokens=in_flight, slots=3
        )
        self.past: list[list[int]] = [[0, 1] * 24]
        self.tasks: list[tuple[Recovery, Task, Held]] = []
        held = self.engine.start(self.past[0])
        while left := len(held.tokens) - held.written:
            self.engine.fill(held, min(left, in_flight))
            self.engine.commit(held)
        self.engine.release(held)
        for cell in reversed(list(self.engine.allocator.cells())) if offload else ():
            with allowed():
                self.engine.store(cell.node, cell.state)
            with allowed():
                self.engine.allocator.evict(cell.node, cell.state)

    @rule(who=WHO, length=LENGTHS, tokens=LETTERS, new=st.sampled_from((0, 20, 20)))
    def lease(self, who: int, length: int, tokens: list[int], new: int) -> None:
        """A request arrives, and takes its prefix or begins to recover it."""
        prompt = (self.past[who % len(self.past)][:length] + tokens)[:70]
        with allowed("slot", "room"):
            self.engine.start(prompt, new)

    @rule(who=WHO, length=LENGTHS, tokens=LETTERS)
    def match(self, who: int, length: int, tokens: list[int]) -> None:
        """Somebody asks what a prefix is worth, and nothing follows."""
        compare(self.engine, self.past[who % len(self.past)][:length] + tokens)

    @precondition(lambda self: self.of(recovering=True))
    @rule(who=WHO, which=WHO)
    def load_begin_or_make(self, who: int, which: int) -> None:
        """One task of a recovery begins."""
        held = self.one(who, recovering=True)
        recovery = self.engine.cache.recover(held.lease)
        if recovery.lost:
            self.engine.release(held)
        elif pending := recovery.pending():
            task = pending[which % len(pending)]
            recovery.begin(task)
            self.tasks.append((recovery, task, held))

    @precondition(lambda self: self.tasks)
    @rule(which=WHO, fate=st.sampled_from(("good", "good", "bad", "misplaced")))
    def load_good_or_bad_or_made(self, which: int, fate: str) -> None:
        """One task that has begun ends, maybe for a recovery that was given up."""
        recovery, task, held = self.tasks.pop(which % len(self.tasks))
        bad = fate == "bad" and task.means is not Means.LOAD_BACK
        self.engine.end(recovery, task, held, "good" if bad else fate)

    @precondition(lambda self: self.of(recovering=True))
    @rule(who=WHO, fates=st.lists(st.sampled_from(("bad", "misplaced")), max_size=1))
    def recover(self, who: int, fates: list[str]) -> None:
        """A whole recovery is done; one load of it may not check, or land misplaced."""
        held = self.one(who, recovering=True)

        def fate(task: Task) -> str:
            return fates.pop() if fates and task.means is Means.LOAD_BACK else "good"

        self.engine.recover(held, fate)

    @precondition(lambda self: self.of(recovering=True))
    @rule(who=WHO)
    def resume(self, who: int) -> None:
        """A recovered prefix is taken, if all of it is complete."""
        held = self.one(who, recovering=True)
        if self.engine.cache.recover(held.lease).finish():
            self.engine.check_lease(held)

    @precondition(lambda self: self.of(recovering=False))
    @rule(who=WHO, count=st.integers(1, 40))
    def write(self, who: int, count: int) -> None:
        """The next tokens of a prompt are computed."""
        held = self.one(who, recovering=False)
        left = len(held.tokens) - held.written
        if left:
            most = self.engine.cache.in_flight_tokens
            self.engine.fill(held, min(count, left, most))

    @precondition(lambda self: self.of(recovering=False))
    @rule(who=WHO, tokens=LETTERS, drafts=st.sampled_from((0, 0, 2, 20)))
    def append(self, who: int, tokens: list[int], drafts: int) -> None:
        """Tokens are decoded, the last of them maybe as drafts."""
        held = self.one(who, recovering=False)
        with allowed("fits", "in_flight", "filled"):
            self.engine.append(held, tokens, min(drafts, len(tokens)))

    @precondition(lambda self: self.of(recovering=False))
    @rule(who=WHO, accepted=st.sampled_from((0, 1, 20)))
    def verify_and_roll_back(self, who: int, accepted: int) -> None:
        """Drafts are accepted, and the others taken back."""
        held = self.one(who, recovering=False)
        with allowed("drafted"):
            self.engine.verify(held, min(accepted, held.written - held.verified))

    @precondition(lambda self: self.of(recovering=False))
    @rule(who=WHO)
    def publish(self, who: int) -> None:
        """What was written is named for others."""
        held = self.one(who, recovering=False)
        self.engine.commit(held)
        self.past = [*self.past[-3:], list(held.tokens)]

    @precondition(lambda self: self.of(recovering=False))
    @rule(who=WHO, new=st.integers(0, 8))
    def fork(self, who: int, new: int) -> None:
        """A second request goes on from where one stands."""
        with allowed("settled", "running", "slot", "room", "complete"):
            self.engine.fork(self.one(who, recovering=False), new)

    @precondition(lambda self: self.engine.sequences)
    @rule(who=WHO)
    def finish_or_abort(self, who: int) -> None:
        """A request ends, whatever it is doing."""
        self.engine.release(self.engine.sequences[who % len(self.engine.sequences)])

    @rule(which=st.integers(0, 30))
    def evict(self, which: int) -> None:
        """A cell is taken, if it may be."""
        cells = list(self.engine.allocator.cells())
        if cells:
            cell = cells[which % len(cells)]
            with allowed():
                self.engine.allocator.evict(cell.node, cell.state)

    @rule(which=st.integers(0, 30), fate=st.sampled_from(("good", "good", "bad")))
    def store(self, which: int, fate: str) -> None:
        """A cell is stored, well or not, if it may be."""
        cells = list(self.engine.allocator.cells())
        if cells:
            cell = cells[which % len(cells)]
            with allowed():
                self.engine.store(cell.node, cell.state, fate)

    @rule(which=st.integers(0, 30))
    def drop(self, which: int) -> None:
        """A copy is dropped, if it may be."""
        cells = list(self.engine.allocator.cells())
        if cells:
            cell = cells[which % len(cells)]
            with allowed():
                self.engine.allocator.drop(cell.node, cell.state)

    @rule()
    def change_kernels(self) -> None:
        """The kernels change, if nobody uses anything."""
        with allowed("quiescent", "transfers_ended"):
            self.engine.allocator.change_kernels()

    @rule()
    def change_weights(self) -> None:
        """The weights change, if nobody uses anything."""
        with allowed("quiescent", "transfers_ended"):
            self.engine.allocator.change_weights()

    @precondition(lambda self: not self.tasks and len(self.engine.sequences) > 1)
    @rule()
    def crash(self) -> None:
        """The process crashes, and its requests with it."""
        self.engine.allocator.crash()
        for held in list(self.engine.sequences):
            self.engine.release(held)

    @invariant()
    def memory_has_what_is_read_and_every_block_one_owner(self) -> None:
        """What runs finds the rows it reads, and every block has one owner."""
        if hasattr(self, "engine"):
            self.engine.check()

    def of(self, *, recovering: bool) -> list[Held]:
        """Return the requests that recover, or those that do not."""
        return [h for h in self.engine.sequences if h.lease.recovering == recovering]

    def one(self, who: int, *, recovering: bool) -> Held:
        """Return one of them."""
        found = self.of(recovering=recovering)
        return found[who % len(found)]


def machine(name: str) -> type[Requests]:
    return type(name.title(), (Requests,), {"geometry": name})


BRIEF = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("name", ["hybrid", "snapshots", "homogeneous", "toy"])
def test_whatever_happens_memory_has_what_is_read_and_every_block_one_owner(name: str) -> None:
    run_state_machine_as_test(machine(name), settings=BRIEF)


def drop_one_more(self: tables.Table, row: int) -> None:
    """Let go of a block whose rows are still read."""
    count = min(row // self.size - self.first + 1, len(self.ids))
    if count > 0:
        self.spare += self.ids[:count]
        del self.ids[:count]
        self.first += count


def share_for_ever(self: sequences.Sequence, allocator: Allocator) -> None:
    """Let a fork have blocks of its own, and copy nothing into them."""
    del allocator
    for fork in self.forks:
        for name, table in self.tables.items():
            own = fork.tables[name]
            own.first, own.limit = table.first, table.first * table.size
            if table.ids:
                own.grow(len(table.ids))
        fork.source = None
    self.forks.clear()


def take_it_for_good(self: Recovery, task: Task) -> None:
    """Report a load that does not check as one that does."""
    self.done(task)


FAULTS: dict[str, tuple[type, str, Callable[..., object]]] = {
    "a window that slides too far": (tables.Table, "drop", drop_one_more),
    "a fork that shares what is written": (sequences.Sequence, "settle", share_for_ever),
    "a bad load that counts": (Recovery, "failed", take_it_for_good),
    "eviction of what is leased": (Allocator, "unleased", staticmethod(lambda _cell: True)),
    "a verdict by hash alone": (Matcher, "_stands", lambda *_: True),
}
FOUND = (AssertionError, Refused, ValueError, KeyError)


def story(error: BaseException) -> list[str]:
    """Return the steps that Hypothesis tells, by name."""
    notes = "\n".join(getattr(error, "__notes__", ()))
    return re.findall(r"state\.(\w+)\(", notes)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    where, method, wrong = FAULTS[fault]
    monkeypatch.setattr(where, method, wrong)
    search = settings(BRIEF, max_examples=4_000, phases=[Phase.generate])  # ends with the first
    with pytest.raises(FOUND):
        run_state_machine_as_test(machine("hybrid"), settings=search)


def test_a_fault_is_told_as_a_short_story_of_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    where, method, wrong = FAULTS["a verdict by hash alone"]
    monkeypatch.setattr(where, method, wrong)
    with pytest.raises(AssertionError) as error:
        run_state_machine_as_test(machine("hybrid"), settings=settings(BRIEF, max_examples=400))
    told = [step for step in story(error.value) if not step.startswith("memory_has")]
    assert (told[0], *told[2:]) == ("begin", "match", "teardown")
    assert told[1] in {action.name for action in NEXT}, "what happened is told by the spec's name"
