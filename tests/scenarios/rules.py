"""Rules that engines had and should not have had: each stands in for the right one of its name.

Ghosts are written here as nature would: what a kernel would see, which transfer still flies.
"""

from __future__ import annotations

from fivestate.spec.allocator.derived import demand, first, missing, waiting
from fivestate.spec.allocator.effects import (
    leave,
    stop_waiting,
    take_frame,
)
from fivestate.spec.allocator.state import (
    ABORTS,
    GRAPHS,
    PRIVATE,
    STORES,
    Allocator,
    Group,
    Prefix,
    Request,
)
from fivestate.spec.language import EVERY, action, each, ite, require
from fivestate.spec.need import window_start
from fivestate.spec.sequence import SPAN, Sequence
from fivestate.spec.vocabulary import WINDOW, Bytes, Copy, Device, Fit, Phase


@action("A-44", state="g", given=STORES)
def load_bad(s: Allocator, p: Prefix, g: Group) -> None:
    """What was written before the load failed is taken for the cell (B18)."""
    require(loading=s.device[p, g] == Device.LOADING)
    s.device[p, g] = Device.READY
    s.fit[p, g] = Fit.OK
    s.bytes[p, g] = Bytes.WRONG


@action("A-47", state="g", given=STORES)
def store_bad(s: Allocator, p: Prefix, g: Group) -> None:
    """The return code of a failed store is not looked at (B41)."""
    require(storing=s.copy[p, g] == Copy.STORING)
    s.copy[p, g] = Copy.STORED


@action("A-26", state="g")
def evict(s: Allocator, p: Prefix, g: Group) -> None:
    """A duplicate's frame is free at once, and a load into it flies on (B43)."""
    require(there=s.device[p, g] != Device.ABSENT)
    take_frame(s, p, g, s.known[p])
    s.late[g] = s.late[g] + ite(s.device[p, g] == Device.LOADING, 1, 0)


@action("A-34", state=EVERY, given=ABORTS)
def abort_step(s: Allocator, r: Request) -> None:
    """The frames of an aborted request are free, and its next step still writes to them (B47)."""
    require(running=s.phase[r] == Phase.RUNNING)
    leave(s, r)
    for g in each(Group):
        s.late[g] = s.late[g] + PRIVATE[g]


@action("A-73", state=EVERY, given=GRAPHS)
def replay(s: Allocator, r: Request, p: Prefix) -> None:
    """Padding rows of a replay are written like real ones, and land in a live cell (B53)."""
    require(leased=s.phase[r] == Phase.LEASED, mine=s.want[r] == p, captured=s.graph[p])
    s.phase[r] = Phase.REPLAYING
    s.bytes[p, WINDOW] = Bytes.WRONG


@action("A-13", state=EVERY)
def admit(s: Allocator, r: Request, p: Prefix) -> None:
    """Whoever has waited long enough starts with what happens to be free (B60)."""
    require(waiting=waiting(s, r), mine=s.want[r] == p, first=first(s, r))
    s.phase[r] = Phase.RECOVERING
    stop_waiting(s, r)
    for g in each(Group):
        fits = s.free[g] >= demand(s, p, g)
        s.free[g] = s.free[g] - ite(fits, demand(s, p, g), PRIVATE[g])
        claimed = fits & (missing(s, p, g) == 1)
        s.device[p, g] = ite(claimed, Device.RESERVED, s.device[p, g])


@action("A-18", state=EVERY)
def finish(s: Allocator, r: Request) -> None:
    """The memory behind a request's window is unmapped, and the cell stays in the table (B83)."""
    require(running=s.phase[r] == Phase.RUNNING)
    leave(s, r)
    for p in each(Prefix):
        s.bytes[p, WINDOW] = ite(s.want[r] == p, Bytes.WRONG, s.bytes[p, WINDOW])


@action("A-6", state=WINDOW)
def slide(s: Sequence) -> None:
    """A ring slides by what is written, drafts included (B77)."""
    require(passed=s.window < window_start(s.written, SPAN))
    s.window = window_start(s.written, SPAN)
