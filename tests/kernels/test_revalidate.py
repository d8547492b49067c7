"""Revalidate: a block that was given back shows, and what was made from it is poisoned."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.seeding import examples, seeded, without_gpu
from tests.kernels.ways import DEVICE, each_way, running

from fivestate.kernels import revalidate as module
from fivestate.kernels.revalidate import Lease, revalidate

Run = Callable[..., None]

KINDS = (torch.float32, torch.float16, torch.bfloat16)


def leased(requests: int, blocks: int, num_blocks: int, seed: int = 0) -> Lease:
    """Draw a lease that holds, with null and padding among its blocks."""
    random = Random(seed)  # noqa: S311 -- drawn cases are no secrets
    pool = torch.tensor([random.randrange(1 << 40) for _ in range(num_blocks)])
    ids = [[random.randrange(-1, num_blocks) for _ in range(blocks)] for _ in range(requests)]
    held = torch.tensor(ids, dtype=torch.int32).reshape(requests, blocks)
    then = pool[held.clamp(0).long()]
    then[held <= 0] = -5  # of what is not leased nothing was written down
    return Lease(held, then, pool)


def holds(leases: list[Lease], request: int) -> bool:
    """Say whether every block of a request is in the generation that was leased."""
    for blocks, generations, pool in leases:
        for block, then in zip(
            blocks[request].tolist(), generations[request].tolist(), strict=True
        ):
            if block in {0, -1}:
                continue
            if not 0 < block < len(pool) or int(pool[block]) != then:
                return False
    return True


def check(
    leases: list[Lease],
    way: str,
    kind: torch.dtype = torch.float32,
    poison: float = math.nan,
    run: Run = revalidate,
    width: int = 5,
) -> list[bool]:
    """Revalidate, compare with the lease read block by block, and return who is right."""
    requests = len(leases[0].blocks)
    before = torch.arange(requests * width).reshape(requests, width).to(kind)
    with running(way) as device:
        moved = [Lease(*(each.to(device) for each in lease)) for lease in leases]
        ok = torch.full((requests,), 9, dtype=torch.int32, device=device)
        output = before.to(device)
        run(moved, ok, output, poison=poison)
    expected = [holds(leases, request) for request in range(requests)]
    assert ok.tolist() == [int(right) for right in expected]
    for request, right in enumerate(expected):
        line = output[request].cpu()
        if right:
            assert torch.equal(line, before[request])
        else:
            assert (line.isnan() if math.isnan(poison) else line == poison).all()
    return expected


def given_back(lease: Lease, request: int) -> Lease:
    """Return the lease after one of a request's blocks has got another generation."""
    pool = lease.pool.clone()
    block = next(block for block in lease.blocks[request].tolist() if block > 0)
    pool[block] += 1
    return lease._replace(pool=pool)


@each_way
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("poison", [math.nan, -math.inf])
def test_a_block_that_was_given_back_poisons_those_who_leased_it(
    way: str, kind: torch.dtype, poison: float
) -> None:
    good = leased(4, 6, 200)
    assert check([good], way, kind, poison) == [True] * 4
    bad = given_back(good, 2)
    assert check([bad], way, kind, poison) == [True, True, False, True]
    assert check([good, bad], way, kind, poison) == [True, True, False, True]
    assert check([bad, good], way, kind, poison) == [True, True, False, True]


@each_way
@pytest.mark.parametrize("blocks", [0, 1, 127, 128, 129, 255, 256, 257, 1025])
def test_any_block_is_compared_at_the_edges(way: str, blocks: int) -> None:
    lease = leased(2, blocks, 5000)
    assert check([lease], way) == [True, True]
    if blocks:
        lease.blocks[1, -1] = 7
        lease.generations[1, -1] = lease.pool[7] - 1
        assert check([lease], way) == [True, False]


@each_way
def test_an_id_out_of_its_pool_does_not_hold(way: str) -> None:
    for block in (10, 11, -2, 2**31 - 1, -(2**31)):
        lease = leased(3, 4, 10)
        lease.blocks[1, 2] = block
        assert check([lease], way) == [True, False, True]


@each_way
def test_null_and_padding_are_not_compared(way: str) -> None:
    lease = leased(3, 4, 10)
    lease.blocks[0], lease.blocks[1] = -1, 0
    lease.generations[:2] = 77
    assert check([lease], way) == [True] * 3


@each_way
@pytest.mark.parametrize("width", [1, 1023, 1024, 1025])
def test_a_whole_row_is_poisoned_and_no_other(way: str, width: int) -> None:
    assert check([given_back(leased(3, 5, 50), 1)], way, width=width)[1] is False


@each_way
def test_outputs_leases_and_pools_may_be_strided(way: str) -> None:
    lease = given_back(leased(3, 4, 60, seed=2), 1)
    expected = [holds([lease], request) for request in range(3)]
    with running(way) as device:
        blocks = torch.full((6, 9), 5, dtype=torch.int32, device=device)
        blocks[::2, 2:6] = lease.blocks.to(device)
        generations = torch.zeros((3, 8), dtype=torch.int64, device=device)
        generations[:, :4] = lease.generations.to(device)
        output = torch.zeros((3, 4, 2, 5), device=device)
        ok = torch.zeros(3, dtype=torch.int32, device=device)
        strided = Lease(blocks[::2, 2:6], generations[:, :4], lease.pool.to(device))
        revalidate([strided], ok, output[:, 1])
    assert ok.tolist() == [int(right) for right in expected]
    assert output[:, 1].isnan().flatten(1).all(1).tolist() == [not right for right in expected]
    assert (output[:, [0, 2, 3]] == 0).all()


