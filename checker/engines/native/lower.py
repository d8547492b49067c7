"""Ground trees become values: the native reading of the operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fivestate.checker.engines.native.values import Block, Value, number, truth
from fivestate.spec.language.trees import Apply, Boolean, Cell, Literal, Node

if TYPE_CHECKING:
    from fivestate.checker.engines.native.pack import Layout

After = Mapping[int, Value]
NOTHING: After = {}

Test = tuple[int, int]
"""A mask and a value: the test that the packed state, masked, is that value."""


class Lowering:
    """Writes trees over the cells of one packed state, the register ``%s``.

    Args:
        layout: where the cells lie.
        truths: whether each cell holds a truth value.
        word: LLVM's type of a packed state.
    """

    def __init__(self, layout: Layout, truths: list[bool], word: str) -> None:
        self.layout, self.truths, self.word = layout, truths, word

    def value(self, block: Block, node: Node, after: After = NOTHING) -> Value:
        """Write ``node`` into ``block``.

        Args:
            block: where it is wanted.
            node: a ground tree.
            after: in a step property, the values of the cells that the step may write.
        """
        match node:
            case Literal(value, Boolean()):
                return truth(value)
            case Literal(value):
                return number(value)
            case Cell(position, _, True) if position in after:
                return after[position]
            case Cell(position):
                return self.cell(block, position)
            case Apply("and", arguments):
                return self.all(block, arguments, after)
            case Apply("or", arguments):
                return block.either(self._until(1, block, arguments, after))
            case Apply("implies", (condition, consequence)):
                then = self.value(block, consequence, after)
                if then.constant == 1:
                    return then
                return block.either([block.negated(self.value(block, condition, after)), then])
            case Apply("ite", (condition, then, otherwise)):
                chosen = self.value(block, condition, after)
                if chosen.constant is not None:
                    return self.value(block, then if chosen.constant else otherwise, after)
                sides = self.value(block, then, after), self.value(block, otherwise, after)
                return block.chosen(chosen, *sides)
            case Apply("==" | "!=" as operator, (Cell(one), Cell(other))) if one == other and (
                one not in after
            ):
                return truth(operator == "==")
            case Apply("==" | "!=" as operator, (one, other)):
                test = self._test(
                    node if operator == "==" else Apply("==", (one, other), node.type)
                )
                if test is None:
                    sides = self.value(block, one, after), self.value(block, other, after)
                    return block.compared(operator, *sides)
                met = self._met(block, *test)
                return met if operator == "==" else block.negated(met)
            case Apply(operator, arguments):
                return _applied(block, operator, [self.value(block, a, after) for a in arguments])
            case _:
                message = f"{type(node).__name__} is not ground"
                raise ValueError(message)

    def all(self, block: Block, conditions: Iterable[Node], after: After = NOTHING) -> Value:
        """Write a conjunction; what it says of single cells becomes one test of the state."""
        mask = wanted = 0
        others: list[Node] = []
        for condition in _conjuncts(conditions):
            test = self._test(condition)
            if test is None:
                others.append(condition)
            elif (test[1] ^ wanted) & test[0] & mask:
                return truth(0)
            else:
                mask, wanted = mask | test[0], wanted | test[1]
        tests = [self._met(block, mask, wanted)] if mask else []
        return block.both([*tests, *self._until(0, block, others, after)])

    def _until(
        self,
        settled: int,
        block: Block,
        nodes: Iterable[Node],
        after: After,
    ) -> list[Value]:
        """Write values up to the first that is constant and ``settled``."""
        values: list[Value] = []
        for node in nodes:
            values.append(self.value(block, node, after))
            if values[-1].constant == settled:
                break
        return values

    def cell(self, block: Block, position: int) -> Value:
        """Write what unpacks a cell."""
        layout = self.layout
        low, width = layout.lows[position], layout.widths[position]
        if not width:
            return truth(low) if self.truths[position] else number(low)
        name = "%s"
        if layout.shifts[position]:
            name = block.write(f"lshr {self.word} {name}, {layout.shifts[position]}")
        if self.truths[position]:
            return Value(block.write(f"trunc {self.word} {name} to i1"), 0, 1, truth=True)
        if self.word != "i64":
            name = block.write(f"trunc {self.word} {name} to i64")
        if width < 64:
            name = block.write(f"and i64 {name}, {(1 << width) - 1}")
        bits = Value(name, 0, (1 << width) - 1)
        shifted = block.computed("+", bits, number(low))
        return Value(shifted.name, low, layout.highs[position])

    def _test(self, condition: Node) -> Test | None:
        """Return the test of the packed state that says the same, if there is one."""
        match condition:
            case Cell(position, Boolean(), False):
                return self._bits(position, 1)
            case Apply("not", (Cell(position, Boolean(), False),)):
                return self._bits(position, 0)
            case Apply("==", (Cell(position, _, False), Literal(value))):
                return self._bits(position, value)
            case Apply("==", (Literal(value), Cell(position, _, False))):
                return self._bits(position, value)
            case _:
                return None

    def _bits(self, position: int, value: int) -> Test | None:
        width, shift = self.layout.widths[position], self.layout.shifts[position]
        if not self.layout.lows[position] <= value <= self.layout.highs[position]:
            return None
        return ((1 << width) - 1) << shift, (value - self.layout.lows[position]) << shift

    def _met(self, block: Block, mask: int, wanted: int) -> Value:
        if not mask:
            return truth(1)
        bits = block.write(f"and {self.word} %s, {mask}")
        return Value(block.write(f"icmp eq {self.word} {bits}, {wanted}"), 0, 1, truth=True)


def _conjuncts(conditions: Iterable[Node]) -> Iterable[Node]:
    for condition in conditions:
        match condition:
            case Apply("and", arguments):
                yield from _conjuncts(arguments)
            case _:
                yield condition


def _applied(block: Block, operator: str, values: list[Value]) -> Value:
    match operator, values:
        case "not", [value]:
            return block.negated(value)
        case "just", [value]:
            return block.computed("+", value, number(1))
        case (("<" | "<=" | ">" | ">="), [one, other]):
            return block.compared(operator, one, other)
        case _:
            total = values[0]
            for value in values[1:]:
                total = block.computed(operator, total, value)
            return total
