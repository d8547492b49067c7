"""The bench of the allocator: turns of a conversation, beside vLLM's cache manager.

``fivestate bench`` finds it by its entry point, and has no more of this package than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fivestate.impl.bench import peer
from fivestate.impl.bench.ours import Ours
from fivestate.impl.bench.workload import (
    ANSWERED_TOKENS,
    ASKED_TOKENS,
    Contender,
    Result,
    converse,
)
from fivestate.spec.reuse.files import preset

GEOMETRY = "dsv4-flash"
LENGTHS_TOKENS = (4_096, 32_768, 131_072)
QUICK_LENGTHS_TOKENS = (4_096,)
TURNS, QUICK_TURNS = 15, 3

NOTES = (
    (
        f"{GEOMETRY}; a turn: {ASKED_TOKENS} tokens asked, {ANSWERED_TOKENS} decoded, the history"
        " before them reused; turn about in one process, median of the turns' CPU time"
    ),
    (
        "turn about, each finds the processor's caches as the other left them: what else runs on "
        "the machine moves the shorter turns, and these are ours"
    ),
    (
        "a turn without hashing: match, allocate with block tables, append token by token, commit "
        "and free; both keep what was computed for the next turn"
    ),
    f"{peer.VLLM.name} does this for one group less: it has none for the draft model here",
)

Said = Mapping[str, object]
"""A row, a note, or what refutes the comparison: what the command line prints."""


def bench(*, quick: bool, tell: Callable[[str], None]) -> Iterator[Said]:
    """Measure, and yield each row as soon as it is known.

    Without vLLM there are no rows, and a note says why.

    Args:
        quick: the shortest prompt, and few turns.
        tell: called with what is being measured now.
    """
    absent = peer.installed()
    if absent is not None:
        yield {"note": f"no rows, for there is no peer: {absent}"}
        return
    yield from ({"note": note} for note in NOTES)
    lengths = QUICK_LENGTHS_TOKENS if quick else LENGTHS_TOKENS
    yield from rows(tell, lengths, QUICK_TURNS if quick else TURNS)


def rows(
    tell: Callable[[str], None],
    lengths: tuple[int, ...],
    turns: int,
    peers: Callable[..., Contender] = peer.VLLM,
) -> Iterator[Said]:
    """Measure conversations of some lengths, and yield two rows for each.

    If ours and the peer reuse different numbers of tokens, nothing compares, and it ends.
    """
    geometry = preset(GEOMETRY)
    for tokens in lengths:
        tell(f"{turns} turns from {tokens:,} tokens on")
        ours, other = Ours(geometry, tokens), peers(geometry, tokens)
        results = converse([ours, other], tokens, turns)
        yield from _rows(tokens, other.name, results[ours.name], results[other.name])


def _rows(tokens: int, name: str, ours: Result, other: Result) -> Iterator[Said]:
    if ours.hit_tokens != other.hit_tokens:
        reused = f"{ours.hit_tokens} tokens here, {other.hit_tokens} by {name}"
        yield {"refuted": f"turns from {tokens:,} tokens on reuse {reused}"}
        return
    what = f"turns from {tokens:,} tokens on, {min(ours.hit_tokens):,} reused"
    yield _row(f"{what}, with hashing", ours.with_hashing, name, other.with_hashing)
    yield _row(f"{what}, without", ours.without_hashing, name, other.without_hashing)


def _row(what: str, took: float, name: str, other: float) -> Said:
    row = {"what": what, "figure": took, "unit": "ms", "peer": name, "peer_figure": other}
    return {**row, "better": "less"}