@settings(deadline=None, max_examples=examples(15))
@given(
    st.integers(1, 5), st.integers(0, 9), st.integers(1, 9), st.integers(1, 3), st.integers(0, 999)
)
def test_any_lease_is_compared(
    requests: int, blocks: int, num_blocks: int, pools: int, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 -- drawn cases are no secrets
    leases = [leased(requests, blocks, num_blocks, seed + n) for n in range(pools)]
    for lease in leases:
        if blocks and random.random() < 0.5:
            place = random.randrange(requests), random.randrange(blocks)
            lease.generations[place] += random.choice((0, 1, 1 << 32))
            lease.blocks[place] = random.randrange(-2, num_blocks + 1)
    assert check(leases, "kernel") == check(leases, "reference")


def test_a_captured_graph_replays_it_with_what_its_tensors_hold_then() -> None:
    if DEVICE.type != "cuda":
        pytest.skip("there are no graphs on a CPU")
    lease = Lease(*(each.to(DEVICE) for each in leased(3, 5, 50)))
    ok = torch.zeros(3, dtype=torch.int32, device=DEVICE)
    output = torch.zeros((3, 7), device=DEVICE)
    revalidate([lease], ok, output)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        revalidate([lease], ok, output)
    graph.replay()
    assert ok.tolist() == [1, 1, 1]
    block = next(block for block in lease.blocks[1].tolist() if block > 0)
    lease.pool[block] += 1
    graph.replay()
    assert ok.tolist()[1] == 0
    assert output[1].isnan().all()


ERRORS = {
    "generations are compared in 32 bits": (
        "(now != then)",
        "(now.to(tl.int32) != then.to(tl.int32))",
    ),
    "the last block is left out": ("lane < count, -1)", "lane < count - 1, -1)"),
    "padding is compared": ("(block != 0) & (block != -1)", "(block != -2)"),
    "a later pool forgets the first": ("right & tl.load(ok + request)", "right"),
    "nobody is poisoned": ("tl.load(ok + request) == 0", "tl.load(ok + request) == 2"),
    "an id out of range holds": ("(inside == 0) | (now != then)", "inside & (now != then)"),
    "all are right in the reference": (".all(1).int()", ".any(1).int()"),
    "the reference poisons nobody": ("output[ok == 0] = poison", "pass"),
}


@without_gpu
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_caught(tmp_path: Path, name: str) -> None:
    wrong = seeded(tmp_path, module, *ERRORS[name]).revalidate
    way = "reference" if "reference" in name else "kernel"
    with pytest.raises(AssertionError):
        caught(wrong, way)


def caught(run: Run, way: str) -> None:
    """Run what the tests above check, in small."""
    good = leased(4, 6, 200)
    check([good], way, run=run)
    bad = given_back(good, 2)
    check([bad, good], way, run=run)
    good.blocks[0, 5] = 9
    for wrong in (good.pool[9] + (1 << 32), good.pool[9] - 1):
        good.generations[0, 5] = wrong
        check([good], way, run=run)
    good.blocks[0, 5] = 200
    check([good], way, run=run)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("leases", [], "leases: none is given"),
        ("ok", torch.zeros(3), "ok: float32 is given, int32"),
        ("output", torch.zeros(3, 5, dtype=torch.int32), "output: int32 is given"),
        ("output", torch.zeros(2, 5), "output: shape"),
        ("output", torch.zeros(3, 5, 4)[:, :, ::2], "output: stride 2"),
        ("output", torch.zeros(3, 5, device="meta"), "output: on meta"),
        ("poison", 0.0, "poison: 0.0 is given, nan or -inf is wanted"),
        ("poison", math.inf, "poison: inf is given"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: object, message: str) -> None:
    ok, output = torch.full((3,), 9, dtype=torch.int32), torch.zeros(3, 5)
    arguments = {"leases": [leased(3, 4, 10)], "ok": ok, "output": output, "poison": math.nan}
    with running("reference"), pytest.raises(ValueError, match=message):
        revalidate(**{**arguments, name: value})  # type: ignore[arg-type] # wrong on purpose
    assert (ok == 9).all()
    assert (output == 0).all()


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("blocks", torch.zeros(3, 4), r"leases\[0\].blocks: float32 is given"),
        ("blocks", torch.zeros(2, 4, dtype=torch.int32), r"leases\[0\].blocks: shape"),
        ("generations", torch.zeros(3, 5, dtype=torch.int64), r"leases\[0\].generations: shape"),
        ("generations", torch.zeros(3, 4, dtype=torch.int32), "generations: int32 is given"),
        ("pool", torch.zeros(10, dtype=torch.int32), r"leases\[0\].pool: int32 is given"),
        ("pool", torch.zeros(20, dtype=torch.int64)[::2], r"leases\[0\].pool: stride 2"),
    ],
)
def test_a_lease_that_does_not_fit_is_refused(part: str, value: torch.Tensor, message: str) -> None:
    lease = leased(3, 4, 10)._replace(**{part: value})
    with running("reference"), pytest.raises(ValueError, match=message):
        revalidate([lease], torch.zeros(3, dtype=torch.int32), torch.zeros(3, 5))
