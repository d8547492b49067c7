"""The part of the native code that is a model's own: its steps and its properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fivestate.checker.engines.native.claims import RANGE_NUMBER
from fivestate.checker.engines.native.lower import Lowering
from fivestate.checker.engines.native.values import Block, Value, number, truth
from fivestate.spec.language.properties import Kind
from fivestate.spec.language.trees import Boolean, Integer

if TYPE_CHECKING:
    from fivestate.checker.engines.native.claims import Claims
    from fivestate.checker.engines.native.pack import Layout
    from fivestate.spec.language.model import Case, Model
    from fivestate.spec.language.steps import Step


class Emitter:
    """Writes ``successors`` and ``judge`` for one model."""

    def __init__(self, model: Model, layout: Layout, claims: Claims) -> None:
        self.model, self.layout, self.claims = model, layout, claims
        self.word = layout.word
        truths = [isinstance(cell.type, Boolean) for cell in model.cells]
        self._lowering = Lowering(layout, truths, self.word)

    def successors(self) -> str:
        """Return the function that writes down every state behind ``%s``, and how many there are.

        Each goes to ``%behind``, its step to ``%took``. Every guard is computed first, without
        branches, so that what guards share is computed once.
        """
        head = Block()
        lines: list[str] = []
        found, label = "0", "%0"
        for at, step in enumerate(self.model.steps):
            guard = self._lowering.all(head, (condition for _, condition in step.guards))
            if guard.constant == 0:
                continue
            lines.append(f"  br i1 {guard.name}, label %step{at}, label %skip{at}")
            written, ways = self._step(head, at, step, found)
            lines += [*written, f"skip{at}:"]
            lines.append(f"  %n{at} = phi i64 [ {found}, {label} ], {ways}")
            found, label = f"%n{at}", f"%skip{at}"
        start = f"define internal i64 @successors({self.word} %s, ptr %behind, ptr %took, "
        start += "ptr %notes, i64 %number) {"
        return "\n".join([start, *head.lines, *lines, f"  ret i64 {found}", "}", ""])

    def judge(self) -> str:
        """Return the function that judges the states ``%first`` to ``%end - 1``.

        A witness is looked for until it is found; an invariant that is broken is noted aside.
        """
        head = Block()
        parts: list[str] = []
        invariants = [
            (number, self._lowering.all(head, (case.condition for case in cases)))
            for number, cases in self.claims.of_states(Kind.INVARIANT)
        ]
        good = head.both(value for _, value in invariants)
        parts += [f"  br i1 {good.name}, label %good, label %broken", "broken:"]
        parts += [_note(number, value, "-1") for number, value in invariants]
        parts += ["  br label %good", "good:"]
        for claim, cases in self.claims.of_states(Kind.WITNESS):
            parts += self._witness(head, claim, cases)
        return "\n".join(
            [
                "define void @judge(ptr %directory, i64 %first, i64 %end, ptr %notes) {",
                "  %any = icmp ult i64 %first, %end",
                "  br i1 %any, label %loop, label %done",
                "loop:",
                "  %number = phi i64 [ %first, %0 ], [ %next, %last ]",
                "  %at = call ptr @state_at(ptr %directory, i64 %number)",
                f"  %s = load {self.word}, ptr %at, align 8",
                *head.lines,
                *parts,
                "  br label %last",
                "last:",
                "  %next = add i64 %number, 1",
                "  %more = icmp ult i64 %next, %end",
                "  br i1 %more, label %loop, label %done",
                "done:",
                "  ret void",
                "}",
                "",
            ]
        )

    def _step(self, head: Block, at: int, step: Step, found: str) -> tuple[list[str], str]:
        """Return the blocks of a step that is taken, and what the count is behind each."""
        block = Block(head)
        after = {p: self._lowering.value(block, node) for p, node in step.updates}
        fits = self._fits(block, after)
        lines = [f"step{at}:"]
        ways = f"[ %found{at}, %well{at} ]"
        if fits.constant != 1:
            lines += block.lines
            lines += [f"  br i1 {fits.name}, label %fits{at}, label %bad{at}", f"bad{at}:"]
            lines += [_note(RANGE_NUMBER, truth(0), str(at)), f"  br label %skip{at}"]
            lines.append(f"fits{at}:")
            ways += f", [ {found}, %bad{at} ]"
            block = Block(block)
        behind = self._packed(block, after)
        block.do(f"%slot{at} = getelementptr {self.word}, ptr %behind, i64 {found}")
        block.do(f"store {self.word} {behind}, ptr %slot{at}, align 8")
        block.do(f"%by{at} = getelementptr i16, ptr %took, i64 {found}")
        block.do(f"store i16 {at}, ptr %by{at}, align 2")
        block.do(f"%found{at} = add i64 {found}, 1")
        claims = [
            (number, self._lowering.all(block, conditions, after))
            for number, conditions in self.claims.of_step(step)
        ]
        good = block.both(value for _, value in claims)
        lines += block.lines
        lines += [f"  br i1 {good.name}, label %well{at}, label %wrong{at}", f"wrong{at}:"]
        lines += [_note(number, value, str(at)) for number, value in claims]
        lines += [f"  br label %well{at}", f"well{at}:", f"  br label %skip{at}"]
        return lines, ways

    def _fits(self, block: Block, after: dict[int, Value]) -> Value:
        """Write the test that every number stays in its declared range."""
        tests: list[Value] = []
        for position, value in after.items():
            cell = self.model.cells[position]
            if isinstance(cell.type, Integer):
                tests.append(block.compared(">=", value, number(cell.low)))
                tests.append(block.compared("<=", value, number(cell.high)))
        return block.both(tests)

    def _packed(self, block: Block, after: dict[int, Value]) -> str:
        """Write the state behind a step: the old one with some cells replaced."""
        cleared = fixed = 0
        pieces: list[str] = []
        for position, value in after.items():
            width, shift = self.layout.widths[position], self.layout.shifts[position]
            low = self.layout.lows[position]
            cleared |= ((1 << width) - 1) << shift
            if value.constant is not None:
                fixed |= (value.constant - low & (1 << width) - 1) << shift
            else:
                pieces.append(self._piece(block, value, low, shift))
        state = "%s"
        if cleared:
            kept = ((1 << 64 * self.layout.words) - 1) ^ cleared
            state = block.write(f"and {self.word} %s, {kept}")
        if fixed:
            state = block.write(f"or {self.word} {state}, {fixed}")
        for piece in pieces:
            state = block.write(f"or {self.word} {state}, {piece}")
        return state

    def _piece(self, block: Block, value: Value, low: int, shift: int) -> str:
        """Write a cell's bits at their place."""
        name = value.name
        if value.truth:
            name = block.write(f"zext i1 {name} to {self.word}")
        else:
            if low:
                name = block.write(f"sub i64 {name}, {low}")
            if self.word != "i64":
                name = block.write(f"zext i64 {name} to {self.word}")
        return block.write(f"shl {self.word} {name}, {shift}") if shift else name

    def _witness(self, head: Block, number: int, cases: tuple[Case, ...]) -> list[str]:
        block = Block(head)
        shown = block.either(self._lowering.value(block, c.condition) for c in cases)
        absent = block.negated(shown)
        return [
            f"  %row{number} = getelementptr [2 x i64], ptr %notes, i64 {number}",
            f"  %seen{number} = load i64, ptr %row{number}, align 8",
            f"  %open{number} = icmp slt i64 %seen{number}, 0",
            f"  br i1 %open{number}, label %look{number}, label %past{number}",
            f"look{number}:",
            *block.lines,
            f"  br i1 {absent.name}, label %past{number}, label %shown{number}",
            f"shown{number}:",
            _note(number, truth(0), "-1"),
            f"  br label %past{number}",
            f"past{number}:",
        ]


def _note(claim: int, holds: Value, step: str) -> str:
    """Return the call that notes a property as decided here, unless it holds."""
    return f"  call void @note(ptr %notes, i64 {claim}, i1 {holds.name}, i64 %number, i64 {step})"
