"""A provenance is one schedule, however a prefix came about; parts keep theirs as bytes too."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.impl.model_examples import FULL, model, prompt, rng_of

from fivestate.impl.models.parts import Part, Stamp
from fivestate.impl.models.provenance import Chunk, Node, Provenance, next_run, scheduled
from fivestate.impl.models.replay import replay
from fivestate.impl.models.rows import RowLog
from fivestate.impl.models.store import from_bytes, read_label, to_bytes
from fivestate.spec.reuse import Span

BLOCK = 4
EXAMPLES = 400 if FULL else 60
TOKENS = st.lists(st.integers(0, 9), min_size=1, max_size=9)


@st.composite
def provenances(draw: st.DrawFn) -> Provenance:
    """Draw chunks, now and then cut back and gone on from."""
    made = Provenance().then(draw(TOKENS))
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            made = made.cut(draw(st.integers(1, made.end)))
        made = made.then(draw(TOKENS))
    return made


@settings(max_examples=EXAMPLES, deadline=None)
@given(provenances(), st.data())
def test_a_prefix_s_provenance_is_its_parent_s_and_its_own_chunks(
    whole: Provenance, data: st.DataObject
) -> None:
    end = data.draw(st.integers(1, whole.end))
    parent = whole.cut(data.draw(st.integers(0, end - 1)))
    own = whole.cut(end).own(parent.end)
    begun = bool(parent.chunks) and own[0] == parent.chunks[-1]
    assert Provenance((*parent.chunks, *own[begun:]), end) == whole.cut(end)
    assert whole.cut(end).tokens == whole.tokens[:end]
    assert whole.cut(whole.end) == whole
    assert sum(kept for _, kept in whole.steps()) == whole.end


@settings(max_examples=EXAMPLES, deadline=None)
@given(provenances(), provenances())
def test_blocks_join_to_the_provenance_and_those_of_another_run_do_not(
    one: Provenance, other: Provenance
) -> None:
    joined, run = Provenance(), ""
    for end in range(BLOCK, one.end + 1, BLOCK):
        before = run
        chunks = one.cut(end).own(end - BLOCK)
        run = next_run(run, chunks)
        again = Node(b"", end, chunks, run).joins(joined, before)
        joined = one.cut(end)
        assert again == joined
        if other.end >= end + BLOCK and other.cut(end) != one.cut(end):
            theirs, runs = other.cut(end + BLOCK).own(end), ""
            for e in range(BLOCK, end + BLOCK + 1, BLOCK):
                runs = next_run(runs, other.cut(e).own(e - BLOCK))
            assert Node(b"", end + BLOCK, theirs, runs).joins(joined, run) is None


@pytest.mark.parametrize(
    ("chunks", "end"),
    [
        ((Chunk(1, (5,)),), 2),
        ((Chunk(0, (5, 6)), Chunk(3, (7,))), 4),
        ((Chunk(0, (5, 6)), Chunk(0, (7,))), 1),
        ((Chunk(0, (5,)),), 2),
        ((), 1),
    ],
)
def test_chunks_that_do_not_join_are_refused(chunks: tuple[Chunk, ...], end: int) -> None:
    with pytest.raises(ValueError, match="do not join"):
        Provenance(chunks, end)


def test_lengths_that_do_not_add_up_and_cuts_that_do_not_lie_inside_are_refused() -> None:
    with pytest.raises(ValueError, match="chunks of 3 tokens for 4 tokens"):
        scheduled([1, 2, 3, 4], [1, 2])
    with pytest.raises(ValueError, match=r"position = 5: 0 \.\. 4 is allowed"):
        scheduled([1, 2, 3, 4], [4]).cut(5)


def test_tokens_that_were_dropped_count_where_experts_share_rows() -> None:
    """Why a chunk keeps all its tokens: the rows that stay depend on them, in their last bits."""
    on, differs = model("deepseek-v4"), False
    for seed in range(12):
        rng = rng_of(seed)
        kept, one, other = (prompt(rng, 10) for _ in range(3))
        rows = [
            replay(on, Provenance().then([*kept, *dropped]).cut(10))[0] for dropped in (one, other)
        ]
        assert (rows[0] - rows[1]).abs().max() < 1e-3
        differs = differs or not torch.equal(*rows)
    assert differs


PART = Part(Span(4, 8), torch.arange(24, dtype=torch.float32).view(2, 4, 3), Stamp(5, "run"))
NODE = Node(b"\1\2", 8, (Chunk(2, (7, 8, 9)), Chunk(5, (1, 2, 3, 4))), "run")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_part_comes_back_from_its_bytes_with_its_block(dtype: torch.dtype) -> None:
    part = Part(PART.span, PART.rows.to(dtype), PART.stamp)
    blob = to_bytes(part, NODE)
    back, label = from_bytes(blob), read_label(blob)
    assert back is not None
    assert label is not None
    assert torch.equal(back.rows, part.rows)
    assert (back.span, back.stamp, back.rows.dtype) == (part.span, part.stamp, dtype)
    assert (label[0].span, label[0].stamp, label[1]) == (part.span, part.stamp, NODE)


def test_no_byte_of_a_part_can_change_unseen() -> None:
    blob = to_bytes(PART, NODE)
    for at in range(len(blob)):
        for flip in (1, 128):
            changed = from_bytes(blob[:at] + bytes([blob[at] ^ flip]) + blob[at + 1 :])
            same = changed is not None and torch.equal(changed.rows, PART.rows)
            assert changed is None or (same and changed.stamp == PART.stamp), at
        assert from_bytes(blob[:at]) is None


def test_rows_are_read_by_position_until_they_are_let_go() -> None:
    log = RowLog(10)
    rows = torch.arange(12.0).view(6, 2)
    log.append(rows[:2])
    log.append(rows[2:])
    rows_then = rows.clone()
    rows.zero_()
    assert torch.equal(log.read(Span(11, 14)), rows_then[1:4])
    log.forget(13)
    assert log.kept == Span(13, 16)
    assert torch.equal(log.read(Span(13, 16)), rows_then[3:])
    for span in (Span(12, 14), Span(14, 17)):
        with pytest.raises(ValueError, match=f"rows {span}: rows 13..15 are kept"):
            log.read(span)
