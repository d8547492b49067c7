"""Faults of the tiers: what is stored, loaded back, and taken for good."""

from __future__ import annotations

from fivestate.checker.mutants.mutant import Mutant
from fivestate.checker.mutants.named.amend import amended, fault, without
from fivestate.spec.allocator.effects import arrive_in_cell
from fivestate.spec.allocator.state import Allocator, Group, Prefix, Request
from fivestate.spec.language import each, ite, require
from fivestate.spec.vocabulary import Bytes, Copy, Device, Fit


def _bad_is_good(s: Allocator, p: Prefix, g: Group) -> None:
    _bad_keeps_copy(s, p, g)
    s.device[p, g] = Device.READY
    s.bytes[p, g] = Bytes.WRONG


def _bad_keeps_copy(s: Allocator, p: Prefix, g: Group) -> None:
    s.copy[p, g] = s.copy[p, g]
    s.stored[p, g] = s.stored[p, g]
    s.disk[p, g] = s.disk[p, g]
    s.archived[p, g] = s.archived[p, g]
    s.known[p] = s.known[p]
    for r in each(Request):
        s.fresh[r] = s.fresh[r]


def _misaligned_is_aligned(s: Allocator, p: Prefix, g: Group) -> None:
    wrong = s.stored[p, g] == Bytes.WRONG
    fit = ite(s.copy[p, g] == Copy.OLD, Fit.OLD_LAYOUT, Fit.OK)
    arrive_in_cell(s, p, g, fit, ite(wrong, Bytes.WRONG, Bytes.FIXABLE))


def _old_copy_is_new(s: Allocator, p: Prefix, g: Group) -> None:
    arrive_in_cell(s, p, g, Fit.OK, s.stored[p, g])


def _index_stays_fresh(s: Allocator, p: Prefix, g: Group) -> None:
    fit = ite(s.copy[p, g] == Copy.OLD, Fit.OLD_LAYOUT, Fit.OK)
    for h in each(Group):
        s.fit[p, h] = ite(h == g, fit, s.fit[p, h])


def _repack_any(s: Allocator, p: Prefix, g: Group) -> None:
    require(unfit=s.fit[p, g] != Fit.OK)


def _failed_store_counts(s: Allocator, p: Prefix, g: Group) -> None:
    s.copy[p, g] = Copy.STORED


def _store_counts_unknown(s: Allocator, p: Prefix, g: Group) -> None:
    s.copy[p, g] = Copy.STORED
    s.stored[p, g] = s.bytes[p, g]


def _failed_demotion_counts(s: Allocator, p: Prefix, g: Group) -> None:
    s.disk[p, g] = Copy.STORED


TIERS: tuple[Mutant, ...] = (
    fault(
        "bad load taken as good",
        "A load that does not check is taken for the cell.",
        "vllm-ascend: lookup hit, get failed, treated as success",
        amended("load_bad", _bad_is_good),
    ),
    fault(
        "bad load keeps its copy",
        "A copy that does not check is kept, loaded again, and fails again, for ever.",
        "domain §9; vllm-ascend",
        amended("load_bad", _bad_keeps_copy),
    ),
    fault(
        "misaligned load taken as aligned",
        "A load that lies where no kernel looks is read as it is.",
        "seed 000 §5(4); seed 003 §4.4",
        amended("load_misaligned", _misaligned_is_aligned),
    ),
    fault(
        "old copy loaded as new",
        "A copy that older kernels wrote is read as it is.",
        "seed 000 §5(2); seed 003 §4.2",
        amended("load_good", _old_copy_is_new),
    ),
    fault(
        "loaded entries leave the index",
        "Entries are loaded under an index of those before them, and it counts as in step.",
        "seed 000 §3(4); seed 003 §3.4",
        amended("load_good", _index_stays_fresh),
    ),
    fault(
        "repack repairs the index",
        "A repack makes an index look right that is out of step.",
        "seed 000 §3(4): fitness without precedence",
        amended("repack", _repack_any),
    ),
    fault(
        "index fetched whole",
        "An index is stored and loaded back as a block, of whatever generation it was.",
        "seed 000 §6(2)",
        without("store_begin", "storable"),
    ),
    fault(
        "failed store counts",
        "A store that failed counts as a copy.",
        "domain §9(5)",
        amended("store_bad", _failed_store_counts),
    ),
    fault(
        "store of what is forgotten counts",
        "A store that ends after its prefix was forgotten counts as a copy.",
        "imp #1050",
        amended("store_good", _store_counts_unknown),
    ),
    fault(
        "failed demotion counts",
        "A disk copy that failed counts as one.",
        "domain §9(5)",
        amended("demote_bad", _failed_demotion_counts),
    ),
    fault(
        "dropped under a load",
        "A copy is dropped while a load reads it.",
        "domain §2.2",
        without("drop", "unclaimed"),
    ),
    fault(
        "loads beyond the budget",
        "A load begins though as many as may are under way.",
        "seed 000 §6(1)",
        without("load_begin", "in_budget"),
    ),
    fault(
        "stores beyond the budget",
        "Only loads are counted, and a store takes the bandwidth that a recovery was promised.",
        "seed 000 §6(1)",
        without("store_begin", "in_budget"),
    ),
    fault(
        "host memory full of what the disk lacks",
        "A store takes the last place whose copy could be given up.",
        "seed 002 §9(5)",
        without("store_begin", "clean"),
    ),
    fault(
        "host room made under a load",
        "Room in host memory is made of a copy that a load reads.",
        "domain §2.2",
        without("make_host_room", "unclaimed"),
    ),
)
