"""Batches of lookups, each as tensors and as what the specification is asked."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import torch

from fivestate.kernels.parts.batch import BITS, Columns, Copies, columns
from fivestate.spec.reuse import (
    Abi,
    Asked,
    Availability,
    CacheGroup,
    Consumer,
    Extent,
    Geometry,
    Place,
    Policy,
    Rates,
    Role,
    Span,
    Verdict,
    Why,
    classify,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

ALONE = Policy(Rates(10**9, 10**7, 10**9, 10**6), replay=False)
"""Nothing is computed a second time."""


@dataclass(frozen=True)
class Lookup:
    """One request: what it asks, whether its key is known, and the copies there are."""

    asked: Asked
    copies: dict[str, Extent]
    known: bool = True

    def verdict(self, geometry: Geometry) -> Verdict:
        """Return the verdict of the specification."""
        held = {name: (copy,) for name, copy in self.copies.items()}
        available = Availability((held,), known=self.known)
        return classify(geometry, self.asked, available, Consumer(), ALONE)


Arguments = tuple[Columns, torch.Tensor, torch.Tensor, torch.Tensor, Copies]


def tensors(
    geometry: Geometry, lookups: list[Lookup | None], device: torch.device | str
) -> Arguments:
    """Return the arguments of `classify_batch`; ``None`` is a padding row."""
    groups = geometry.groups
    asked, known = [], []
    spans, abi, generations, places = [], [], [], []
    for lookup in lookups:
        asked.append([lookup.asked.fork, lookup.asked.tokens] if lookup else [-1, 0])
        known.append(int(lookup is not None and lookup.known))
        held = [lookup.copies.get(group.name) if lookup else None for group in groups]
        spans.append([[*copy.span] if copy else [0, 0] for copy in held])
        abi.append([words(copy.abi) if copy else [9] * 4 for copy in held])
        generations.append([copy.generation if copy else 9 for copy in held])
        places.append([where(copy) for copy in held])

    def whole(rows: list[object], dtype: torch.dtype = torch.int32) -> torch.Tensor:
        return torch.tensor(rows, dtype=dtype).to(device)

    copies = Copies(
        whole([*spans]),
        whole([*abi]),
        whole([*generations], torch.int64),
        whole([*places], torch.int64),
    )
    return (
        columns(geometry, device),
        whole([*words(Abi())]),
        whole([*asked]),
        whole([*known]),
        copies,
    )


def words(abi: Abi) -> list[int]:
    """Number what a producer wrote: here every string names a number."""
    return [int(abi.kernel), int(abi.layout), int(abi.dtype.removeprefix("bf")), abi.weights]


def where(copy: Extent | None) -> list[int]:
    """Return a place's words; a place that is not known has no blocks."""
    if copy is None or copy.place is None:
        return [1, 1, 1, 0, 5, 5]
    p = copy.place
    return [p.address, p.stride, p.payload, p.count, p.region_start, p.region_end]


def reasons(geometry: Geometry, verdict: Verdict) -> tuple[int, list[int]]:
    """Return a verdict's reasons as words: the request's own, and each group's."""
    own, of_group = 0, dict.fromkeys((group.name for group in geometry.groups), 0)
    for reason in verdict.reasons:
        if reason.why is Why.NO_GAIN:
            continue
        if reason.group:
            of_group[reason.group] |= BITS[reason.why]
        else:
            own |= BITS[reason.why]
    return own, [*of_group.values()]


def resumable(geometry: Geometry, lookup: Lookup) -> int:
    """Return the last position that can be resumed as it stands, token by token.

    It shares no formula with the points of the specification: a group serves a position iff each
    token that it needs there lies in a whole block of a copy that is fit.
    """
    if not lookup.known:
        return 0
    held = {group.name: tokens(geometry, group, lookup) for group in geometry.voting}
    limit = min(lookup.asked.fork - geometry.draft_lookback, lookup.asked.tokens - 1)
    step = geometry.scheduler_block_size
    best = 0
    for position in range(step, limit + 1, step):
        if all(serves(group, held[group.name], position) for group in geometry.voting):
            best = position
    return best


def serves(group: CacheGroup, held: set[int], position: int) -> bool:
    """Say whether a group has all it needs at a position."""
    if group.recurrent:
        return max(held, default=-1) == position - 1 and 0 in held
    need = group.need(position)
    return all(token in held for token in range(need.start, need.end))


