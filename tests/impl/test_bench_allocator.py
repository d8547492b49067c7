"""The bench of the allocator: what it measures, and what it refuses to compare."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from types import ModuleType
from typing import Any

import pytest

from fivestate.impl import bench
from fivestate.impl.bench import peer
from fivestate.impl.bench.ours import Ours
from fivestate.impl.bench.workload import PHASES, Result, Turn, converse
from fivestate.spec.reuse.files import preset


def silent(_now: str) -> None:
    """Tell nothing."""


class Peer(Ours):
    """A peer that is as good as we are."""

    name = "peer"


class Forgetful(Peer):
    """A peer that reuses less."""

    def turn(self, prompt: list[int], answer: list[int]) -> Turn:
        """Take a turn, and reuse a block less than there was."""
        turn = super().turn(prompt, answer)
        turn.hit_tokens -= 256
        return turn


def test_every_turn_reuses_the_history_before_it_and_every_phase_is_timed() -> None:
    results = converse([Ours(preset("dsv4-flash"), 4_096)], 4_096, 3)
    result = results["fivestate"]
    assert result.hit_tokens == (3_840, 4_096, 4_352)
    assert set(result.phases) == set(PHASES)
    assert all(took > 0 for took in result.phases.values())
    assert result.with_hashing == pytest.approx(result.without_hashing + result.phases["hash"])


def test_a_prompt_longer_than_a_chunk_is_computed_in_chunks() -> None:
    result = converse([Ours(preset("dsv4-flash"), 20_000)], 20_000, 1)["fivestate"]
    assert result.hit_tokens == (19_712,)


def test_each_length_gives_a_row_with_and_one_without_hashing() -> None:
    rows = list(bench.rows(silent, (4_096,), 2, Peer))
    assert [row["what"] for row in rows] == [
        "turns from 4,096 tokens on, 3,840 reused, with hashing",
        "turns from 4,096 tokens on, 3,840 reused, without",
    ]
    assert {(row["unit"], row["peer"], row["better"]) for row in rows} == {("ms", "peer", "less")}


def test_turns_that_reuse_different_numbers_of_tokens_are_not_compared() -> None:
    [said] = bench.rows(silent, (4_096,), 2, Forgetful)
    assert str(said["refuted"]).endswith("(3840, 4096) tokens here, (3584, 3840) by peer")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (PackageNotFoundError(), "vLLM is not installed: pip install --no-deps vllm==0.33.0"),
        ("0.34.0", "vLLM 0.34.0 is installed: the comparison is with 0.33.0"),
        ("0.33.0", "vLLM 0.33.0 cannot be imported: no such thing"),
    ],
)
def test_without_the_peer_there_are_no_rows_and_a_note_says_why(
    monkeypatch: pytest.MonkeyPatch, found: str | Exception, said: str
) -> None:
    def version(_name: str) -> str:
        if isinstance(found, Exception):
            raise found
        return found

    def absent(_name: str) -> ModuleType:
        raise ImportError("no such thing")

    monkeypatch.setattr(peer, "version", version)
    monkeypatch.setattr(peer, "import_module", absent)
    told = list(bench.bench(quick=False, tell=silent))
    assert told == [{"note": f"no rows, for there is no peer: {said}"}]


def test_with_the_peer_notes_say_what_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "installed", lambda: None)
    told: list[str] = []

    def rows(tell: Any, lengths: tuple[int, ...], turns: int) -> Any:
        tell(f"{lengths} {turns}")
        return iter(())

    monkeypatch.setattr(bench, "rows", rows)
    [first, *_] = bench.bench(quick=True, tell=told.append)
    list(bench.bench(quick=False, tell=told.append))
    assert told == ["(4096,) 3", "(4096, 32768, 131072) 15"]
    assert str(first["note"]).startswith("dsv4-flash; a turn: 200 tokens asked, 56 decoded")


class Blocks:
    """What the manager of a double hands out."""


class Manager:
    """A double of vLLM's manager: it remembers how many tokens it was given."""

    def __init__(self, config: Any, longest: int, step: int, fine: int, **more: int) -> None:
        self.made = config, longest, step, fine, more
        self.room = True

    def get_computed_blocks(self, request: Any) -> tuple[Blocks, int, int]:
        """Find all but the last block."""
        return Blocks(), request.num_prompt_tokens // 256 * 256 - 256, 0

    def allocate_slots(self, request: Any, *_: object) -> Blocks | None:
        """Give blocks, if there is room."""
        del request
        return Blocks() if self.room else None

    def get_block_ids(self, _request: str) -> None:
        """Give no ids."""
        return

    def free(self, _request: Any) -> None:
        """Take everything back."""
        return


class Request:
    """A double of vLLM's request."""

    def __init__(self, name: str, prompt: list[int], *_: object, block_hasher: object) -> None:
        self.request_id, self.num_prompt_tokens = name, len(prompt)
        self.num_computed_tokens, self.hasher = 0, block_hasher

    def append_output_token_ids(self, _token: int) -> None:
        """Hash nothing."""
        return


class Record:
    """A double of anything that is only built."""

    def __init__(self, *args: object, **options: object) -> None:
        self.args, self.options = args, options


def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a double in vLLM's place."""
    module = ModuleType("double")
    for name in ("KVCacheGroupSpec", "KVCacheConfig", "MLAAttentionSpec", "SlidingWindowMLASpec"):
        setattr(module, name, Record)
    vars(module).update(SamplingParams=Record, Request=Request, KVCacheManager=Manager, sha256=None)
    vars(module).update(init_none_hash=lambda _hash: None)
    vars(module).update(get_request_block_hasher=lambda *of: of)
    monkeypatch.setattr(peer, "import_module", lambda _name: module)
    monkeypatch.setattr(peer, "version", lambda _name: "0.33.0")


def test_the_peer_is_driven_as_its_scheduler_drives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    double(monkeypatch)
    assert peer.installed() is None
    driven = peer.VLLM(preset("dsv4-flash"), 4_096)
    config, _, step, fine, more = driven._manager.made
    assert (step, fine, more) == (256, 4, {"max_in_flight_tokens": 8_192})
    kinds = [spec.args[1].options for spec in config.args[2]]
    assert [kind["block_size"] for kind in kinds] == [256, 256, 256, 64, 4, 8, 4]
    assert [kind.get("tokens_per_state") for kind in kinds[:3]] == [4, 128, 4]
    assert [kind.get("sliding_window") for kind in kinds[3:]] == [128, 8, 128, 8]
    turn = driven.turn([1] * 20_000, [2] * 3)
    assert turn.hit_tokens == 19_712
    assert set(turn.seconds) == set(PHASES)
    driven._manager.get_computed_blocks = lambda _request: (Blocks(), 0, 0)
    assert driven.turn([1] * 20_000, [2]).hit_tokens == 0
    driven._manager.room = False
    with pytest.raises(ValueError, match="vLLM has no room"):
        driven.turn([1] * 20_000, [2])


def test_a_result_adds_its_phases_up() -> None:
    result = Result((1,), {"hash": 5.0, "match": 1.0, "allocate": 2.0, "append": 3.0, "free": 4.0})
    assert (result.with_hashing, result.without_hashing) == (15.0, 10.0)


@pytest.mark.skipif(peer.installed() is not None, reason="vLLM is not installed")
def test_vllm_itself_reuses_as_many_tokens() -> None:
    rows = list(bench.rows(silent, (4_096,), 2))
    assert len(rows) == 2
