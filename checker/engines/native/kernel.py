"""The part of the native code that every model shares, in LLVM's notation.

A chunk of the frontier goes through it in three phases, each on all workers at once:

1. ``expand``: worker ``i`` takes the ``i``-th run of the chunk and sorts the states behind it into
   buckets, one for each worker, by their hash;
2. ``insert``: worker ``j`` looks up what is in every ``j``-th bucket, in order, in a hash table
   that nobody else touches; what is new is set aside as *fresh*;
3. ``number``: worker ``i`` merges what is fresh from its run by the step it came from, so that
   states are numbered as one worker alone would have numbered them.

No phase needs a lock or an atomic instruction, and the number of workers changes no result.

A hash table has 32 bits a slot: the state's number + 1 in the low ``number_bits``, bits of its
hash above them, so that most slots of other states are passed without looking at the state. A
state's own bits stand once, in blocks, by its number. While a chunk is inserted, fresh states
have the numbers ``known``, ``known + 1``, ... of their table alone; ``settle`` puts the final ones
in. Lookups are made in groups whose slots and states are prefetched: a lone lookup would spend
nearly all its time waiting for memory.
"""

from __future__ import annotations

from importlib.resources import files
from string import Template

BLOCK_BITS = 21
"""States are stored in blocks of this many (2^n): large enough for large pages."""

GROUP = 64
"""How many lookups are under way at once."""

_FILES = ("shared", "expand", "insert", "table", "number", "connect")


def kernel(word: str, steps: int, workers: int) -> str:
    """Return the code that every model shares.

    Args:
        word: LLVM's type of a packed state.
        steps: how many steps the model has.
        workers: how many workers share a chunk, a power of two.
    """
    bits = step_bits(steps)
    folder = files("fivestate.checker.engines.native") / "llvm"
    text = "\n".join(
        (folder / f"{name}.ll").read_text("utf-8") for name in (*_FILES, f"hash_{word}")
    )
    return Template(text).substitute(
        word=word,
        steps=max(steps, 1),
        step_bits=bits,
        step_mask=(1 << bits) - 1,
        owner_mask=workers - 1,
        block_bits=BLOCK_BITS,
        block_mask=(1 << BLOCK_BITS) - 1,
        group=GROUP,
        fresh_runs=_runs("parts", "Part", 4, workers),
        bucket_runs=_runs("buckets", "Bucket", 1, workers),
        least=_least(workers),
    )


def step_bits(steps: int) -> int:
    """Return how many bits of a source tell the step; those above tell the state it is from."""
    return max(1, (steps - 1).bit_length())


def _runs(array: str, kind: str, field: int, workers: int) -> str:
    """Load where each worker's run of sources stands."""
    lines: list[str] = []
    for at in range(workers):
        lines += [
            f"  %run{at}.at = getelementptr %{kind}, ptr %{array}, i64 {at}, i32 {field}",
            f"  %run{at} = load ptr, ptr %run{at}.at, align 8",
            f"  %head{at}.at = getelementptr i64, ptr %heads, i64 {at}",
        ]
    return "\n".join(lines)


def _least(workers: int) -> str:
    """Take the least source at the head of the runs: ``%source`` of ``%who``, at ``%position``.

    Every run ends in a source greater than all others.
    """
    lines: list[str] = []
    for at in range(workers):
        lines += [
            f"  %head{at} = load i64, ptr %head{at}.at, align 8",
            f"  %next{at}.at = getelementptr i32, ptr %run{at}, i64 %head{at}",
            f"  %next{at} = load i32, ptr %next{at}.at, align 4",
        ]
    least, who, position = "%next0", "0", "%head0"
    for at in range(1, workers):
        lines += [
            f"  %less{at} = icmp ult i32 %next{at}, {least}",
            f"  %least{at} = select i1 %less{at}, i32 %next{at}, i32 {least}",
            f"  %who{at} = select i1 %less{at}, i64 {at}, i64 {who}",
            f"  %position{at} = select i1 %less{at}, i64 %head{at}, i64 {position}",
        ]
        least, who, position = f"%least{at}", f"%who{at}", f"%position{at}"
    lines += [
        f"  %source = or i32 {least}, 0",
        f"  %who = or i64 {who}, 0",
        f"  %position = or i64 {position}, 0",
        "  %taken.at = getelementptr i64, ptr %heads, i64 %who",
        "  %taken = add i64 %position, 1",
        "  store i64 %taken, ptr %taken.at, align 8",
    ]
    return "\n".join(lines)
