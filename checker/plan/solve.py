"""Solving: block sizes that meet every wish, or exactly the wishes that conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fivestate.checker.plan.arithmetic import Formula, z3
from fivestate.checker.plan.figures import Option, options
from fivestate.checker.plan.wishes import Wish, Wishes
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import Role, Shape
from fivestate.spec.vocabulary import TAIL

NANOSECONDS = 1_000_000_000
_LIMITS = {"shortest_prompt", "memory", "load_back", "ttft"}
_KERNEL_SHAPES = {Shape.PREFIX, Shape.RUN, Shape.CHUNK}


@dataclass(frozen=True)
class Conflict:
    """Wishes that cannot be met together, though all but any one of them can.

    Attributes:
        wishes: the wishes.
        because: the reason in words.
    """

    wishes: tuple[Wish, ...]
    because: str


class Problem:
    """Which block size each group gets, as a formula; each wish is an assumption of its own."""

    def __init__(self, geometry: Geometry, wishes: Wishes) -> None:
        self.geometry, self.wishes = geometry, wishes
        self.options = options(geometry, wishes.setting, wishes.limits)
        # One of its own: how long z3 takes hangs on what else its context has been asked.
        self.context = z3.Context()
        self.step = z3.Int("step", self.context)
        self.chosen = [
            [
                z3.Bool(f"{each.group.name}={each.group.block_size}", self.context)
                for each in of_group
            ]
            for of_group in self.options
        ]
        self.wanted = {
            z3.Bool(f"wish {number}", self.context): wish
            for number, wish in enumerate(wishes.limits)
        }

    def solve(self) -> tuple[Option, ...] | Conflict:
        """Return the block sizes of the finest plan, or a smallest conflict."""
        solver = z3.Solver(ctx=self.context)
        solver.add(*self._rules())
        core = self._core(solver, list(self.wanted))
        if core is not None:
            conflict = tuple(self.wanted[name] for name in core)
            return Conflict(conflict, self._because(core))
        return self._finest(list(self.wanted))

    def _rules(self) -> Iterator[Formula]:
        yield self.step >= 1
        for flags, of_group in zip(self.chosen, self.options, strict=True):
            yield z3.PbEq([(flag, 1) for flag in flags], 1)
            multiple = z3.Int(f"multiple of {of_group[0].group.name}", self.context)
            for flag, each in zip(flags, of_group, strict=True):
                if each.group.role is not Role.VOLATILE:
                    yield z3.Implies(flag, self.step == each.tokens * multiple)
        for name, wish in self.wanted.items():
            met = z3.And(z3.BoolVal(True, self.context), *self._meets(wish))  # maybe of nothing
            yield z3.Implies(name, met)

    def _meets(self, wish: Wish) -> Iterator[Formula]:
        setting = self.wishes.setting
        match wish.name:
            case "shortest_prompt":
                yield self.step + max(self.geometry.draft_lookback, 1) <= wish.value
            case "memory":
                yield self._total(_bytes_of("memory")) <= wish.value
            case "load_back":
                yield (
                    self._total(_bytes_of("load_back")) * NANOSECONDS
                    <= wish.value * setting.bandwidth
                )
            case "ttft":
                yield self._first_token(setting.share) <= wish.value * setting.prefill
            case _:
                for flags, of_group in zip(self.chosen, self.options, strict=True):
                    for flag, each in zip(flags, of_group, strict=True):
                        if not allows(wish, each):
                            yield z3.Not(flag)

    def _first_token(self, share: int) -> Formula:
        """Time to first token of the slowest of ``share`` percent, times the prefill rate."""
        setting = self.wishes.setting
        rounded = (self.step - 1 + setting.question) * NANOSECONDS
        if share <= setting.hits:
            return rounded
        if share <= setting.hits + setting.loads:
            per_byte = NANOSECONDS * setting.prefill
            return rounded + self._total(_bytes_of("load_back")) * per_byte / setting.bandwidth
        return z3.IntVal((setting.context + setting.question) * NANOSECONDS, self.context)

    def _core(self, solver: Formula, wanted: list[Formula]) -> list[Formula] | None:
        """Return a conflict from which nothing can be left out, or nothing if there is none."""
        if solver.check(*wanted) == z3.sat:
            return None
        core = [name for name in wanted if name in set(solver.unsat_core())]
        for name in list(core):
            rest = [other for other in core if not other.eq(name)]
            if solver.check(*rest) != z3.sat:
                core = rest
        return core

    def _finest(self, wanted: Iterable[Formula]) -> tuple[Option, ...]:
        """Return the sizes with the finest hits, the fewest changes and the least padding."""
        model = self._least(wanted, self.step, self._changes(), self._padding())
        return tuple(
            next(e for flag, e in zip(flags, group, strict=True) if z3.is_true(model.eval(flag)))
            for flags, group in zip(self.chosen, self.options, strict=True)
        )

    def _least(self, wanted: Iterable[Formula], *figures: Formula) -> Formula:
        optimize = z3.Optimize(ctx=self.context)
        optimize.add(*self._rules(), *wanted)
        for figure in figures:
            optimize.minimize(figure)
        optimize.check()
        return optimize.model()

    def _changes(self) -> Formula:
        own = {group.name: group.block_size for group in self.geometry.groups}
        return self._total(lambda each: int(each.group.block_size != own[each.group.name]))

    def _padding(self) -> Formula:
        """Padding of each page in parts of a million, all groups together."""
        return self._total(lambda e: e.group.padding_bytes * 1_000_000 // e.group.page_size_bytes)

    def _total(self, figure: Callable[[Option], int]) -> Formula:
        return z3.Sum(
            [
                z3.If(flag, figure(each), 0)
                for flags, of_group in zip(self.chosen, self.options, strict=True)
                for flag, each in zip(flags, of_group, strict=True)
            ]
        )

    def _because(self, core: list[Formula]) -> str:
        limits = [name for name in core if self.wanted[name].name in _LIMITS]
        if not limits:
            return "no block sizes meet all of them"
        limit, rest = limits[0], [name for name in core if not name.eq(limits[0])]
        wish = self.wanted[limit]
        if wish.name == "shortest_prompt":
            return self._coarsest([self.wanted[name] for name in rest])
        setting = self.wishes.setting
        if wish.name == "ttft":
            time = self._first_token(setting.share)
            least = self._least(rest, time).eval(time).as_long() // setting.prefill
            return f"no plan needs less than {least / 10**6:,.1f} ms to the first token"
        total = self._total(_bytes_of(wish.name))
        least = self._least(rest, total).eval(total).as_long()
        if wish.name == "memory":
            return f"no plan needs less than {least:,} bytes"
        load_ms = least * 1_000 / setting.bandwidth
        return f"no plan loads less than {least:,} bytes, {load_ms:,.1f} ms"

    def _coarsest(self, others: list[Wish]) -> str:
        """Say which group's block is the longest, however small the wishes let it be."""
        smallest = (
            min(each.tokens for each in of_group if all(allows(wish, each) for wish in others))
            for of_group in self.options
            if of_group[0].group.role is not Role.VOLATILE
        )
        tokens, name = max(zip(smallest, (g.name for g in self.geometry.voting), strict=True))
        ratio = self.geometry.group(name).ratio
        entries = f" ({tokens // ratio:,} entries of {ratio} tokens each)" if ratio > 1 else ""
        return (
            f"one block of {name} covers {tokens:,} tokens{entries}, so no prompt under "
            f"{tokens + max(self.geometry.draft_lookback, 1):,} tokens can ever hit"
        )


def _bytes_of(name: str) -> Callable[[Option], int]:
    if name == "memory":
        return lambda each: each.pool_bytes
    return lambda each: each.load_bytes


def allows(wish: Wish, each: Option) -> bool:
    """Say whether a block size meets a wish that is about block sizes one by one."""
    group = each.group
    if wish.group not in {"", group.name}:
        return True
    match wish.name:
        case "block":
            return group.block_size == wish.value
        case "kernel_block":
            paged = group.shape in _KERNEL_SHAPES and group.state is not TAIL
            return not paged or group.entries_per_block % wish.value == 0
        case "padding":
            return group.padding_bytes * 100 <= wish.value * group.page_size_bytes
        case _:
            return True
