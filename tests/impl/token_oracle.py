"""What there is of a prefix, read from memory itself, and what the specification says of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from tests.impl.token_engine import MISPLACED_BYTES, Engine

from fivestate.impl.cache import Cache
from fivestate.impl.chain import Cell, Copied
from fivestate.impl.keys import Prompt
from fivestate.impl.matching import Match
from fivestate.spec.reuse import (
    Abi,
    Asked,
    Availability,
    CacheGroup,
    Consumer,
    Extent,
    Place,
    Shape,
    Span,
    Tier,
    Verdict,
    classify,
)
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, Device

Found = dict[bytes, tuple[int, int, int]]
"""By the bytes of a page: the number of its block, its layout, and how far it is misplaced."""


def known_blocks(cache: Cache, prompt: Prompt) -> int:
    """Count the first blocks of a prompt whose digests are on a known path of the tree."""
    known: set[bytes] = set()
    for node in cache.allocator.nodes():
        if all(step.known for step in node.path()):
            known |= set(node.digests)
    digests = prompt.digests()
    return max((n + 1 for n, digest in enumerate(digests) if digest in known), default=0)


def availability(engine: Engine, prompt: Prompt, blocks: int) -> Availability:
    """Return what memory and tiers have of the first blocks of a prompt.

    A page is known by its bytes alone. Of bookkeeping only what no page can tell is asked: which
    segments share a block with the prompt (what another one has of the same tokens cannot be
    pinned by who leases this), whether a cell is complete, and whether an index is in step.
    """
    allocator, copies = engine.allocator, dict[str, list[Extent]]()
    shared = set(prompt.digests()[:blocks])
    on_the_way = [node for node in allocator.nodes() if shared & set(node.digests)]
    tokens = prompt.tokens(0, blocks * engine.geometry.scheduler_block_size)
    for group in engine.geometry.voting:
        pages = _pages(engine, group, tokens)
        for node in on_the_way:
            cell = node.cells.get(group.state)
            if cell is None or group.name not in cell.sizes:
                continue
            for tier, lot in _lots(engine, cell, group):
                generation = _generation(cell) if tier is Tier.DEVICE else 0
                for extent in _extents(group, lot, pages, tier, generation):
                    copies.setdefault(group.name, []).append(extent)
    return Availability(({name: tuple(found) for name, found in copies.items()},))


def expected(engine: Engine, match: Match) -> Verdict:
    """Return what ``classify`` says of a prompt, from what memory has."""
    cache, prompt = engine.cache, match.prompt
    blocks = known_blocks(cache, prompt)
    step = engine.geometry.scheduler_block_size
    assert match.found.blocks == blocks
    assert 0 <= match.found.tokens - blocks * step < step
    there = availability(engine, prompt, blocks)
    if not match.found.tokens:
        there = Availability(there.ranks, known=False)
    now = str(engine.allocator.layout)
    layouts = {c.abi.layout for of in there.ranks for some in of.values() for c in some}
    reader = Consumer(Abi(layout=now), frozenset((layout, now) for layout in layouts))
    asked = Asked(match.found.tokens, match.length)
    return classify(engine.geometry, asked, there, reader, cache.policy)


def compare(engine: Engine, tokens: list[int]) -> Match:
    """Match a prompt, and check that the answer is the specification's."""
    match = engine.cache.match(tokens)
    right = expected(engine, match)
    assert match.kind is right.kind
    assert match.plan == right.plan
    assert match.numbers == right.numbers
    assert sorted(map(str, match.reasons)) == sorted(map(str, right.reasons)), (match, right)
    return match


def _pages(engine: Engine, group: CacheGroup, tokens: list[int]) -> Found:
    found: Found = {}
    chain = engine.ghost.chain(tokens)
    for layout in range(engine.allocator.layout + 1):
        for number in range(len(tokens) // group.block_size):
            page = engine.ghost.page(group, chain, number, layout).tobytes()
            for offset in (0, MISPLACED_BYTES):
                rolled = page[len(page) - offset :] + page[: len(page) - offset]
                found[rolled] = number, layout, offset
    return found


def _lots(engine: Engine, cell: Cell, group: CacheGroup) -> Iterator[tuple[Tier, torch.Tensor]]:
    if cell.device is Device.READY:
        storage = engine.allocator.pools[group.name].storage
        yield Tier.DEVICE, storage[torch.from_numpy(cell.blocks[group.name])]
    kept: list[tuple[Tier, Copied | None, object]] = [(Tier.HOST, cell.copy, engine.host)]
    kept.append((Tier.DISK, cell.disk, engine.disk))
    for tier, copied, _ in kept:
        memory = engine.host if tier is Tier.HOST else engine.disk
        if copied is not None and copied.complete and memory is not None:
            yield tier, memory.copies[copied.key][group.name]


def _extents(
    group: CacheGroup, lot: torch.Tensor, pages: Found, tier: Tier, generation: int
) -> Iterator[Extent]:
    """Yield runs of pages that are of the prefix, of one layout and place, side by side."""
    run: list[tuple[int, int, int]] = []
    for page in lot.cpu().numpy().view(np.uint8):
        what = pages.get(page.tobytes())
        follows = run and what is not None and what == (run[-1][0] + 1, *run[-1][1:])
        if run and not follows:
            yield _extent(group, run, tier, generation)
            run = []
        if what is not None:
            run.append(what)
    if run:
        yield _extent(group, run, tier, generation)


def _extent(
    group: CacheGroup, run: list[tuple[int, int, int]], tier: Tier, generation: int
) -> Extent:
    (first, layout, offset), last = run[0], run[-1][0]
    size = group.block_size
    start = 0 if group.shape is Shape.POINT else first * size
    name, place = str(layout), None
    if offset % group.page_alignment:
        page = group.page_size_bytes
        place = Place(offset, page, page, 1, 0, offset + page)
    elif offset:
        name = f"{layout}+{offset}"
    return Extent(Span(start, (last + 1) * size), tier, Abi(layout=name), place, generation)


def _generation(cell: Cell) -> int:
    """Return 0 for what is in step: an index of entries that are there, as they are."""
    if cell.state is not INDEXER:
        return 0
    entries = cell.node.cells[COMPRESSED]
    in_step = cell.generation == cell.node.entries_generation
    return 0 if in_step and entries.device is Device.READY else 1
