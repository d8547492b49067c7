"""Classify a batch: what the specification says of each lookup, in one launch of fixed shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels import classify_cases as cases
from tests.kernels.classify_cases import Lookup
from tests.kernels.seeding import examples, seeded, without_gpu
from tests.kernels.ways import each_way, running

from fivestate.kernels import classify as module
from fivestate.kernels.classify import classify_batch
from fivestate.kernels.parts import batch as batch_module
from fivestate.kernels.parts import four
from fivestate.kernels.parts.batch import Copies, Verdicts, columns, verdicts
from fivestate.spec.reuse import Abi, Asked, CacheGroup, Extent, Geometry, Means, Role, Span
from fivestate.spec.reuse.files import preset
from fivestate.spec.vocabulary import COMPRESSED, INDEXER, TAIL, WINDOW

Run = Callable[..., Verdicts]
KINDS = ("MISS", "PARTIAL", "HIT")
POISON = 123
LARGE_BLOCK = 1024
"""The interpreter likes few large programs."""


def check(
    geometry: Geometry,
    lookups: list[Lookup | None],
    way: str,
    run: Run = classify_batch,
    *,
    token_by_token: bool = True,
) -> Counter[str]:
    """Classify, hold every row against the specification, and count what came up."""
    with running(way) as device:
        arguments = cases.tensors(geometry, lookups, device)
        out = verdicts(arguments[2], len(geometry.groups))
        for each in out:
            each.fill_(POISON)
        assert run(*arguments, out) is out
    seen: Counter[str] = Counter()
    rows = zip(*(each.tolist() for each in out), strict=True)
    for lookup, (kind, resume, why, of_group) in zip(lookups, rows, strict=True):
        if lookup is None:
            assert (kind, resume, why) == (POISON,) * 3
            assert of_group == [POISON] * len(geometry.groups)
            continue
        verdict = lookup.verdict(geometry)
        assert (why, of_group) == cases.reasons(geometry, verdict)
        assert (kind == 2) == (verdict.kind.name == "HIT")
        if token_by_token:
            assert resume == cases.resumable(geometry, lookup)
        plans = (verdict.plan, *verdict.beaten)
        if {step.means for plan in plans for step in plan.steps} <= {Means.RECOMPUTE}:
            assert (KINDS[kind], resume) == (verdict.kind.name, verdict.resume)
            seen[KINDS[kind]] += 1
        else:
            assert resume <= verdict.resume
            seen["recoverable"] += 1
    return seen


@each_way
def test_drawn_batches_are_classified_as_the_specification_does(way: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        seen += check(*cases.drawn(seed), way)
    assert min(seen[kind] for kind in (*KINDS, "recoverable")) >= 15, seen


@settings(deadline=None, max_examples=examples(15))
@given(st.integers(0, 10**9))
def test_any_batch_is_classified_as_the_specification_does(seed: int) -> None:
    geometry, lookups = cases.drawn(seed)
    check(geometry, lookups, "kernel")
    check(geometry, lookups, "reference")


ENTRIES = CacheGroup(name="entries", state=COMPRESSED, block_size=2, ratio=2)
SECOND = {
    "window": CacheGroup(name="window", state=WINDOW, block_size=1, window=3),
    "window of whole blocks": CacheGroup(name="window", state=WINDOW, block_size=2, window=4),
    "window of one": CacheGroup(name="window", state=WINDOW, block_size=1, window=1),
    "chunk": CacheGroup(name="chunk", state=WINDOW, block_size=1, window=4, chunked=True),
    "tail": CacheGroup(name="tail", state=TAIL, block_size=1, ratio=2),
    "overlapping tail": CacheGroup(name="tail", state=TAIL, block_size=1, ratio=2, lookback=2),
    "snapshot": CacheGroup(name="snapshot", state=COMPRESSED, block_size=2, recurrent=True),
    "index": CacheGroup(name="index", state=INDEXER, block_size=2, ratio=2),
    "coarser entries": CacheGroup(name="coarse", state=COMPRESSED, block_size=4, ratio=4),
    "draft": CacheGroup(name="draft", state=WINDOW, block_size=1, window=3, role=Role.VOLATILE),
}


def every_lookup(second: CacheGroup) -> Iterator[Lookup]:
    """Yield every lookup of two groups, of up to five tokens each, at every fork up to six."""
    spans = [None, *(Span(a, b) for a in range(5) for b in range(a + 1, 6))]
    for one, other, fork in product(spans, spans, range(7)):
        copies = {"entries": one, second.name: other}
        held = {name: Extent(span) for name, span in copies.items() if span is not None}
        yield Lookup(Asked(fork), held)


@pytest.mark.parametrize("name", SECOND)
def test_every_small_lookup_is_classified_as_the_specification_does(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    second = SECOND[name]
    geometry = Geometry("two", (ENTRIES, second))
    lookups: list[Lookup | None] = [*every_lookup(second)]
    with running("reference"):
        reference = classify_batch(*cases.tensors(geometry, lookups, "cpu"))
    monkeypatch.setattr(module, "BLOCK", LARGE_BLOCK)
    with running("kernel") as device:
        found = classify_batch(*cases.tensors(geometry, lookups, device))
    for one, other in zip(found, reference, strict=True):
        assert torch.equal(one.cpu(), other)
    check(geometry, lookups[::3] if name != "index" else lookups[1::2], "reference")


@each_way
@pytest.mark.parametrize("name", ["dsv4-flash", "dsv4-ascend-128", "gemma3-27b", "qwen3-next-80b"])
def test_real_geometries_are_classified_at_real_lengths(way: str, name: str) -> None:
    geometry = preset(name)
    step = geometry.scheduler_block_size
    lookups: list[Lookup | None] = []
    for fork in (step - 1, step, step + 1, 7 * step, 100_003, 1_000_000):
        for end in {fork, fork // step * step, fork // step * step - 1, fork + 5} - {0, -1}:
            for late in (0, 1, 1024, step):
                whole = {
                    group.name: Extent(Span(min(late, end - 1) if group.window else 0, end))
                    for group in geometry.groups
                }
                lookups.append(Lookup(Asked(fork), whole))
    check(geometry, lookups, way, token_by_token=False)


@each_way
def test_of_an_index_out_of_step_nothing_else_is_said(way: str) -> None:
    index = SECOND["index"]
    geometry = Geometry("two", (index, ENTRIES))
    lookups: list[Lookup | None] = [
        Lookup(
            Asked(8),
            {
                "entries": Extent(Span(0, 8), generation=made),
                "index": Extent(Span(0, 8), abi=abi, generation=1),
            },
        )
        for made in (0, 1, 1 << 40)
        for abi in (Abi(), Abi("2", weights=3))
    ]
    check(geometry, lookups, way)


@each_way
def test_without_out_padding_is_a_miss(way: str) -> None:
    geometry = Geometry("one", (ENTRIES,))
    lookups = [None, Lookup(Asked(6), {"entries": Extent(Span(0, 6))}), None]
    with running(way) as device:
        found = classify_batch(*cases.tensors(geometry, lookups, device))
    assert found.kinds.tolist() == [0, 2, 0]
    assert found.resumes.tolist() == [0, 6, 0]
    assert found.group_whys.shape == (3, 1)


@each_way
def test_a_batch_of_nobody_is_classified(way: str) -> None:
    geometry = Geometry("one", (ENTRIES,))
    with running(way) as device:
        model = columns(geometry, device)
        kinds = torch.int32
        copies = Copies(
            torch.zeros((0, 1, 2), dtype=kinds, device=device),
            torch.zeros((0, 1, 4), dtype=kinds, device=device),
            torch.zeros((0, 1), dtype=torch.int64, device=device),
            torch.zeros((0, 1, 6), dtype=torch.int64, device=device),
        )
        none = torch.zeros((0, 2), dtype=kinds, device=device)
        words = torch.zeros(4, dtype=kinds, device=device)
        assert len(classify_batch(model, words, none, none[:, 0], copies).kinds) == 0


DRAWN = "drawn"
ERRORS: dict[str, tuple[str, str, str]] = {
    "granularity is rounded up": (
        "window",
        "limit // step * step\n",
        "(limit + step - 1) // step * step\n",
    ),
    "the last token is not computed": (
        DRAWN,
        "tl.minimum(fork - draft_lookback, prompt - 1)",
        "(fork - draft_lookback)",
    ),
    "an index out of step is used": (DRAWN, "usable & (old == 0)", "usable"),
    "lengths are compared, not sets": (
        "window",
        "tl.where(votes, held, resume[:, None])",
        "tl.where(votes, tl.minimum(resident, resume[:, None]), resume[:, None])",
    ),
    "one pass is enough": (
        "window",
        "moved = tl.max((lower != resume).to(tl.int32), 0)",
        "moved = 0",
    ),
    "a volatile group votes": (
        "draft",
        "tl.where(votes, held, resume[:, None])",
        "tl.where(mine[None, :], held, resume[:, None])",
    ),
    "padding is written": (
        DRAWN,
        "tl.store(kinds + request, kind, live)",
        "tl.store(kinds + request, kind, request < requests)",
    ),
    "the region is not looked at": (DRAWN, "((placed == 0) | inside)", "(start < end)"),
    "the reference starts inside a block": (
        "window of whole blocks",
        "start, end = (start + block - 1) // block * block,",
        "start, end = start,",
    ),
    "the reference asks each group once": (
        "window",
        "lowered = bool((resume != before).any())",
        "lowered = False",
    ),
}


@without_gpu
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_caught(tmp_path: Path, name: str) -> None:
    where, old, new = ERRORS[name]
    wrong = seeded(tmp_path, module, old, new)
    with pytest.raises(AssertionError):
        caught(wrong, where, "reference" if "reference" in name else "kernel")


PART_ERRORS = {
    "weights are not compared": (DRAWN, "tl.static_range(4)", "tl.static_range(3)"),
    "a stride may be anything": (DRAWN, "| (stride % alignment != 0)", ""),
    "a window has a row too many": ("window", "start + window - 1", "start + window - 2"),
    "a tail forgets its look-back": (
        "overlapping tail",
        "start + lookback + ratio - 1",
        "start + ratio - 1",
    ),
    "a copy that starts late is a prefix": ("window", "tl.where(rooted, end, 0)", "end"),
}


@without_gpu
@pytest.mark.parametrize("name", PART_ERRORS)
def test_an_error_in_a_check_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    where, old, new = PART_ERRORS[name]
    wrong = seeded(tmp_path, four, old, new)
    for part in ("same_abi", "right_bytes", "points"):
        monkeypatch.setattr(module, part, getattr(wrong, part))
    with pytest.raises(AssertionError):
        caught(module, where, "kernel")


def caught(wrong: Any, where: str, way: str) -> None:
    """Run what the tests above check: drawn batches, or the small lookups of one group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wrong, "BLOCK", LARGE_BLOCK)
        if where == DRAWN:
            for seed in range(60):
                check(*cases.drawn(seed), way, wrong.classify_batch)
        else:
            geometry = Geometry(
                "two", (SECOND[where], ENTRIES)
            )  # asked once, in order, is not enough
            check(geometry, [*every_lookup(SECOND[where])], way, wrong.classify_batch)


