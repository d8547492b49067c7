"""What attention reads, enumerated token by token: an oracle for the theory of reuse.

It shares no formula with the specification: it asks of each token whether it is read, of each
block whether it is whole, and of each replayed row whether it is right.
"""

from __future__ import annotations

from functools import cache

from tests.reuse_examples import Example, Part

from fivestate.spec.reuse import CacheGroup, Extent, Geometry, Role, Tier
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW


@cache
def reads(group: CacheGroup, position: int) -> set[int]:
    """List the tokens whose rows or entries the query at ``position`` finds in the cache."""
    before = range(position)
    if group.state is WINDOW and group.chunked:
        return {k for k in before if k // group.window == position // group.window}
    if group.state is WINDOW:
        return {k for k in before if len(range(k, position + 1)) <= group.window}
    if group.state is TAIL:
        unfolded = [i for i in range(position + 9) if (i + 1) * group.ratio > position]
        rows = {
            row
            for i in unfolded
            for row in range(i * group.ratio - group.lookback, (i + 1) * group.ratio)
        }
        return {row for row in rows if row in before}
    if group.recurrent:
        return set(before)
    whole = [i for i in before if all(k in before for k in entry(group, i))]
    return {k for i in whole for k in entry(group, i)}


def entry(group: CacheGroup, number: int) -> range:
    """List the tokens of one entry."""
    return range(number * group.ratio, (number + 1) * group.ratio)


@cache
def whole(copies: tuple[Extent, ...], tier: Tier, size: int) -> frozenset[int]:
    """List the tokens that are in a block which is whole in one tier."""
    tokens = {k for c in copies if c.tier is tier for k in range(c.span.start, c.span.end)}
    blocks = {k // size * size for k in tokens}
    full = [b for b in blocks if all(k in tokens for k in range(b, b + size))]
    return frozenset(k for b in full for k in range(b, b + size))


def kept(part: Part, *tiers: Tier) -> frozenset[int]:
    """List the tokens of a group that some of the tiers have."""
    size = part.group.block_size
    return frozenset().union(*(whole(part.copies, tier, size) for tier in tiers))


def there(part: Part, position: int, *tiers: Tier) -> bool:
    """Say whether a group has all it needs at a position in these tiers."""
    if part.group.recurrent:
        found = [c for c in part.copies if c.span.end == position and c.tier in tiers]
        return position == 0 or bool(found)
    return reads(part.group, position) <= kept(part, *tiers)


def granularity(shape: Geometry) -> int:
    """Return the smallest number of tokens that is whole blocks in every group."""
    sizes = [group.block_size for group in shape.groups]
    return next(n for n in range(1, 10_000) if all(n % size == 0 for size in sizes))


def candidates(example: Example) -> list[int]:
    """List the positions that can be resumed as far as whole blocks and the prompt's end go."""
    last = example.asked.tokens - 1
    reach = min(example.asked.fork - example.geometry.draft_lookback, last)
    step = granularity(example.geometry)
    return [p for p in range(reach + 1) if p % step == 0]


def oracle_usable(example: Example) -> int:
    """Return the longest prefix that can be used as it stands."""
    return max(
        (
            p
            for p in candidates(example)
            if all(there(part, p, Tier.DEVICE) for part in example.parts)
        ),
        default=0,
    )


def oracle_time(example: Example, position: int) -> int | None:
    """Return the nanoseconds to the fork over ``position``, or nothing where there is no way."""
    times: list[dict[tuple[str, int], int]] = [{} for _ in example.ranks]
    first_row: int | None = None
    for part in example.parts:
        group = part.group
        lost = lost_tokens(part, position)
        note_moves(part, reads(group, position) - lost, position, times[part.rank])
        if not lost:
            continue
        if refolds(example, part, lost) or (
            group.state is INDEXER and group.role is Role.REBUILDABLE
        ):
            rows = len(lost) // group.ratio * group.layers * group.bytes_per_entry
            times[part.rank][f"{group.name} again", 0] = rows
        elif group.role is Role.REBUILDABLE and example.policy.replay:
            first_row = min(lost) if first_row is None else min(first_row, *lost)
        else:
            return None
    replayed = 0
    if first_row is not None:
        start, needed = oracle_replay(example, first_row, position)
        replayed = position - start
        for part in needed:
            note_moves(part, reads(part.group, start), start, times[part.rank])
    tokens = replayed + example.asked.target - position
    return max(sum(of_rank.values()) for of_rank in times) + tokens * 1000


def lost_tokens(part: Part, position: int) -> set[int]:
    """List the tokens a group needs and no copy of it has."""
    wanted = reads(part.group, position)
    if part.group.recurrent:
        return set() if there(part, position, *Tier) else wanted
    return wanted - kept(part, *Tier)


def note_moves(
    part: Part, tokens: set[int], position: int, times: dict[tuple[str, int], int]
) -> None:
    """Note for each entry, row or snapshot the time it takes to bring it to the device."""
    group, price = part.group, {Tier.DEVICE: 0, Tier.HOST: 1, Tier.DISK: 100}
    size = group.layers * group.bytes_per_entry
    if group.recurrent:
        tiers = [c.tier for c in part.copies if c.span.end == position]
        if tokens and tiers:
            times[group.name, -position] = price[min(tiers)] * size
        return
    width = group.ratio if group.state in (COMPRESSED, INDEXER) else 1
    for token in tokens:
        tier = next(t for t in Tier if token in kept(part, t))
        times[group.name, token // width] = price[tier] * size


def refolds(example: Example, part: Part, lost: set[int]) -> bool:
    """Say whether resident raw rows give every lost entry again."""
    same_rank = [other for other in example.parts if other.rank == part.rank]
    tails = [other for other in same_rank if other.group.state is TAIL]
    if part.group.state is not COMPRESSED or part.group.recurrent or not tails:
        return False
    ratio, lookback = part.group.ratio, tails[0].group.lookback
    rows = {
        row
        for number in {token // ratio for token in lost}
        for row in range(number * ratio - lookback, (number + 1) * ratio)
        if row >= 0
    }
    return rows <= kept(tails[0], Tier.DEVICE)


def oracle_replay(example: Example, first_row: int, position: int) -> tuple[int, list[Part]]:
    """Return the latest start of a replay that gives the rows wanted, and what it starts from."""
    rooted = [part for part in example.parts if part.group.chunked or part.group.recurrent]
    windows = [part for part in example.parts if part.group.state is WINDOW]
    sliding = [part for part in windows if not part.group.chunked]
    layers = [part.group for part in sliding if part.rank == 0]
    starts: list[tuple[int, int, list[Part]]] = []
    for start in range(first_row + 1):
        if not all(there(part, start, *Tier) for part in rooted):
            continue
        if all(there(part, start, *Tier) for part in sliding):
            starts.append((start, 2, [*rooted, *sliding]))
        if all(right_rows(layers, start, k, position) for k in range(first_row, position)):
            starts.append((start, 1, rooted))
        wide = max([group.window for group in layers], default=1)
        if example.policy.approximate and start <= max(position - wide, 0):
            starts.append((start, 0, rooted))
    start, _, needed = max(starts, key=lambda item: item[:2])
    return start, needed


def right_rows(sliding: list[CacheGroup], start: int, row: int, position: int) -> bool:
    """Say whether a row is right in every layer when a replay starts without a window."""
    right = set(range(start, position))
    for group in sliding:
        for _ in range(group.layers):
            if row not in right:
                return False
            right = {
                k
                for k in right
                if all(j in right for j in range(max(k - group.window + 1, 0), k + 1))
            }
    return row in range(start, position)
