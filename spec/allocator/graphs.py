"""Captured graphs: what they read stays where it was, or they are not replayed (静态图)."""

from __future__ import annotations

from fivestate.spec.allocator.derived import replaying
from fivestate.spec.allocator.state import GRAPHS, Allocator, Prefix, Request
from fivestate.spec.language import EVERY, action, forall, require
from fivestate.spec.vocabulary import Phase


@action("A-71", state=EVERY, given=GRAPHS)
def capture(s: Allocator, r: Request, p: Prefix) -> None:
    """Capture a step of a running request; its cells stay where they are until ``invalidate``.

    Capture runs kernels on padding, which writes to the null block.
    Source: seed 003 §5.4; domain §1.10.
    """
    require(
        running=s.phase[r] == Phase.RUNNING,
        mine=s.want[r] == p,
        whole=~s.slid[r] & ~s.copied[r],
        none=~s.graph[p],
        quiet=forall(Request, lambda q: s.phase[q] != Phase.REPLAYING),
    )
    s.graph[p] = True
    s.same[p] = True
    s.dirty = True


@action("A-72", state=EVERY, given=GRAPHS)
def scrub(s: Allocator) -> None:
    """Clean the null block.

    Source: vLLM #57158.
    """
    require(dirty=s.dirty)
    s.dirty = False


@action("A-73", state=EVERY, given=GRAPHS)
def replay(s: Allocator, r: Request, p: Prefix) -> None:
    """Replay a graph on a leased prefix instead of running kernel by kernel (重放).

    Whoever cannot runs eagerly; recovery always does, outside the graph.
    Source: seed 000 §6(4); seed 001 §4.3. Decision: D-5.
    """
    require(
        leased=s.phase[r] == Phase.LEASED,
        mine=s.want[r] == p,
        captured=s.graph[p],
        null_clean=~s.dirty,
    )
    s.phase[r] = Phase.REPLAYING


@action("A-74", state=EVERY, given=GRAPHS)
def invalidate(s: Allocator, p: Prefix) -> None:
    """Give up a graph that is not being replayed; its cells may go again."""
    require(captured=s.graph[p], quiet=~replaying(s, p))
    s.graph[p] = False
    s.same[p] = False