def arguments() -> dict[str, Any]:
    lookups = [Lookup(Asked(6), {"entries": Extent(Span(0, 6))}), None]
    model, consumer, asked, known, copies = cases.tensors(
        Geometry("one", (ENTRIES,)), lookups, "cpu"
    )
    return {
        "model": model,
        "consumer": consumer,
        "asked": asked,
        "known": known,
        "copies": copies,
        "out": Verdicts(*(each.fill_(POISON) for each in verdicts(asked, 1))),
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("consumer", torch.zeros(3, dtype=torch.int32), "consumer: shape"),
        ("asked", torch.zeros(2, 2), "asked: float32 is given"),
        ("asked", torch.tensor([[-2, 1], [0, 1]], dtype=torch.int32), "asked: fork"),
        ("asked", torch.zeros((2, 4), dtype=torch.int32)[:, ::2], "asked: stride 2"),
        ("known", torch.zeros(2, dtype=torch.bool), "known: bool is given"),
        ("known", torch.zeros(2, dtype=torch.int32, device="meta"), "known: on meta"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: torch.Tensor, message: str) -> None:
    given = arguments()
    with running("reference"), pytest.raises(ValueError, match=message):
        classify_batch(**{**given, name: value})
    assert all((each == POISON).all() for each in given["out"])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("spans", torch.zeros(2, 1, 3, dtype=torch.int32), "copies.spans: shape"),
        ("spans", torch.full((2, 1, 2), -1, dtype=torch.int32), r"copies.spans\[0\]: -1"),
        ("abi", torch.zeros(2, 1, 4, dtype=torch.int64), "copies.abi: int64 is given"),
        ("generations", torch.zeros(2, 1, dtype=torch.int32), "copies.generations: int32"),
        ("places", torch.zeros(2, 2, 6, dtype=torch.int64), "copies.places: shape"),
    ],
)
def test_copies_that_do_not_fit_are_refused(name: str, value: torch.Tensor, message: str) -> None:
    given = arguments()
    copies = given["copies"]._replace(**{name: value})
    with running("reference"), pytest.raises(ValueError, match=message):
        classify_batch(**{**given, "copies": copies})
    assert all((each == POISON).all() for each in given["out"])


def test_a_geometry_that_is_too_large_is_refused() -> None:
    groups = [
        CacheGroup(name=f"g{n}", state=COMPRESSED, block_size=size)
        for n, size in enumerate((99_991, 99_989))
    ]
    with pytest.raises(ValueError, match="geometry: scheduler_block_size 9998000099 is given"):
        columns(Geometry("large", tuple(groups)))
    assert batch_module.MOST == 2**31 - 1
