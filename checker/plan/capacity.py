"""Capacity: bytes, load and first-token times, window policies, and scheme A against B."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fivestate.checker.plan.figures import Option
from fivestate.checker.plan.wishes import Setting, Wish
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import Shape
from fivestate.spec.reuse.windows import Bill, Keep, bill

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class FirstToken:
    """How long requests of one kind wait for their first token, at most.

    Attributes:
        kind: what the prefix is worth: HIT, PARTIAL (loaded back) or MISS.
        percent: how many requests are of this kind.
        nanoseconds: the time.
    """

    kind: str
    percent: int
    nanoseconds: int


@dataclass(frozen=True)
class SchemeA:
    """The same layers, all rows of all of them kept: scheme A (方案A).

    Attributes:
        bytes_per_token: its bytes for a token.
        enough_below_tokens: up to this length it takes no more memory than the hybrid cache, so
            a hit is simply used and nothing has to be recovered. Nothing where the layers have
            no rows that could all be kept.
        fits_below_tokens: up to this length it fits into the memory that is wished, if it is.
    """

    bytes_per_token: int
    enough_below_tokens: int | None
    fits_below_tokens: int | None


@dataclass(frozen=True)
class Capacity:
    """What a plan costs in bytes and in time.

    Attributes:
        bytes_per_token: bytes that each token adds for good, without padding.
        bytes_per_token_padded: the same on padded pages.
        bytes_per_request: bytes that each request has beside it: windows, tails, snapshots.
        pool_bytes: bytes for every block that the requests can come to hold.
        load_bytes: bytes of the pages that a load of the shared prefix brings.
        load_nanoseconds: the time of that load.
        first_token: the wait for the first token, by kind.
        windows: what each window policy costs for one shared prefix.
        scheme_a: scheme A on the same layers.
    """

    bytes_per_token: Fraction
    bytes_per_token_padded: Fraction
    bytes_per_request: int
    pool_bytes: int
    load_bytes: int
    load_nanoseconds: int
    first_token: tuple[FirstToken, ...]
    windows: tuple[Bill, ...]
    scheme_a: SchemeA


def capacity(
    geometry: Geometry,
    chosen: tuple[Option, ...],
    setting: Setting,
    limits: tuple[Wish, ...],
) -> Capacity:
    """Return what a plan costs; ``geometry`` has the block sizes that were chosen."""
    step = geometry.scheduler_block_size
    loaded = sum(each.load_bytes for each in chosen)
    load = loaded * NANOSECONDS // setting.bandwidth
    padded = sum(
        (
            Fraction(g.layers * g.page_size_bytes, g.block_size)
            for g in geometry.voting
            if g.shape is Shape.PREFIX
        ),
        Fraction(0),
    )
    behind = (step - 1 + setting.question) * NANOSECONDS // setting.prefill
    everything = (setting.context + setting.question) * NANOSECONDS // setting.prefill
    miss = 100 - setting.hits - setting.loads
    return Capacity(
        geometry.bytes_per_token,
        padded,
        bytes_per_request(geometry),
        sum(each.pool_bytes for each in chosen),
        loaded,
        load,
        (
            FirstToken("HIT", setting.hits, behind),
            FirstToken("PARTIAL", setting.loads, behind + load),
            FirstToken("MISS", miss, everything),
        ),
        tuple(bill(geometry, keep, setting.context, setting.period, step) for keep in Keep),
        scheme_a(geometry, setting, limits),
    )


def bytes_per_request(geometry: Geometry) -> int:
    """Bytes that a running request has whatever its length: full windows, tails, snapshots."""
    total = 0
    for group in geometry.voting:
        rows = {
            Shape.RUN: group.window,
            Shape.CHUNK: group.window,
            Shape.OPEN_GROUP: group.lookback + group.ratio,
            Shape.POINT: 1,
        }.get(group.shape, 0)
        total += rows * group.layers * group.bytes_per_entry
    return total


def scheme_a(geometry: Geometry, setting: Setting, limits: tuple[Wish, ...]) -> SchemeA:
    """Compare with every row of every layer kept, each as large as a row is in this model."""
    rows = [g for g in geometry.voting if g.shape in {Shape.RUN, Shape.CHUNK}]
    plain = [g for g in geometry.voting if g.shape is Shape.PREFIX and g.ratio == 1]
    every_layer_has_rows = any(g.ratio > 1 for g in geometry.voting if g.shape is Shape.PREFIX)
    kept = rows if rows and every_layer_has_rows else [*rows, *plain]
    per_token = sum(group.layers * group.bytes_per_entry for group in kept)
    more = per_token - geometry.bytes_per_token
    enough = int(bytes_per_request(geometry) / more) if more > 0 else None
    memory = next((wish.value for wish in limits if wish.name == "memory"), None)
    fits = None
    if memory is not None and per_token:
        fits = memory // (per_token * setting.requests)
    return SchemeA(per_token, enough, fits)