def tokens(geometry: Geometry, group: CacheGroup, lookup: Lookup) -> set[int]:
    """List the tokens of a group that are in whole blocks of a fit copy."""
    copy = lookup.copies.get(group.name)
    owner = geometry.owner(group) if group.state is INDEXER else None
    entries = lookup.copies.get(owner.name) if owner else None
    if copy is None or copy.abi != Abi():
        return set()
    if entries is not None and entries.generation != copy.generation:
        return set()
    if copy.place is not None:
        p, size = copy.place, group.page_alignment
        if p.address % size or p.stride % size:
            return set()
        if not p.region_start <= p.address <= p.last <= p.region_end:
            return set()
    held = set(range(*copy.span))
    if group.recurrent:
        return held
    size = group.block_size
    return {k for k in held if set(range(k // size * size, k // size * size + size)) <= held}


def drawn_group(random: Random, name: str) -> CacheGroup:
    """Draw a group that is no index."""
    ratio = random.choice((1, 2, 4))
    role = random.choice((Role.REQUIRED, Role.REQUIRED, Role.VOLATILE))
    size, window = random.choice((1, 2, 4)), random.choice((1, 2, 4, 5, 6))
    match random.randrange(5):
        case 0:
            return CacheGroup(
                name=name,
                state=COMPRESSED,
                block_size=ratio * random.choice((1, 2)),
                ratio=ratio,
                page_alignment=8,
            )
        case 1:
            return CacheGroup(
                name=name,
                state=WINDOW,
                block_size=size,
                window=window,
                page_alignment=random.choice((1, 8)),
                role=role,
            )
        case 2:
            return CacheGroup(
                name=name, state=WINDOW, block_size=size, window=window, chunked=True, role=role
            )
        case 3:
            return CacheGroup(name=name, state=COMPRESSED, block_size=4, recurrent=True, role=role)
        case _:
            return CacheGroup(
                name=name,
                state=TAIL,
                block_size=random.choice((1, 2)),
                ratio=ratio,
                lookback=random.choice((0, 0, ratio)),
                of="entries",
            )


def drawn_geometry(random: Random) -> Geometry:
    """Draw a geometry: entries, perhaps their index, and up to two other groups."""
    ratio = random.choice((1, 2, 4))
    groups = [CacheGroup(name="entries", state=COMPRESSED, block_size=2 * ratio, ratio=ratio)]
    if random.random() < 0.5:
        role = random.choice((Role.REQUIRED, Role.REBUILDABLE))
        groups.append(
            CacheGroup(
                name="index",
                state=INDEXER,
                block_size=ratio * random.choice((1, 2)),
                ratio=ratio,
                of="entries",
                role=role,
            )
        )
    groups += [drawn_group(random, f"g{n}") for n in range(random.randrange(3))]
    random.shuffle(groups)
    return Geometry("drawn", tuple(groups), draft_lookback=random.choice((0, 0, 1, 3)))


def drawn_copy(random: Random, group: CacheGroup) -> Extent | None:
    """Draw a copy: mostly a whole prefix that is fit."""
    start = random.choice((0, 0, 0, 0, random.randrange(20)))
    end = start + random.choice((0, 3, 8, 16, 24, 24, 32, 32, 35))
    if end == start:
        return None
    abi = Abi()
    if random.random() < 0.1:
        kernel, layout = random.choice("12"), random.choice("12")
        abi = Abi(kernel, layout, random.choice(("bf16", "8")), random.choice((1, 2)))
    place = drawn_place(random, group.page_alignment) if random.random() < 0.3 else None
    return Extent(Span(start, end), abi=abi, place=place, generation=random.random() < 0.1)


def drawn_place(random: Random, size: int) -> Place:
    """Draw a place: mostly aligned and inside its region."""
    address = size * random.randrange(3) + (random.random() < 0.1)
    stride = size * random.choice((1, 2)) + (random.random() < 0.1)
    count, payload = random.choice((1, 3)), random.choice((1, size))
    last = address + (count - 1) * stride + payload
    low, high = address - random.choice((0, 0, 2)), last + random.choice((0, 0, 0, 5, -1))
    return Place(address, stride, payload, count, max(low, 0), high)


def drawn(seed: int) -> tuple[Geometry, list[Lookup | None]]:
    """Draw a geometry and a batch, with padding rows among the others."""
    random = Random(seed)  # noqa: S311 -- drawn cases are no secrets
    geometry = drawn_geometry(random)
    lookups: list[Lookup | None] = []
    for _ in range(random.choice((1, 15, 16, 17, 33))):
        fork = random.choice((0, 1, 8, 16, 24, 24, 32, random.randrange(40)))
        prompt = random.choice((None, max(fork, 1), fork + 5))
        copies = {group.name: drawn_copy(random, group) for group in geometry.groups}
        there = {name: copy for name, copy in copies.items() if copy is not None}
        lookup = Lookup(Asked(fork, prompt), there, random.random() < 0.95)
        lookups.append(None if random.random() < 0.1 else lookup)
    return geometry, lookups
