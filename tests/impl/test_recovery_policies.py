"""What a policy for windows is said to cost is what it takes in a store, and what forks need."""

from __future__ import annotations

from pathlib import Path

import pytest

from fivestate.impl.allocator import Allocator, Settings
from fivestate.impl.cache import Cache
from fivestate.impl.recovery import DiskCopies, HostCopies, Worker, bench, bench_shadow, policies
from fivestate.impl.retention import Retention
from fivestate.impl.tiers import Store, StoreIdentity
from fivestate.impl.tiers import bench as tiers
from fivestate.spec.reuse import Rates
from fivestate.spec.reuse.files import preset
from fivestate.spec.reuse.windows import Keep

TOY = preset("toy")
STEP = TOY.scheduler_block_size
PROMPT_TOKENS, PERIOD_TOKENS = 24 * STEP, 6 * STEP
PLENTY_BYTES = 1 << 26


def costs(
    name: str = "toy", prompt: int = PROMPT_TOKENS, period: int = PERIOD_TOKENS
) -> dict[Keep, policies.Cost]:
    geometry = preset(name)
    found = policies.costs(geometry, Rates(), prompt_tokens=prompt, period_tokens=period, forks=24)
    return {cost.keep: cost for cost in found}


@pytest.mark.parametrize("keep", [Keep.FULL, Keep.PERIODIC, Keep.ZERO])
def test_the_bytes_of_a_policy_are_those_that_a_store_has(tmp_path: Path, keep: Keep) -> None:
    retention = Retention(keep, PERIOD_TOKENS if keep is Keep.PERIODIC else None)
    identity = StoreIdentity.of(TOY, layout="0", weights=0)
    store = Store.open(tmp_path, identity=identity, capacity_bytes=PLENTY_BYTES)
    disk = DiskCopies(store, PLENTY_BYTES)
    settings = Settings(
        geometry=TOY,
        num_blocks=dict.fromkeys((g.name for g in TOY.groups), 1024),
        storable=policies.stored(retention),
        host=HostCopies(),
        disk=disk,
    )
    cache = Cache(Allocator(settings), retention=retention, in_flight_tokens=PROMPT_TOKENS)
    with Worker(cache.allocator) as worker:
        lease = cache.lease(cache.match(range(PROMPT_TOKENS)))
        cache.fill(lease, PROMPT_TOKENS)
        cache.commit(lease)
        worker.persist()
        assert worker.idle(30)
        lease.release()
    assert disk.used_bytes == costs()[keep].stored_bytes * PROMPT_TOKENS / 1_000
    disk.close()


@pytest.mark.parametrize(
    ("name", "prompt", "period"),
    [("toy", PROMPT_TOKENS, PERIOD_TOKENS), ("gpt-oss-120b", 4_096, 512)],
)
def test_what_is_not_stored_is_computed_again(name: str, prompt: int, period: int) -> None:
    found = costs(name, prompt, period)
    full, periodic = found[Keep.FULL], found[Keep.PERIODIC]
    zero, bounded = found[Keep.ZERO], found[Keep.BOUNDED]
    assert full.stored_bytes > periodic.stored_bytes > zero.stored_bytes == bounded.stored_bytes
    assert full.replayed_tokens == 0
    assert full.most_tokens < preset(name).scheduler_block_size
    computed = [cost.replayed_tokens + cost.recomputed_tokens for cost in (full, periodic, zero)]
    assert computed == sorted(computed)
    assert full.exact
    assert periodic.exact
    assert zero.exact


def test_a_bounded_replay_is_short_and_never_called_exact() -> None:
    found = costs("gpt-oss-120b", 8_192)
    assert not found[Keep.BOUNDED].exact
    assert found[Keep.BOUNDED].replayed_tokens <= preset("gpt-oss-120b").widest_window
    assert found[Keep.BOUNDED].most_tokens < found[Keep.ZERO].most_tokens


def test_a_policy_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="forks = 0"):
        list(policies.costs(TOY, Rates(), prompt_tokens=64, period_tokens=16, forks=0))
    with pytest.raises(ValueError, match="prompt_tokens = 1:"):
        list(policies.costs(TOY, Rates(), prompt_tokens=1, period_tokens=16))


def test_the_bench_measures_what_it_says() -> None:
    rows = [*bench.recovery(256, rounds=2), *bench.policy(Rates(), prompt_tokens=1_024)]
    assert len(rows) == 2 + 3 * len(Keep)
    for row in rows:
        figure, peer = row["figure"], row["peer_figure"]
        assert isinstance(figure, float)
        assert isinstance(peer, float)
        assert figure > 0 < peer
        assert row["better"] in {"more", "less"}
    for shadow in bench_shadow.overhead("qwen3", rounds=1):
        assert shadow.milliseconds > 0 < shadow.peer_milliseconds


def test_the_bench_plans_with_the_speeds_that_it_has_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(**_: object) -> list[tiers.Row]:
        host = tiers.Row("entries of 16,384 tokens from host", 3.0, "GB/s", "peer", 4.0, 0.75)
        disk = tiers.Row("entries of 16,384 tokens from disk, cold", 2.0, "GB/s", "peer", 4.0, 0.5)
        return [host, disk]

    monkeypatch.setattr(tiers, "run", measured)
    monkeypatch.setattr(bench, "find_spec", lambda _name: None)
    said = list(bench.bench(quick=True, tell=lambda _now: None))
    assert [row["better"] for row in said[:2]] == ["more", "more"]
    speeds = Rates(host_bytes_per_second=3 * 10**9, disk_bytes_per_second=2 * 10**9)
    assert any(str(speeds) in str(row.get("note")) for row in said)
