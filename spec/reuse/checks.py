"""The four checks of a hash hit, and the identity that comes before them (四层校验).

Each is a function of its own and fails with reasons of its own, values included. Identity is
H-0: no seed numbers it, and every other check takes it for granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

from fivestate.spec.language import ModelError
from fivestate.spec.need import resume_limit, round_down
from fivestate.spec.reuse.availability import Abi, Extent, Identity, Place
from fivestate.spec.reuse.geometry import Geometry
from fivestate.spec.reuse.groups import CacheGroup, Shape
from fivestate.spec.reuse.points import Points, descend
from fivestate.spec.reuse.reasons import Reason, Why
from fivestate.spec.reuse.spans import Span, missing
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL

DIGEST_BITS = 256
"""A narrower digest can collide, and nothing behind it compares tokens."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a prefix.

    Attributes:
        fork: tokens that are shared; the next computed position, unless the prompt ends there.
        prompt: tokens of the whole prompt; by default it goes on behind the fork.
        identity: what the asking prefix is.
    """

    fork: int
    prompt: int | None = None
    identity: Identity = field(default_factory=Identity)

    def __post_init__(self) -> None:
        """Check the lengths.

        Raises:
            ModelError: the fork is negative or behind the prompt's end.
        """
        if self.fork < 0 or (self.prompt is not None and self.prompt < max(self.fork, 1)):
            message = f"asked: fork = {self.fork}, prompt = {self.prompt}"
            raise ModelError(f"{message}: 0 <= fork <= prompt, and a token at least, is allowed")

    @property
    def tokens(self) -> int:
        """Tokens of the prompt: one behind the fork where nothing is said."""
        return self.fork + 1 if self.prompt is None else self.prompt

    @property
    def target(self) -> int:
        """The position a full hit resumes at: the last token is computed in any case."""
        return min(self.fork, self.tokens - 1)


@dataclass(frozen=True)
class Consumer:
    """What will read the bytes.

    Attributes:
        abi: what its kernels assume.
        converters: pairs of layouts for which a converter exists, from and to.
    """

    abi: Abi = field(default_factory=Abi)
    converters: frozenset[tuple[str, str]] = frozenset()


def same_prefix(stored: Identity, asked: Identity) -> tuple[Reason, ...]:
    """A hash hit names a prefix only if parents, adapter, salt and modality agree too.

    The digest is wide enough that equal digests mean equal tokens, or the tokens are compared.
    Source: domain §3.1; B17, B69, B71.
    """
    found = [
        Reason("H-0", Why.IDENTITY, f"{name}: {one!r}≠{other!r}")
        for name in ("parent", "adapter", "salt", "modality")
        if (one := getattr(stored, name)) != (other := getattr(asked, name))
    ]
    if stored.tokens is not None and asked.tokens is not None:
        if stored.tokens[: len(asked.tokens)] != asked.tokens[: len(stored.tokens)]:
            found.append(Reason("H-0", Why.IDENTITY, "tokens"))
    elif (bits := min(stored.digest_bits, asked.digest_bits)) < DIGEST_BITS:
        found.append(Reason("H-0", Why.IDENTITY, f"digest of {bits}<{DIGEST_BITS} bits"))
    return tuple(found)


def whole_block(geometry: Geometry, asked: Asked) -> tuple[int, tuple[Reason, ...]]:
    """A resume point is a whole number of blocks in every voting group (整块校验).

    Returns the largest position that can be resumed at all, and what cost the rest. The look-back
    of a drafter is dropped before rounding, and the last token is always computed.
    Source: seed 000 §5(1); B01, B02, B03.
    """
    step = geometry.scheduler_block_size
    limit = resume_limit(asked.fork, asked.tokens, geometry.draft_lookback)
    feasible = round_down(limit, step)
    found: list[Reason] = []
    if geometry.draft_lookback and limit < asked.target:
        found.append(Reason("H-1", Why.DRAFT_LOOKBACK, str(geometry.draft_lookback)))
    if asked.target < asked.fork:
        found.append(Reason("H-1", Why.LAST_TOKEN, str(asked.target)))
    if feasible < limit or not limit:
        found.append(Reason("H-1", Why.BELOW_GRANULARITY, str(step)))
    return feasible, tuple(found)


def same_abi(group: CacheGroup, copy: Extent, consumer: Abi) -> tuple[Reason, ...]:
    """A copy is read only by kernels that assume what its producer wrote (内核 ABI).

    It holds for all states in all tiers; equal byte counts say nothing about the layout.
    Source: seed 003 §4.2; B16, B36, B72.
    """
    pairs = (
        (Why.KERNEL, copy.abi.kernel, consumer.kernel),
        (Why.LAYOUT, copy.abi.layout, consumer.layout),
        (Why.DTYPE, copy.abi.dtype, consumer.dtype),
        (Why.WEIGHTS, copy.abi.weights, consumer.weights),
    )
    return tuple(
        Reason("H-2", why, f"{made}≠{wanted}", group.name)
        for why, made, wanted in pairs
        if made != wanted
    )


def all_groups(
    points: Mapping[tuple[int, str], Points],
    limit: int,
    step: int,
) -> tuple[int, tuple[tuple[int, str], ...]]:
    """A position can be resumed iff it is in the set of every voting group on every rank.

    Returns the largest such position, and which group on which rank does not have ``limit``.
    Sets are intersected; the smallest of the groups' lengths would be wrong (多缓存组状态交集).
    Source: seed 000 §5(3); B10, B75.
    """
    operators = [partial(held.largest, step=step) for held in points.values()]
    absent = tuple(where for where, held in points.items() if not held.has(limit))
    return descend(operators, round_down(limit, step)), absent


def right_bytes(group: CacheGroup, place: Place) -> tuple[Reason, ...]:
    """Address and stride are aligned for the kernel, and every byte lies in the region.

    What is only misaligned can be repacked; what leaves its region may not be touched at all.
    Source: seed 000 §5(4); B33, B34.
    """
    found: list[Reason] = []
    for name, value in (("address", place.address), ("stride", place.stride)):
        if value % group.page_alignment:
            shown = f"{name} {value} mod {group.page_alignment} = {value % group.page_alignment}"
            found.append(Reason("H-4", Why.MISALIGNED, shown, group.name))
    if not place.region_start <= place.address <= place.last <= place.region_end:
        shown = f"{place.address}..{place.last - 1} of {place.region_start}..{place.region_end - 1}"
        found.append(Reason("H-4", Why.OUT_OF_REGION, shown, group.name))
    return tuple(found)


def disjoint(ranges: Iterable[tuple[str, Span]]) -> tuple[Reason, ...]:
    """No byte belongs to two live objects, whatever ids they have (B33, B35)."""
    ordered = sorted(ranges, key=lambda item: item[1])
    return tuple(
        Reason("H-4", Why.OVERLAP, str(cut), f"{one} and {other}")
        for (one, first), (other, second) in combinations(ordered, 2)
        if (cut := first.cut(second)).tokens
    )


CHECKS: tuple[tuple[str, Callable[..., object]], ...] = (
    ("H-0", same_prefix),
    ("H-1", whole_block),
    ("H-2", same_abi),
    ("H-3", all_groups),
    ("H-4", right_bytes),
    ("H-4", disjoint),
)
"""What a hash hit has to pass, in this order."""


def gone(group: CacheGroup, spans: tuple[Span, ...], position: int, rank: int = 0) -> Reason:
    """Return the reason why a group cannot be resumed at a position: what is not there."""
    if group.shape is Shape.POINT:
        return Reason("H-3", Why.SNAPSHOT_GONE, str(position), group.name, rank)
    why = {COMPRESSED: Why.ENTRIES_GONE, TAIL: Why.TAIL_GONE, INDEXER: Why.INDEX_GONE}
    parts = ", ".join(str(part) for part in missing(group.need(position), spans))
    return Reason("H-3", why.get(group.state, Why.WINDOW_GONE), parts, group.name, rank)
