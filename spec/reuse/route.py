"""Routing: which entries a query reads, with a defined choice among equal scores (路由)."""

from __future__ import annotations

from collections.abc import Sequence

from fivestate.spec.need import visible_entries


def beats(one: int, one_score: int, other: int, other_score: int) -> bool:
    """Of two entries the one with the higher score is chosen first, of equal ones the earlier.

    Ties are real: scores behind a ReLU are often equal zeros, and a tie that the length decides
    makes the routing of a resumed prefix drift from that of step-by-step encoding.
    Source: seed 000 §3(4); domain §1.13.
    """
    return one_score > other_score or (one_score == other_score and one < other)


def route(scores: Sequence[int], query: int, ratio: int, top_k: int) -> tuple[int, ...]:
    """A query reads the ``top_k`` best of the entries that are visible to it.

    ``scores`` has one score an entry, whatever chunk it was made in; entries that hold the query's
    own or later tokens are not visible.
    """
    seen = range(min(visible_entries(query, ratio), len(scores)))
    return tuple(i for i in seen if rank(scores, i, seen) < top_k)


def rank(scores: Sequence[int], entry: int, seen: range) -> int:
    """How many visible entries are chosen before this one."""
    return sum(beats(other, scores[other], entry, scores[entry]) for other in seen)
