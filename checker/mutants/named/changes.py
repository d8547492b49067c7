"""Faults of change: weights, kernels, crashes, graphs and forks."""

from __future__ import annotations

from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.named.amend import amended, fault, without
from fivestate.spec.allocator.changes import survives
from fivestate.spec.allocator.derived import kept, ready
from fivestate.spec.allocator.state import DISK, Allocator, Group, Prefix
from fivestate.spec.language import each, ite
from fivestate.spec.vocabulary import COMPRESSED, Copy, Device, Fit


def _weights_keep_tiers(s: Allocator) -> None:
    for p in each(Prefix):
        s.known[p] = kept(s, p, COMPRESSED)
        for g in each(Group):
            s.copy[p, g] = ite(s.copy[p, g] == Copy.STORING, Copy.NONE, s.copy[p, g])
            s.disk[p, g] = s.disk[p, g]


def _weights_keep_known(s: Allocator) -> None:
    for p in each(Prefix):
        s.known[p] = s.known[p]


def _weights_keep_entries(s: Allocator) -> None:
    for p in each(Prefix):
        s.known[p] = s.known[p] & ready(s, p, COMPRESSED)
        for g in each(Group):
            kept_one = (g == COMPRESSED) & (s.device[p, g] == Device.READY) & s.known[p]
            s.device[p, g] = ite(kept_one, Device.READY, Device.ABSENT)


def _kernels_keep_cells(s: Allocator) -> None:
    for p in each(Prefix):
        for g in each(Group):
            s.fit[p, g] = s.fit[p, g]


def _kernels_keep_copies(s: Allocator) -> None:
    for p in each(Prefix):
        for g in each(Group):
            s.copy[p, g] = s.copy[p, g]
            s.disk[p, g] = s.disk[p, g]


def _kernels_without_precedence(s: Allocator) -> None:
    for p in each(Prefix):
        for g in each(Group):
            s.fit[p, g] = ite(ready(s, p, g), Fit.OLD_LAYOUT, s.fit[p, g])


def _kernels_keep_graph(s: Allocator) -> None:
    for p in each(Prefix):
        s.graph[p] = s.graph[p]


def _crash_keeps_half(s: Allocator) -> None:
    for p in each(Prefix):
        half = s.copy[p, COMPRESSED] == Copy.STORING
        s.known[p] = survives(s, p, COMPRESSED) | (half & ~DISK)
        for g in each(Group):
            there = s.copy[p, g] != Copy.NONE
            s.copy[p, g] = ite(there & ~DISK, Copy.STORED, Copy.NONE)


def _crash_keeps_orphans(s: Allocator) -> None:
    for p in each(Prefix):
        for g in each(Group):
            left = survives(s, p, g)
            s.copy[p, g] = ite(left & ~DISK, s.copy[p, g], Copy.NONE)
            s.disk[p, g] = ite(left, s.disk[p, g], Copy.NONE)


CHANGES: tuple[Mutant, ...] = (
    fault(
        "old weights off the device",
        "Weights change, and copies off the device are kept.",
        "seed 003 §3.1: parameters of the compressor",
        amended("change_weights", _weights_keep_tiers),
    ),
    fault(
        "old weights are known",
        "Weights change, and the hash index is kept: the key has no version in it.",
        "seed 003 §3.1; domain §9(9)",
        amended("change_weights", _weights_keep_known),
    ),
    fault(
        "old compressor weights",
        "Weights change, and the compressed KV of those before is kept.",
        "seed 003 §3.1",
        amended("change_weights", _weights_keep_entries),
    ),
    fault(
        "weights change in use",
        "Weights change while requests read what was computed with those before.",
        "seed 003 §3.1",
        without("change_weights", "quiescent"),
    ),
    fault(
        "old kernels' cells unmarked",
        "Kernels change, and cells on the device keep their mark.",
        "seed 000 §5(2); seed 003 §4.2",
        amended("change_kernels", _kernels_keep_cells),
    ),
    fault(
        "old kernels' copies unmarked",
        "Kernels change, and copies off the device keep their mark.",
        "seed 000 §5(2); seed 003 §4.2",
        amended("change_kernels", _kernels_keep_copies),
    ),
    fault(
        "layout hides the step",
        "Kernels change, and an index out of step is marked as of an old layout instead.",
        "seed 000 §3(4): fitness without precedence",
        amended("change_kernels", _kernels_without_precedence),
    ),
    fault(
        "graph of old kernels",
        "Kernels change, and what was captured with those before is kept.",
        "aiter #4587; sparkinfer #150",
        amended("change_kernels", _kernels_keep_graph),
    ),
    fault(
        "crash keeps half a copy",
        "A copy that was being stored counts as stored after a crash.",
        "domain §9(5)",
        amended("crash", _crash_keeps_half),
    ),
    fault(
        "crash keeps orphans",
        "After a crash copies are kept whose entries are gone.",
        "domain §9(5)",
        amended("crash", _crash_keeps_orphans),
    ),
    fault(
        "graph names an evicted block",
        "A cell is evicted that a captured graph reads.",
        "seed 003 §5.4; aiter #4587; sparkinfer #150",
        without("evict", "uncaptured"),
    ),
    fault(
        "graph replayed after its end",
        "A graph is replayed that has been given up.",
        "seed 000 §6(4)",
        without("replay", "captured"),
    ),
    fault(
        "replayed on a dirty null block",
        "A graph is replayed while the null block has something in it.",
        "vLLM #57158",
        without("replay", "null_clean"),
    ),
    fault(
        "graph ends under a replay",
        "A graph is given up while it is replayed.",
        "aiter #4587",
        without("invalidate", "quiet"),
    ),
    fault(
        "tail written in place",
        "A forked request writes into the tail that others still read.",
        "seed 000 §1; domain §1.5",
        without("append", "own"),
    ),
    fault(
        "index made anew under a lease",
        "An index is made anew while a request reads it.",
        "seed 003 §3.4",
        without("reindex", "unleased"),
    ),
)
