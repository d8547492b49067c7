"""Values in LLVM's notation: each is computed once, and its bounds are known.

A ``Block`` receives instructions. An instruction that was written before, in this block or in one
that always runs before it, is not written again; what constants or bounds settle is not written
at all. The bounds also show that no number outgrows the 64 bits in which numbers are computed.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from itertools import count, product
from typing import TYPE_CHECKING

from fivestate.spec.language.errors import ModelError
from fivestate.spec.language.ground import compute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1

_COMPARISONS = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul"}


@dataclass(frozen=True, slots=True)
class Value:
    """A register or a constant: a truth value (``i1``) or a number (``i64``) with its bounds."""

    name: str
    low: int
    high: int
    truth: bool = False

    @property
    def constant(self) -> int | None:
        """What it is, where that is settled."""
        return self.low if self.low == self.high else None

    @property
    def type(self) -> str:
        """LLVM's name for its type."""
        return "i1" if self.truth else "i64"


def number(value: int) -> Value:
    """Return a constant number."""
    return Value(str(value), value, value)


def truth(value: int) -> Value:
    """Return a constant truth value."""
    return Value("true" if value else "false", int(bool(value)), int(bool(value)), truth=True)


class Block:
    """Instructions that run one after the other, behind those of ``before``."""

    def __init__(self, before: Block | None = None) -> None:
        self.lines: list[str] = []
        self.names: Iterator[int] = count() if before is None else before.names
        self.written: ChainMap[str, str] = before.written.new_child() if before else ChainMap()
        self.opposites: ChainMap[str, str] = before.opposites.new_child() if before else ChainMap()
        """Of a negation, what it negates."""

    def write(self, instruction: str) -> str:
        """Write an instruction without side effects and return its register."""
        name = self.written.get(instruction)
        if name is None:
            name = self.written[instruction] = f"%v{next(self.names)}"
            self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Write an instruction for its effect."""
        self.lines.append(f"  {instruction}")

    def both(self, parts: Iterable[Value]) -> Value:
        """Return the conjunction."""
        return self._joined("and", parts, settled=0)

    def either(self, parts: Iterable[Value]) -> Value:
        """Return the disjunction."""
        return self._joined("or", parts, settled=1)

    def negated(self, value: Value) -> Value:
        """Return the opposite truth value."""
        if value.constant is not None:
            return truth(1 - value.constant)
        name = self.opposites.get(value.name)
        if name is None:
            name = self.write(f"xor i1 {value.name}, true")
            self.opposites[name] = value.name
        return Value(name, 0, 1, truth=True)

    def compared(self, operator: str, one: Value, other: Value) -> Value:
        """Return whether two values compare so."""
        if one == other:
            return truth(operator in {"==", "<=", ">="})
        if one.constant is not None and other.constant is not None:
            return truth(compute(operator, [one.constant, other.constant]))
        if one.truth and operator in _COMPARISONS:
            same = self.negated(Value(self.write(f"xor i1 {one.name}, {other.name}"), 0, 1, True))
            return same if operator == "==" else self.negated(same)
        if _settled(operator, one, other):
            return truth(1)
        if _settled(_OPPOSITE[operator], one, other):
            return truth(0)
        relation = _COMPARISONS[operator]
        name = self.write(f"icmp {relation} i64 {one.name}, {other.name}")
        return Value(name, 0, 1, truth=True)

    def chosen(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Return ``then`` where ``condition`` is true, else ``otherwise``."""
        if condition.constant is not None:
            return then if condition.constant else otherwise
        if then == otherwise:
            return then
        kind = then.type
        name = self.write(
            f"select i1 {condition.name}, {kind} {then.name}, {kind} {otherwise.name}"
        )
        low, high = min(then.low, otherwise.low), max(then.high, otherwise.high)
        return Value(name, low, high, truth=then.truth)

    def computed(self, operator: str, one: Value, other: Value) -> Value:
        """Return a sum, difference, product, quotient (rounded down), minimum or maximum.

        Raises:
            ModelError: the result may need more than 64 bits, or the divisor may be zero.
        """
        if operator == "//" and other.low <= 0 <= other.high:
            raise ModelError("a divisor may be zero, which the native engine cannot report")
        low, high = _bounds(operator, one, other)
        if low == high:
            return number(low)
        match operator:
            case "min" | "max":
                first = self.compared("<" if operator == "min" else ">", one, other)
                return Value(self.chosen(first, one, other).name, low, high)
            case "//":
                return Value(self._quotient(one, other), low, high)
            case _ if other == number(0) and operator != "*":
                return one
            case _:
                name = self.write(f"{_ARITHMETIC[operator]} i64 {one.name}, {other.name}")
                return Value(name, low, high)

    def _joined(self, operator: str, parts: Iterable[Value], settled: int) -> Value:
        kept = dict.fromkeys(part for part in parts if part.constant != 1 - settled)
        names = {part.name for part in kept}
        if any(p.constant == settled or self.opposites.get(p.name) in names for p in kept):
            return truth(settled)
        total: Value | None = None
        for part in kept:
            if total is None:
                total = part
            else:
                name = self.write(f"{operator} i1 {total.name}, {part.name}")
                total = Value(name, 0, 1, truth=True)
        return truth(1 - settled) if total is None else total

    def _quotient(self, one: Value, other: Value) -> str:
        """Divide and round down; LLVM's own division rounds towards zero."""
        quotient = self.write(f"sdiv i64 {one.name}, {other.name}")
        if one.low >= 0 and other.low > 0:
            return quotient
        back = self.write(f"mul i64 {quotient}, {other.name}")
        rest = self.write(f"sub i64 {one.name}, {back}")
        uneven = self.write(f"icmp ne i64 {rest}, 0")
        signs = self.write(f"xor i64 {rest}, {other.name}")
        apart = self.write(f"icmp slt i64 {signs}, 0")
        rounded = self.write(f"and i1 {uneven}, {apart}")
        less = self.write(f"sext i1 {rounded} to i64")
        return self.write(f"add i64 {quotient}, {less}")


def _settled(operator: str, one: Value, other: Value) -> bool:
    """Say whether the bounds alone make the comparison true."""
    match operator:
        case "<":
            return one.high < other.low
        case "<=":
            return one.high <= other.low
        case ">":
            return one.low > other.high
        case ">=":
            return one.low >= other.high
        case "!=":
            return one.high < other.low or one.low > other.high
        case _:
            return False


def _bounds(operator: str, one: Value, other: Value) -> tuple[int, int]:
    """Return the bounds of a result: each operator takes its extremes at the corners."""
    corners = [
        compute(operator, [a, b]) for a, b in product((one.low, one.high), (other.low, other.high))
    ]
    low, high = min(corners), max(corners)
    if low < LOWEST or high > HIGHEST:
        message = f"a number may range over {low}..{high}, which the native engine cannot hold"
        raise ModelError(message)
    return low, high
