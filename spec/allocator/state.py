"""The allocator's variables and the constants that a model fixes.

There are no counters for time: whether something is *still the one I saw* is a boolean, set
when it is seen and cleared by whatever changes it (D-7).
"""

from __future__ import annotations

from fivestate.spec.language import (
    BOOL,
    NOTHING,
    Array,
    Relation,
    Scalar,
    Size,
    Sort,
    State,
    Switch,
    Table,
    maybe,
    within,
)
from fivestate.spec.vocabulary import Bytes, CacheState, Copy, Device, Fit, Phase


class Prefix(Sort, letter="p"):
    """A token prefix that requests may share (前缀)."""


class Group(Sort, letter="g", of=CacheState):
    """A cache group: layers whose cache has one shape, named by its state (缓存组)."""


class Request(Sort, letter="r"):
    """A request that wants to run on a prefix (请求)."""


CAP = Table("cap", "frames in a group's pool", Group, low=1, high=8)
PRIVATE = Table("private", "frames of a group that a request in use has to itself", Group, high=4)
SLOTS = Size("slots", "requests that may be in use at once", 1, 8)
FEEDS = Relation("feeds", "h is read when g is made: feeds[h, g]", Group, Group)
HASH_ONLY = Switch("hash_only", "a hash hit counts as a hit; no cell is looked at")

ABORTS = Switch("aborts", "requests may be aborted in any phase")
STORES = Switch("stores", "there is a tier off the device")
DISK = Switch("disk", "that tier is host memory, and there is a disk behind it")
STORABLE = Relation("storable", "cells of the group may be stored", Group)
HOST = Table(
    "host", "copies of a group that fit into the tier next to the device", Group, low=1, high=8
)
BUDGET = Size("budget", "transfers that may be under way at once", 1, 8)
MISFITS = Switch("misfits", "loads may end misaligned")
LAYOUTS = Switch("layouts", "kernels may change")
WEIGHTS = Switch("weights", "weights may change")
CRASHES = Switch("crashes", "the process may crash and restart")
GRAPHS = Switch("graphs", "steps may be captured into graphs")
FORKS = Switch("forks", "a running request may be forked")
REINDEXES = Switch("reindexes", "an index may be rebuilt in place")
PREFETCHES = Switch("prefetches", "a prefix may be recovered before anybody asks for it")
RESERVE = Table("reserve", "frames that prefetching leaves to requests", Group, high=8)


class Allocator(State):
    """What an allocator knows, and the ghosts that say whether it knows enough."""

    known = Array("the prefix is in the hash index", Prefix, of=BOOL, initial=False)
    device = Array("the device copy", Prefix, Group, of=Device, initial=Device.ABSENT)
    fit = Array(
        *("what keeps it from being read as it is", Prefix, Group),
        of=Fit,
        initial=Fit.OK,
        given=STORES | LAYOUTS,
    )
    copy = Array(
        *("the copy off the device", Prefix, Group),
        of=Copy,
        initial=Copy.NONE,
        given=STORES,
    )
    disk = Array(
        *("the copy on disk, behind host memory", Prefix, Group),
        of=Copy,
        initial=Copy.NONE,
        given=DISK,
    )
    prefetching = Array(
        *("somebody recovers it for nobody", Prefix),
        of=BOOL,
        initial=False,
        given=PREFETCHES,
    )
    graph = Array(
        *("a captured graph reads its cells", Prefix), of=BOOL, initial=False, given=GRAPHS
    )
    dirty = Scalar("something was written to the null block", of=BOOL, initial=False, given=GRAPHS)

    free = Array("frames nobody has", Group, of=within(0, CAP), initial=CAP)
    doomed = Array("frames withheld: a transfer may fly", Group, of=within(0, CAP), initial=0)

    phase = Array("what the request is doing", Request, of=Phase, initial=Phase.IDLE)
    want = Array("its prefix", Request, of=maybe(Prefix), initial=NOTHING)
    fresh = Array("its verdict still stands", Request, of=BOOL, initial=False)
    ahead = Array("q has waited longer than r", Request, Request, of=BOOL, initial=False)
    slid = Array("its window has moved past the prefix", Request, of=BOOL, initial=False)
    copied = Array(*("it has a tail of its own", Request), of=BOOL, initial=False, given=FORKS)
    grown = Array(
        *("it has written behind the prefix", Request), of=BOOL, initial=False, given=FORKS
    )

    bytes = Array(
        *("what a kernel would see in the cell", Prefix, Group),
        of=Bytes,
        initial=Bytes.WRONG,
        ghost=True,
    )
    stored = Array(
        *("what the copy would give", Prefix, Group),
        of=Bytes,
        initial=Bytes.WRONG,
        ghost=True,
        given=STORES,
    )
    archived = Array(
        *("what the copy on disk would give", Prefix, Group),
        of=Bytes,
        initial=Bytes.WRONG,
        ghost=True,
        given=DISK,
    )
    same = Array(
        *("the graph's addresses are still its cells'", Prefix),
        of=BOOL,
        initial=False,
        ghost=True,
        given=GRAPHS,
    )
    late = Array("transfers still flying", Group, of=within(0, CAP), initial=0)
