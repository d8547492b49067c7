"""Geometry: the cache groups of one model, and what follows from having them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from fivestate.spec.language import ModelError
from fivestate.spec.reuse.groups import CacheGroup, Role, Shape
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL


@dataclass(frozen=True)
class Geometry:
    """The cache groups of one model.

    Scheme A is the geometry with one COMPRESSED group of ratio 1: no second code path.

    Attributes:
        name: what the command line calls it.
        groups: its groups.
        draft_lookback: tokens before the fork that a drafter has to compute again.
        source: where the figures come from.
    """

    name: str
    groups: tuple[CacheGroup, ...]
    draft_lookback: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        """Check that the groups fit together.

        Raises:
            ModelError: there is no group, two have one name, or a tail or index has no owner.
        """
        if not self.groups:
            raise ModelError(f"geometry {self.name}: groups is empty: at least one is needed")
        if self.draft_lookback < 0:
            message = f"geometry {self.name}: draft_lookback = {self.draft_lookback}"
            raise ModelError(f"{message}: a number of tokens, 0 or more, is allowed")
        names = [group.name for group in self.groups]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"geometry {self.name}: two groups are called {name!r}")
        for group in self.groups:
            if group.state in (TAIL, INDEXER):
                self._owner(group)

    @cached_property
    def voting(self) -> tuple[CacheGroup, ...]:
        """The groups that say where to resume: all but the volatile ones."""
        return tuple(group for group in self.groups if group.role is not Role.VOLATILE)

    @cached_property
    def scheduler_block_size(self) -> int:
        """Tokens to a multiple of which a hit is rounded down: whole blocks in every group."""
        return lcm(*(group.block_size for group in self.voting))

    @cached_property
    def hash_block_size(self) -> int:
        """Tokens that one hash covers: it divides every group's block."""
        return gcd(*(group.block_size for group in self.voting))

    @cached_property
    def window_layers(self) -> int:
        """Layers through which a missing window row spreads when tokens are computed again."""
        return sum(group.layers for group in self.voting if group.shape is Shape.RUN)

    @cached_property
    def widest_window(self) -> int:
        """The widest window of a voting group, in tokens."""
        return max((g.window for g in self.voting if g.shape is Shape.RUN), default=1)

    @property
    def bytes_per_token(self) -> Fraction:
        """Bytes that each further token adds for good, without padding."""
        return sum(
            (
                Fraction(group.layers * group.bytes_per_entry, group.ratio)
                for group in self.voting
                if group.shape is Shape.PREFIX
            ),
            Fraction(0),
        )

    def group(self, name: str) -> CacheGroup:
        """Return a group by name.

        Raises:
            ModelError: there is none.
        """
        for group in self.groups:
            if group.name == name:
                return group
        known = ", ".join(group.name for group in self.groups)
        raise ModelError(f"geometry {self.name} has no group {name!r}; known: {known}")

    def owner(self, group: CacheGroup) -> CacheGroup | None:
        """Return the compressed group from which ``group`` can be made again, if there is one."""
        return self._owner(group) if group.state in (TAIL, INDEXER) else None

    def tails(self, group: CacheGroup) -> Iterator[CacheGroup]:
        """Yield the tails of a compressed group."""
        for other in self.groups:
            if other.state is TAIL and self._owner(other) is group:
                yield other

    def _owner(self, group: CacheGroup) -> CacheGroup:
        entries_of = [g for g in self.groups if g.shape is Shape.PREFIX]
        if group.of:
            chosen = [g for g in entries_of if g.name == group.of and g is not group]
        else:
            chosen = [g for g in entries_of if g.state is COMPRESSED and g.ratio == group.ratio]
        if len(chosen) == 1:
            return chosen[0]
        known = ", ".join(repr(g.name) for g in entries_of if g is not group) or "none there is"
        message = f"geometry {self.name}, group {group.name!r}: of = {group.of!r}"
        raise ModelError(f"{message}: one group that has entries is allowed: {known}")
